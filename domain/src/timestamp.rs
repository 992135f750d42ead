//! Points in time, in whole milliseconds: the precision both database engines and the wire keep.

use std::fmt;

/// How far ahead an SLA timestamp may lie, in milliseconds (30 days): later ones are clamped, so a slip in a year
/// cannot park work for ever.
pub const SLA_MAX_AHEAD_MS: i64 = 30 * 24 * 60 * 60 * 1000;

/// Milliseconds since 1970-01-01T00:00:00Z.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(i64);

impl Timestamp {
    /// From milliseconds since the Unix epoch.
    pub const fn from_ms(ms: i64) -> Self {
        Self(ms)
    }

    /// Milliseconds since the Unix epoch.
    pub const fn as_ms(self) -> i64 {
        self.0
    }

    /// This point moved by `ms` milliseconds, saturating at the edges of `i64`.
    #[must_use]
    pub const fn plus_ms(self, ms: i64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// Milliseconds from `earlier` to this point; negative when `earlier` is later.
    pub const fn ms_since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// The SLA timestamp that counts: `asked` within `[now, now + 30 days]`, or now when none was asked.
pub fn sla_clamp(asked: Option<Timestamp>, now: Timestamp) -> Timestamp {
    asked.unwrap_or(now).clamp(now, now.plus_ms(SLA_MAX_AHEAD_MS))
}

impl fmt::Display for Timestamp {
    /// RFC 3339 in UTC with milliseconds, for logs and the REST API.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let days = self.0.div_euclid(86_400_000);
        let ms = self.0.rem_euclid(86_400_000);
        let (year, month, day) = civil_from_days(days);
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:03}Z",
            ms / 3_600_000,
            ms / 60_000 % 60,
            ms / 1000 % 60,
            ms % 1000
        )
    }
}

/// Proleptic Gregorian date of a day count since 1970-01-01, by shifting the year to start in March.
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let shifted = days.saturating_add(719_468);
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_shifted + 2) / 5 + 1;
    let month = if month_shifted < 10 { month_shifted + 3 } else { month_shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_is_rfc_3339() {
        assert_eq!(Timestamp::from_ms(0).to_string(), "1970-01-01T00:00:00.000Z");
        assert_eq!(Timestamp::from_ms(1_709_210_096_789).to_string(), "2024-02-29T12:34:56.789Z");
        assert_eq!(Timestamp::from_ms(-1).to_string(), "1969-12-31T23:59:59.999Z");
    }

    #[test]
    fn sla_is_clamped_both_ways() {
        let now = Timestamp::from_ms(1_000_000);
        assert_eq!(sla_clamp(None, now), now);
        assert_eq!(sla_clamp(Some(Timestamp::from_ms(5)), now), now);
        assert_eq!(sla_clamp(Some(Timestamp::from_ms(i64::MAX)), now), now.plus_ms(SLA_MAX_AHEAD_MS));
    }
}
