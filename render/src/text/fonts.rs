//! The embedded fonts and the glyphs drawn from them.

use std::cell::{Cell, OnceCell};
use std::collections::HashMap;
use std::rc::Rc;

use serde::Deserialize;
use skrifa::charmap::Charmap;
use skrifa::instance::{LocationRef, Size};
use skrifa::outline::{DrawSettings, Engine, HintingInstance, HintingOptions, OutlineGlyphCollection, Target};
use skrifa::{FontRef, GlyphId, MetadataProvider};

use super::line::Ink;
use super::raster::{Outline, Span};
use crate::error::Cause;

/// `DejaVu Sans Condensed`, and for U+1EFC..=U+1EFF, which it lacks, four glyphs of Noto Sans.
static REGULAR: [&[u8]; 2] =
    [include_bytes!("../../fonts/DejaVuSansCondensed.ttf"), include_bytes!("../../fonts/welsh-regular.ttf")];
static BOLD: [&[u8]; 2] =
    [include_bytes!("../../fonts/DejaVuSansCondensed-Bold.ttf"), include_bytes!("../../fonts/welsh-bold.ttf")];

/// Smallest size, pixels per em: below, stems and bowls of the embedded fonts run together.
pub(crate) const SIZE_MIN: u16 = 10;
/// Largest size, pixels per em: digits about as high as a 400 px panel.
pub(crate) const SIZE_MAX: u16 = 400;

/// Character-pixels (characters × size, summed over every size tried) one label may spend on fitting texts. A full
/// 800 × 480 label takes about 100,000; a hostile layout is refused within about a second.
pub(crate) const BUDGET: u64 = 4_000_000;

/// Spans kept before the cache starts anew: 6 bytes each, so about 12 MB a thread.
const SPANS_MAX: usize = 2_000_000;

/// Sizes kept before the cache starts anew: each holds the state of its hinting, some 50 kB.
const SIZES_MAX: usize = 256;

/// How heavy a font is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Weight {
    #[default]
    Regular,
    Bold,
}

/// One glyph at one size.
#[derive(Debug)]
pub(crate) struct Glyph {
    /// Pixels to the next pen position.
    pub(crate) advance: i32,
    /// The pixels' bounds relative to the pen, or `None` if there are none.
    pub(crate) ink: Option<Ink>,
    pub(crate) spans: Vec<Span>,
}

pub(crate) struct Face {
    pub(crate) charmap: Charmap<'static>,
    pub(crate) outlines: OutlineGlyphCollection<'static>,
    pub(crate) font: FontRef<'static>,
}

struct Sized {
    /// One for each face of the weight, made when first needed.
    hinting: Vec<OnceCell<Option<HintingInstance>>>,
    ascii: [Option<Rc<Glyph>>; 128],
    others: HashMap<char, Rc<Glyph>>,
}

/// Faces and drawn glyphs of one thread, and the running label's budget.
pub(crate) struct Fonts {
    regular: Vec<Face>,
    bold: Vec<Face>,
    sizes: HashMap<(Weight, u16), Sized>,
    spans: usize,
    budget: u64,
}

thread_local! {
    static FONTS: Cell<Option<Box<Fonts>>> = const { Cell::new(None) };
}

/// Runs with this thread's fonts and a fresh budget. The cache is taken out meanwhile: a panic leaves an empty one.
pub(crate) fn with_fonts<T>(run: impl FnOnce(&mut Fonts) -> T) -> T {
    let mut fonts = FONTS.take().unwrap_or_else(|| Box::new(Fonts::load()));
    if fonts.spans > SPANS_MAX || fonts.sizes.len() > SIZES_MAX {
        fonts.sizes.clear();
        fonts.spans = 0;
    }
    fonts.budget = BUDGET;
    let out = run(&mut fonts);
    FONTS.set(Some(fonts));
    out
}

