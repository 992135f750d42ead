//! Fitting a text into a box: wrap, shrink to a floor, break words, end with an ellipsis, or refuse.

use unicode_linebreak::{BreakOpportunity, linebreaks};

use super::fonts::Fonts;
use super::line::{Line, Run, shape};
use crate::error::Cause;
use crate::text::Weight;

/// What to fit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'a> {
    pub(crate) text: &'a str,
    pub(crate) weight: Weight,
    /// Pixels per em: wanted, and the floor.
    pub(crate) size: u16,
    pub(crate) size_min: u16,
    /// Percent of the size from baseline to baseline.
    pub(crate) line_height: u16,
    pub(crate) lines_max: usize,
    pub(crate) ellipsis: bool,
    pub(crate) width: i32,
    pub(crate) height: i32,
}

/// Lines that fit, at the size they fit at.
#[derive(Debug)]
pub(crate) struct Fit {
    pub(crate) lines: Vec<Line>,
    pub(crate) size: u16,
    /// Pixels from baseline to baseline.
    pub(crate) pitch: i32,
    /// Ink above the first baseline and below it (the last line's included).
    pub(crate) ink_top: i32,
    pub(crate) ink_bottom: i32,
}

/// Most sizes tried between the wanted size and the floor; larger ranges go in larger steps.
const TRIES: u16 = 48;

/// The sign of text left out.
const ELLIPSIS: char = '…';

