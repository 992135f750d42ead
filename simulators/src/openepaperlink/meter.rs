//! What an access point was busy with: how long a request was being served, how long an upload, how many at once.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// Counts requests while they are served. In real time, whatever the clock says: it measures callers, not hardware.
#[derive(Debug, Default)]
pub(super) struct Meter(Mutex<Readings>);

/// What a meter shows.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Readings {
    /// Requests being served now, and the most ever.
    at_once: usize,
    pub(super) most_at_once: usize,
    /// Since when at least one request is being served; none while none is.
    since: Option<Instant>,
    /// Time in which at least one request was being served.
    pub(super) busy: Duration,
    /// Time that uploads took, added up.
    pub(super) uploading: Duration,
    /// When the first upload began, and how busy it had been by then.
    first: Option<(Instant, Duration)>,
    /// When the last upload ended, and how busy it had been by then.
    last: Option<(Instant, Duration)>,
    /// When the last request ended.
    ended: Option<Instant>,
    /// Longest time between two requests since the last upload began.
    gap: Duration,
    /// Longest time between two requests from the first upload to the last.
    pub(super) longest_gap: Duration,
}

/// A request, served until this goes.
pub(crate) struct Serving<'a> {
    meter: &'a Meter,
    since: Instant,
    is_upload: bool,
}

impl Meter {
    pub(super) fn readings(&self) -> Readings {
        *self.lock()
    }

    fn lock(&self) -> MutexGuard<'_, Readings> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a request from now until the guard goes.
    pub(super) fn serving(&self, is_upload: bool) -> Serving<'_> {
        let now = Instant::now();
        let mut readings = self.lock();
        if let (0, Some(ended)) = (readings.at_once, readings.ended) {
            readings.gap = readings.gap.max(now.duration_since(ended));
        }
        readings.at_once += 1;
        readings.most_at_once = readings.most_at_once.max(readings.at_once);
        readings.since.get_or_insert(now);
        if is_upload {
            let gap = std::mem::take(&mut readings.gap);
            if readings.first.is_some() {
                readings.longest_gap = readings.longest_gap.max(gap);
            } else {
                readings.first = Some((now, readings.busy_until(now)));
            }
        }
        Serving { meter: self, since: now, is_upload }
    }
}

impl Readings {
    fn busy_until(&self, now: Instant) -> Duration {
        self.busy + self.since.map_or(Duration::ZERO, |since| now.duration_since(since))
    }

    /// Time from the first upload's begin to the last one's end, and for how much of it a request was being served.
    pub(super) fn between_uploads(&self) -> (Duration, Duration) {
        let (Some((first, before)), Some((last, until))) = (self.first, self.last) else { return Default::default() };
        (last.duration_since(first), until.saturating_sub(before))
    }
}

impl Drop for Serving<'_> {
    fn drop(&mut self) {
        let now = Instant::now();
        let mut readings = self.meter.lock();
        if self.is_upload {
            readings.uploading += now.duration_since(self.since);
            readings.last = Some((now, readings.busy_until(now)));
        }
        readings.at_once = readings.at_once.saturating_sub(1);
        if readings.at_once == 0 {
            readings.busy = readings.busy_until(now);
            readings.since = None;
            readings.ended = Some(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_at_once_are_busy_time_once_and_what_lies_outside_the_uploads_is_left_out() {
        let meter = Meter::default();
        drop(meter.serving(false));
        assert_eq!(meter.readings().between_uploads(), (Duration::ZERO, Duration::ZERO));
        let upload = meter.serving(true);
        let beside = meter.serving(false);
        drop(upload);
        drop(beside);
        drop(meter.serving(false));
        let read = meter.readings();
        assert_eq!((read.most_at_once, read.at_once), (2, 0));
        let (span, busy) = read.between_uploads();
        assert_eq!((span, busy), (read.uploading, read.uploading), "busy from end to end, and no longer");
        assert!(read.busy >= busy);
        assert_eq!(read.longest_gap, Duration::ZERO, "no second upload yet");
        drop(meter.serving(true));
        let read = meter.readings();
        assert!(read.longest_gap > Duration::ZERO && read.longest_gap < read.between_uploads().0);
    }
}
