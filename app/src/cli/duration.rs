//! Lengths of time on the command line: `90s`, `30m`, `1h`, `7d`.

use std::{ops::RangeInclusive, time::Duration};

/// Longest length that is accepted, in seconds: 90 days, beyond which nothing here is kept.
const SECONDS_MAX: u64 = 90 * 24 * 60 * 60;

/// A length out of a text such as `90s`, `30m`, `1h`, `7d`.
pub fn parse(text: &str) -> Result<Duration, String> {
    parse_within(text, 1..=SECONDS_MAX)
}

/// The same with other bounds, in seconds.
pub fn parse_within(text: &str, bounds: RangeInclusive<u64>) -> Result<Duration, String> {
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match text.get(number.len()..) {
        Some("s") => 1,
        Some("m") => 60,
        Some("h") => 60 * 60,
        Some("d") => 24 * 60 * 60,
        _ => return Err("needs a number with s, m, h or d, e.g. 30m".to_owned()),
    };
    let seconds = number.parse::<u64>().ok().and_then(|number| number.checked_mul(factor));
    match seconds {
        Some(seconds) if bounds.contains(&seconds) => Ok(Duration::from_secs(seconds)),
        _ => Err(format!("must be between {} and {}", short(*bounds.start()), short(*bounds.end()))),
    }
}

/// A bound as it would be written.
fn short(seconds: u64) -> String {
    if seconds.is_multiple_of(86_400) { format!("{}d", seconds / 86_400) } else { format!("{seconds}s") }
}

/// A length for people: its two largest units.
pub fn text(length: Duration) -> String {
    let seconds = length.as_secs();
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, minutes) => format!("{minutes} min {} s", seconds % 60),
        (0, hours, minutes) => format!("{hours} h {minutes} min"),
        (days, hours, _) => format!("{days} d {hours} h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths() {
        assert_eq!(parse("90s").unwrap().as_secs(), 90);
        assert_eq!(parse("1h").unwrap().as_secs(), 3_600);
        for bad in ["", "1", "h", "-1h", "0s", "91d", "1w", "9999999999999999999h", "999999999999999d"] {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
        assert_eq!(parse("91d").unwrap_err(), "must be between 1s and 90d");
        assert_eq!(text(Duration::from_secs(59)), "59 s");
        assert_eq!(text(Duration::from_secs(3_700)), "1 h 1 min");
        assert_eq!(text(Duration::from_hours(25)), "1 d 1 h");
    }
}
