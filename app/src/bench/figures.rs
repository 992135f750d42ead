//! Numbers and the object they are printed in.

use std::time::Duration;

use serde_json::{Map, Value, json};

/// The figures of one run.
#[derive(Debug, Clone, Default)]
pub struct Report(Map<String, Value>);

impl Report {
    /// Sets a figure.
    pub(super) fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.0.insert(name.to_owned(), value.into());
    }

    /// One line of JSON.
    pub fn to_line(&self) -> String {
        Value::Object(self.0.clone()).to_string()
    }
}

/// Durations of the same thing done many times.
#[derive(Debug, Clone, Default)]
pub(super) struct Times(Vec<Duration>);

impl Times {
    pub(super) fn push(&mut self, time: Duration) {
        self.0.push(time);
    }

    pub(super) fn append(&mut self, mut more: Self) {
        self.0.append(&mut more.0);
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The time that this part of them does not exceed (nearest rank); none without any.
    pub(super) fn quantile_ms(&self, part: f64) -> Option<f64> {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a rank within a list of some thousands"
        )]
        let rank = (sorted.len() as f64 * part).ceil() as usize;
        sorted.get(rank.saturating_sub(1)).map(|time| rounded(time.as_secs_f64() * 1e3))
    }

    /// `{n, p50_ms, p99_ms}`.
    pub(super) fn to_json(&self) -> Value {
        json!({"n": self.len(), "p50_ms": self.quantile_ms(0.50), "p99_ms": self.quantile_ms(0.99)})
    }
}

/// `count` in `time`, a second.
pub(super) fn per_second(count: u64, time: Duration) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a rate needs no more than 52 bits")]
    let count = count as f64;
    rounded(count / time.as_secs_f64().max(1e-9))
}

/// `part / whole`; none of nothing.
pub(super) fn ratio(part: Option<f64>, whole: Option<f64>) -> Option<f64> {
    let (part, whole) = (part?, whole?);
    (whole > 0.0).then(|| rounded(part / whole))
}

/// To thousandths: more digits than any of these measurements has.
pub(super) fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_by_nearest_rank() {
        let mut times = Times::default();
        assert_eq!(times.quantile_ms(0.99), None);
        for ms in (1..=200).rev() {
            times.push(Duration::from_millis(ms));
        }
        assert_eq!((times.quantile_ms(0.50), times.quantile_ms(0.99)), (Some(100.0), Some(198.0)));
        assert_eq!(times.quantile_ms(1.0), Some(200.0));
    }
}