/// The largest size at which the text fits, without leaving anything out if possible.
pub(crate) fn fit(fonts: &mut Fonts, request: &Request<'_>) -> Result<Option<Fit>, Cause> {
    let floor = request.size_min.min(request.size);
    let step = usize::from(((request.size - floor) / TRIES).max(1));
    let breaks = breaks(request.text);
    let estimate = fonts.width_estimate(request.weight, request.text);
    let room = i64::from(request.width) * i64::try_from(request.lines_max).unwrap_or(1) * 1_024;
    for size in (floor..=request.size).rev().step_by(step) {
        // Hinted advances differ from linear ones by a few percent; far too wide is skipped unseen.
        if size > floor && estimate * i64::from(size) / 5 * 4 > room {
            continue;
        }
        if let Some(fit) = attempt(fonts, request, &breaks, size, Breaking::AtWords)? {
            return Ok(Some(fit));
        }
    }
    if request.lines_max > 1
        && let Some(fit) = attempt(fonts, request, &breaks, floor, Breaking::Anywhere)?
    {
        return Ok(Some(fit));
    }
    if request.ellipsis { attempt(fonts, request, &breaks, floor, Breaking::Ellipsis) } else { Ok(None) }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Breaking {
    AtWords,
    Anywhere,
    Ellipsis,
}

/// Byte offsets after which a line may end, in order; `true` where it must.
fn breaks(text: &str) -> Vec<(usize, bool)> {
    linebreaks(text).map(|(at, kind)| (at, kind == BreakOpportunity::Mandatory)).collect()
}

fn attempt(
    fonts: &mut Fonts,
    request: &Request<'_>,
    breaks: &[(usize, bool)],
    size: u16,
    breaking: Breaking,
) -> Result<Option<Fit>, Cause> {
    let run = Run { weight: request.weight, size };
    fonts.spend(request.text.chars().count(), size)?;
    let pitch = (i32::from(size) * i32::from(request.line_height) + 50) / 100;
    let mut lines_max = request.lines_max;
    loop {
        let Some(texts) = wrap(fonts, request, breaks, run, lines_max, breaking)? else { return Ok(None) };
        let lines = texts.iter().map(|text| shape(fonts, run, text)).collect::<Result<Vec<_>, _>>()?;
        if let Some(fit) = measure(request, lines, size, pitch) {
            return Ok(Some(fit));
        }
        // Too high: an ellipsis may stand earlier.
        if breaking != Breaking::Ellipsis || texts.len() < 2 {
            return Ok(None);
        }
        lines_max = texts.len() - 1;
    }
}

/// The fit, if every line's ink lies within the width and all of it within the height.
fn measure(request: &Request<'_>, lines: Vec<Line>, size: u16, pitch: i32) -> Option<Fit> {
    let (mut top, mut bottom) = (i32::MAX, i32::MIN);
    let mut baseline = 0;
    for line in &lines {
        if let Some(ink) = line.ink {
            if ink.width() > request.width {
                return None;
            }
            top = top.min(baseline + ink.top);
            bottom = bottom.max(baseline + ink.bottom);
        }
        baseline += pitch;
    }
    let (ink_top, ink_bottom) = if top < bottom { (top, bottom) } else { (0, 0) };
    (ink_bottom - ink_top <= request.height).then_some(Fit { lines, size, pitch, ink_top, ink_bottom })
}

/// Greedy lines, or `None` if they are too many or a word is too wide.
fn wrap(
    fonts: &mut Fonts,
    request: &Request<'_>,
    breaks: &[(usize, bool)],
    run: Run,
    lines_max: usize,
    breaking: Breaking,
) -> Result<Option<Vec<String>>, Cause> {
    let text = request.text;
    let mut lines: Vec<String> = Vec::new();
    let mut start = 0;
    while start < text.len() {
        let (end, next) = line_end(fonts, request, breaks, run, start)?;
        let (end, next) = match (end, breaking) {
            (Some(end), _) => (end, next),
            (None, Breaking::AtWords) => return Ok(None),
            // A word wider than the box is broken where it must be.
            (None, _) => {
                let end = start + prefix_fitting(fonts, run, text.get(start..).unwrap_or_default(), request.width)?;
                if end == start {
                    return Ok(None);
                }
                (end, end)
            }
        };
        if lines.len() + 1 == lines_max && next < text.len() {
            if breaking != Breaking::Ellipsis {
                return Ok(None);
            }
            let Some(last) = with_ellipsis(fonts, run, text.get(start..).unwrap_or_default(), request.width)? else {
                return Ok(None);
            };
            lines.push(last);
            return Ok(Some(lines));
        }
        lines.push(text.get(start..end).unwrap_or_default().trim_matches([' ', '\n']).to_owned());
        start = next;
    }
    Ok(Some(lines))
}

/// The last break at which the line still fits: (its end, where the next line starts); no end if even the first
/// word is too wide.
fn line_end(
    fonts: &mut Fonts,
    request: &Request<'_>,
    breaks: &[(usize, bool)],
    run: Run,
    start: usize,
) -> Result<(Option<usize>, usize), Cause> {
    let mut best = None;
    let (mut pen, mut from) = (0, start);
    for (at, mandatory) in breaks.iter().filter(|(at, _)| *at > start) {
        let segment = request.text.get(from..*at).unwrap_or_default();
        let word = segment.trim_end_matches([' ', '\n']);
        let width = advance(fonts, run, word)?;
        if pen + width > request.width {
            break;
        }
        best = Some(*at);
        if *mandatory {
            break;
        }
        pen += width + advance(fonts, run, segment.get(word.len()..).unwrap_or_default())?;
        from = *at;
    }
    Ok((best, best.unwrap_or(start)))
}

fn advance(fonts: &mut Fonts, run: Run, text: &str) -> Result<i32, Cause> {
    text.chars()
        .filter(|ch| *ch != '\n')
        .try_fold(0, |sum, ch| Ok(sum + fonts.glyph(run.weight, run.size, ch)?.advance))
}

/// How many bytes of the text fit the width; whole characters with their marks.
fn prefix_fitting(fonts: &mut Fonts, run: Run, text: &str, width: i32) -> Result<usize, Cause> {
    let mut pen = 0;
    let mut end = 0;
    for (at, ch) in text.char_indices() {
        if ch == '\n' {
            return Ok(at);
        }
        let mark = unicode_normalization::char::is_combining_mark(ch);
        pen += if mark { 0 } else { fonts.glyph(run.weight, run.size, ch)?.advance };
        if pen > width {
            break;
        }
        end = at + ch.len_utf8();
    }
    Ok(end)
}

/// As much of the text as fits before an ellipsis, or `None` if not even one character does.
fn with_ellipsis(fonts: &mut Fonts, run: Run, text: &str, width: i32) -> Result<Option<String>, Cause> {
    let sign = fonts.glyph(run.weight, run.size, ELLIPSIS)?.advance;
    let kept = prefix_fitting(fonts, run, text, width - sign)?;
    let kept = text.get(..kept).unwrap_or_default().trim_end();
    Ok((!kept.is_empty()).then(|| format!("{kept}{ELLIPSIS}")))
}
