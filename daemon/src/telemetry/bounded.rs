//! A log file a day, bounded in bytes: something that goes round in circles at night does not fill the disk.

use std::{fs, io, path::Path, time::UNIX_EPOCH};

use domain::Clock as _;

use crate::SystemClock;

/// Bytes a day: some 400,000 lines, ten times a busy day of `dev`.
pub(super) const DAY_MAX_BYTES: u64 = 64 * 1024 * 1024;
/// The last line of a day that had more.
const FULL: &[u8] = b"this day's log is full; the rest of the day is not written down\n";

/// Writes to `inner` until the day's bytes are used up.
pub(super) struct BoundedDaily<W> {
    inner: W,
    max: u64,
    written: u64,
    day: u64,
    today: fn() -> u64,
}

/// Days since 1970, in UTC, as the files roll.
pub(super) fn today() -> u64 {
    u64::try_from(SystemClock.now().as_ms() / 86_400_000).unwrap_or_default()
}

/// What a process before this one wrote today: the length of the newest log file in `dir`.
pub(super) fn written_today(dir: &Path) -> u64 {
    let newest = fs::read_dir(dir).ok().and_then(|files| {
        let logs = files.filter_map(Result::ok).filter(|file| file.path().extension().is_some_and(|end| end == "log"));
        logs.filter_map(|file| file.metadata().ok()).max_by_key(|file| file.modified().ok())
    });
    let is_todays = |file: &fs::Metadata| {
        let changed = file.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        changed.is_some_and(|since| since.as_secs() / 86_400 == today())
    };
    newest.filter(is_todays).map_or(0, |file| file.len())
}

impl<W> BoundedDaily<W> {
    pub(super) fn new(inner: W, max: u64, written: u64, today: fn() -> u64) -> Self {
        Self { inner, max, written, day: today(), today }
    }
}

impl<W: io::Write> io::Write for BoundedDaily<W> {
    /// Takes a whole line or none of it; what is left out counts as taken, since nobody could do anything about it.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let day = (self.today)();
        if day != self.day {
            (self.day, self.written) = (day, 0);
        }
        let length = u64::try_from(line.len()).unwrap_or(u64::MAX);
        if self.written.saturating_add(length) <= self.max {
            self.inner.write_all(line)?;
            self.written += length;
        } else if self.written <= self.max {
            // Once: the line takes the count beyond the bound.
            self.inner.write_all(FULL)?;
            self.written = self.max.saturating_add(1);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::Write as _,
        sync::atomic::{AtomicU64, Ordering},
    };

    use super::*;

    static DAY: AtomicU64 = AtomicU64::new(1);

    #[test]
    fn a_day_has_its_bytes_and_says_when_they_are_used_up() {
        let mut log = BoundedDaily::new(Vec::new(), 20, 5, || DAY.load(Ordering::Relaxed));
        for _ in 0..100 {
            log.write_all(b"12345678\n").unwrap();
        }
        let first_day = [b"12345678\n", FULL].concat();
        assert_eq!(log.inner, first_day, "one line, then the note, once");
        DAY.store(2, Ordering::Relaxed);
        log.write_all(b"12345678\n").unwrap();
        assert_eq!(log.inner.len(), first_day.len() + 9, "the next day goes on");
    }

    #[test]
    fn what_was_written_today_counts() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(written_today(folder.path()), 0);
        fs::write(folder.path().join("reshelf.2026-01-01.log"), "0123456789").unwrap();
        assert_eq!(written_today(folder.path()), 10);
    }
}
