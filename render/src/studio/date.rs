//! Dates as people write them. A value is a calendar date, `2026-03-31`: a moment would need a time zone to become one.

use std::fmt::Write as _;

use super::geometry::short;
use crate::error::Cause;

/// Longest pattern, characters.
const PATTERN_CHARS_MAX: usize = 40;

/// A pattern such as `dd.MM.yyyy`: runs of d, M, y are numbers, everything else stands as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pattern(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Day { digits: usize },
    Month { digits: usize },
    Year { digits: usize },
    Literal(char),
}

impl Pattern {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let chars: Vec<char> = text.chars().collect();
        if chars.is_empty() || chars.len() > PATTERN_CHARS_MAX {
            return Err(format!("a date's pattern has 1 to {PATTERN_CHARS_MAX} characters"));
        }
        let mut parts = Vec::new();
        for run in chars.chunk_by(|a, b| a == b && "dMy".contains(*a)) {
            let digits = run.len();
            parts.push(match run.first() {
                Some('d') if digits <= 2 => Part::Day { digits },
                Some('M') if digits <= 2 => Part::Month { digits },
                Some('y') if digits == 2 || digits == 4 => Part::Year { digits },
                Some(letter) if letter.is_alphabetic() => {
                    return Err(format!("\"{}\" is no date pattern: d, dd, M, MM, yy, yyyy and signs", short(text)));
                }
                Some(sign) => Part::Literal(*sign),
                None => continue,
            });
        }
        Ok(Self(parts))
    }

    /// The short numeric form of a place, after Unicode CLDR; what is not in the table is refused rather than guessed.
    pub(crate) fn of_locale(tag: &str) -> Option<Self> {
        let mut parts = tag.split(['-', '_']);
        let language = parts.next()?.to_ascii_lowercase();
        let region = parts.find(|part| part.len() == 2).unwrap_or_default().to_ascii_uppercase();
        let pattern = match (language.as_str(), region.as_str()) {
            ("en", "US" | "") => "MM/dd/yyyy",
            ("en" | "fr", "CA") | ("sv" | "lt", _) => "yyyy-MM-dd",
            ("en" | "fr" | "es" | "it" | "pt" | "el" | "ga" | "mt" | "ca" | "gl" | "vi" | "id" | "hi" | "th", _) => {
                "dd/MM/yyyy"
            }
            ("nl", _) => "dd-MM-yyyy",
            (
                "de" | "pl" | "ru" | "uk" | "be" | "ro" | "tr" | "nb" | "nn" | "no" | "et" | "lv" | "az" | "kk" | "ka"
                | "hy" | "da" | "bg" | "lb" | "rm" | "mk",
                _,
            ) => "dd.MM.yyyy",
            ("fi" | "is", _) => "d.M.yyyy",
            ("cs" | "sk" | "sl" | "hr" | "bs" | "sr", _) => "d. M. yyyy",
            ("hu", _) => "yyyy. MM. dd.",
            ("ja" | "zh", _) => "yyyy/MM/dd",
            _ => return None,
        };
        Self::parse(pattern).ok()
    }

    /// The date in this form.
    pub(crate) fn write(&self, value: &str) -> Result<String, Cause> {
        let (year, month, day) = read(value)?;
        let mut out = String::new();
        for part in &self.0 {
            let (number, digits) = match part {
                Part::Day { digits } => (day, *digits),
                Part::Month { digits } => (month, *digits),
                Part::Year { digits: 2 } => (year % 100, 2),
                Part::Year { digits } => (year, *digits),
                Part::Literal(sign) => {
                    out.push(*sign);
                    continue;
                }
            };
            // Writing to a string cannot fail.
            let _ = write!(out, "{number:0digits$}");
        }
        Ok(out)
    }
}

fn read(value: &str) -> Result<(u16, u16, u16), Cause> {
    let value = value.trim();
    let bad = |why: &str| Cause::Date { value: short(value), why: why.to_owned() };
    let shape = || bad("it is not written as year-month-day, like 2026-03-31");
    let parts: Vec<&str> = value.splitn(4, '-').collect();
    let number = |text: &str, digits: usize| {
        let plain = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
        plain.then(|| text.parse::<u16>().ok()).flatten().ok_or_else(shape)
    };
    let [year, month, day] = parts.as_slice() else { return Err(shape()) };
    let (year, month, day) = (number(year, 4)?, number(month, 2)?, number(day, 2)?);
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        2 => 28 + u16::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return Err(bad("there is no such month")),
    };
    if year == 0 || day == 0 || day > days {
        return Err(bad("there is no such day"));
    }
    Ok((year, month, day))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_read_as_their_place_writes_them() {
        for (tag, want) in [
            ("de-DE", "05.03.2026"),
            ("en-US", "03/05/2026"),
            ("en-GB", "05/03/2026"),
            ("sv-SE", "2026-03-05"),
            ("cs", "5. 3. 2026"),
            ("hu-HU", "2026. 03. 05."),
            ("nl-NL", "05-03-2026"),
        ] {
            assert_eq!(Pattern::of_locale(tag).unwrap().write("2026-03-05"), Ok(want.to_owned()), "{tag}");
        }
        assert_eq!(Pattern::of_locale("xx"), None);
        assert_eq!(Pattern::parse("bis d.M.").ok(), None);
        assert_eq!(Pattern::parse("d.M.yy").unwrap().write("2026-03-05"), Ok("5.3.26".to_owned()));
    }

    #[test]
    fn what_is_no_day_of_the_calendar_is_refused() {
        let pattern = Pattern::parse("dd.MM.").unwrap();
        assert!(pattern.write("2024-02-29").is_ok() && pattern.write("2000-02-29").is_ok());
        for bad in [
            "",
            "2026-02-29",
            "1900-02-29",
            "2026-13-01",
            "2026-00-01",
            "2026-04-31",
            "2026-1-1",
            "26-01-01",
            "2026-01-01T00:00:00Z",
            "01.02.2026",
            "2026-01-00",
        ] {
            assert!(matches!(pattern.write(bad), Err(Cause::Date { .. })), "{bad}");
        }
    }
}