fn faces(files: [&'static [u8]; 2]) -> Vec<Face> {
    // A file that is no font would show as a missing glyph; the coverage test holds that none is.
    files
        .into_iter()
        .filter_map(|bytes| FontRef::new(bytes).ok())
        .map(|font| Face { charmap: font.charmap(), outlines: font.outline_glyphs(), font })
        .collect()
}

impl Fonts {
    fn load() -> Self {
        Self { regular: faces(REGULAR), bold: faces(BOLD), sizes: HashMap::new(), spans: 0, budget: BUDGET }
    }

    /// The faces of a weight, in the order they are asked for a character.
    pub(crate) fn faces(&self, weight: Weight) -> &[Face] {
        match weight {
            Weight::Regular => &self.regular,
            Weight::Bold => &self.bold,
        }
    }

    /// Takes from the label's budget.
    pub(crate) fn spend(&mut self, chars: usize, size: u16) -> Result<(), Cause> {
        let cost = u64::try_from(chars).unwrap_or(u64::MAX).saturating_mul(size.into());
        self.budget = self.budget.checked_sub(cost).ok_or(Cause::Budget)?;
        Ok(())
    }

    /// The glyph of a character, drawn on first use.
    pub(crate) fn glyph(&mut self, weight: Weight, size: u16, ch: char) -> Result<Rc<Glyph>, Cause> {
        let faces = match weight {
            Weight::Regular => &self.regular,
            Weight::Bold => &self.bold,
        };
        let sized = self.sizes.entry((weight, size)).or_insert_with(|| Sized {
            hinting: faces.iter().map(|_| OnceCell::new()).collect(),
            ascii: [const { None }; 128],
            others: HashMap::new(),
        });
        let slot = sized.ascii.get_mut(ch as usize);
        if let Some(glyph) = slot.as_ref().map_or_else(|| sized.others.get(&ch), |slot| slot.as_ref()) {
            return Ok(Rc::clone(glyph));
        }
        let found = faces.iter().zip(&sized.hinting).find_map(|(face, hinting)| {
            let id = face.charmap.map(ch).filter(|id| *id != GlyphId::NOTDEF)?;
            Some(draw(face, hinting.get_or_init(|| self::hinting(face, size)).as_ref(), id, size))
        });
        let glyph = Rc::new(found.ok_or(Cause::MissingGlyph { ch })?);
        self.spans += glyph.spans.len();
        match slot {
            Some(slot) => *slot = Some(Rc::clone(&glyph)),
            None => drop(sized.others.insert(ch, Rc::clone(&glyph))),
        }
        Ok(glyph)
    }

    /// Unhinted width of a text at 1 px per em, in 1/1024 px: enough to skip sizes that cannot fit.
    pub(crate) fn width_estimate(&mut self, weight: Weight, text: &str) -> i64 {
        // Any size would do; this one's glyphs are small and few.
        const PROBE: u16 = 32;
        text.chars()
            .filter_map(|ch| self.glyph(weight, PROBE, ch).ok())
            .map(|glyph| i64::from(glyph.advance) * 1_024 / i64::from(PROBE))
            .sum()
    }
}

fn hinting(face: &Face, size: u16) -> Option<HintingInstance> {
    let options = HintingOptions { engine: Engine::AutoFallback, target: Target::Mono };
    HintingInstance::new(&face.outlines, Size::new(f32::from(size)), LocationRef::default(), options).ok()
}

/// The font's own hints where they run; else the plain outline. Both are deterministic.
fn draw(face: &Face, hinting: Option<&HintingInstance>, id: GlyphId, size: u16) -> Glyph {
    let hinted = hinting.and_then(|hinting| outline(face, id, DrawSettings::hinted(hinting, false)));
    let size = Size::new(f32::from(size));
    let drawn = hinted.or_else(|| outline(face, id, DrawSettings::unhinted(size, LocationRef::default())));
    let (outline, advance) = drawn.unwrap_or_default();
    let linear = || face.font.glyph_metrics(size, LocationRef::default()).advance_width(id).unwrap_or(0.0);
    let spans = outline.fill();
    Glyph { advance: whole(advance.unwrap_or_else(linear)), ink: Ink::around(&spans), spans }
}

fn outline(face: &Face, id: GlyphId, settings: DrawSettings<'_>) -> Option<(Outline, Option<f32>)> {
    let mut outline = Outline::default();
    let metrics = face.outlines.get(id)?.draw(settings, &mut outline).ok()?;
    Some((outline, metrics.advance_width))
}

#[expect(clippy::cast_possible_truncation, reason = "clamped before the cast")]
fn whole(pixels: f32) -> i32 {
    pixels.round().clamp(0.0, 4_096.0) as i32
}
