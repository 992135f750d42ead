//! When a label is looked after, or sent to, again. Pure.

use std::time::Duration;

use domain::Timestamp;

use super::drivers::Looks;

/// The next look at a picture sent at `sent_at`. Waits grow with its age, and all labels of an access point (`salt`) share
/// the moments of their looks, so that one call serves them all.
pub(super) fn next_look(looks: Looks, sent_at: Timestamp, now: Timestamp, salt: u64) -> Timestamp {
    let (first, longest) = (ms(looks.first).max(1), ms(looks.longest).max(1));
    let wanted = (now.ms_since(sent_at) / 2).clamp(first, longest.max(first));
    // The largest doubling of the first wait that is not longer than wanted.
    let grid = first << (wanted / first).ilog2();
    let phase = i64::try_from(salt % u64::try_from(grid).unwrap_or(1)).unwrap_or(0);
    let earliest = now.plus_ms(grid / 2).as_ms();
    let steps = (earliest - phase).div_euclid(grid) + 1;
    Timestamp::from_ms(steps * grid + phase)
}

/// How long a label waits that was lost `losses` times in a row: not at all at first, then longer each time.
pub(super) fn after_losses(losses: u32, now: Timestamp) -> Option<Timestamp> {
    /// The wait after the second loss in a row, in milliseconds.
    const FIRST_MS: i64 = 10_000;
    /// The longest wait, in milliseconds: a label whose hardware loses everything costs its access point little.
    const LONGEST_MS: i64 = 60 * 60 * 1_000;
    let doublings = losses.checked_sub(2)?;
    Some(now.plus_ms(FIRST_MS.saturating_mul(1 << doublings.min(16)).min(LONGEST_MS)))
}

/// When a picture is sent again that its access point did not take `attempts` times; none when it is given up.
///
/// CQS's own retries end within minutes, which suits services. Hardware takes longer: an access point that lost its list of
/// labels knows each again when that checks in, which may take an hour.
pub(super) fn next_attempt(attempts: u32, now: Timestamp, salt: u64) -> Option<Timestamp> {
    /// Attempts before the label fails: some two hours.
    const ATTEMPTS_MAX: u32 = 20;
    /// Bound of the wait after the first attempt, in milliseconds.
    const FIRST_MS: i64 = 1_000;
    /// Bound of every wait, in milliseconds.
    const LONGEST_MS: i64 = 10 * 60 * 1_000;
    if attempts >= ATTEMPTS_MAX {
        return None;
    }
    let bound = FIRST_MS.saturating_mul(1 << attempts.saturating_sub(1).min(16)).min(LONGEST_MS);
    let spread = i64::try_from(salt.rotate_left(attempts) % 1_000).unwrap_or(0);
    Some(now.plus_ms(bound / 2 + bound / 2 * spread / 1_000 + 1))
}

fn ms(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOKS: Looks = Looks { first: Duration::from_secs(10), longest: Duration::from_mins(5) };

    #[test]
    fn waits_grow_with_age_and_stay_in_their_bounds() {
        let sent = Timestamp::from_ms(1_800_000_000_123);
        let mut now = sent;
        let mut waits = Vec::new();
        while now.ms_since(sent) < 24 * 3_600_000 {
            let next = next_look(LOOKS, sent, now, 0xdead_beef);
            waits.push(next.ms_since(now));
            now = next;
        }
        assert!(waits.iter().all(|wait| (5_000..=450_000).contains(wait)), "{waits:?}");
        assert!(waits[0] <= 15_000 && *waits.last().unwrap() >= 80_000, "{waits:?}");
        assert!(waits.len() < 24 * 3600 / 80, "{}", waits.len());
    }

    #[test]
    fn labels_of_an_access_point_share_their_moments() {
        let sent = Timestamp::from_ms(1_800_000_000_000);
        let moments: std::collections::BTreeSet<i64> = (0..100)
            .map(|label| next_look(LOOKS, sent.plus_ms(label * 17), sent.plus_ms(label * 29), 77).as_ms())
            .collect();
        assert_eq!(moments.len(), 1, "{moments:?}");
    }

    #[test]
    fn attempts_come_at_growing_intervals_and_end() {
        let mut now = Timestamp::from_ms(0);
        let mut attempts = 1;
        while let Some(next) = next_attempt(attempts, now, 0x5bd1_e995_0000_ffff) {
            assert!(next > now && next.ms_since(now) <= 600_001, "{attempts}");
            (now, attempts) = (next, attempts + 1);
        }
        assert_eq!(attempts, 20);
        let minutes = now.as_ms() / 60_000;
        assert!((50..=150).contains(&minutes), "{minutes}");
    }

    #[test]
    fn a_first_loss_is_made_good_at_once() {
        let now = Timestamp::from_ms(0);
        assert_eq!(after_losses(1, now), None);
        assert_eq!(after_losses(2, now), Some(now.plus_ms(10_000)));
        assert_eq!(after_losses(40, now), Some(now.plus_ms(3_600_000)));
    }
}
