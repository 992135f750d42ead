//! What each case of the corpus costs: the memory that it makes the process grow by at its peak, and how long it takes.
//!
//! The memory is bounded here. The time is told, not judged: it is the machine's as well.

use std::time::{Duration, Instant};

use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Most that one case may add at its peak, in bytes.
const MEMORY_MAX_BYTES: usize = 256 * 1024 * 1024;

/// The costs of the cases of one file so far.
#[derive(Default)]
pub(crate) struct Costs {
    cases: usize,
    largest: (usize, String),
    slowest: (Duration, String),
}

/// A case that runs.
pub(crate) struct Running {
    before: usize,
    at: Instant,
}

impl Running {
    pub(crate) fn begin() -> Self {
        MEMORY.reset_peak_usage();
        Self { before: MEMORY.current_usage(), at: Instant::now() }
    }
}

impl Costs {
    pub(crate) fn end(&mut self, running: &Running, case: &str) {
        let took = running.at.elapsed();
        let grew = MEMORY.peak_usage().saturating_sub(running.before);
        assert!(grew <= MEMORY_MAX_BYTES, "{case} took {grew} bytes of memory");
        self.cases += 1;
        if grew > self.largest.0 {
            self.largest = (grew, case.to_owned());
        }
        if took > self.slowest.0 {
            self.slowest = (took, case.to_owned());
        }
    }

    /// Says what the worst cases were.
    pub(crate) fn tell(&self, file: &str) {
        let Self { cases, largest: (bytes, most), slowest: (time, last) } = self;
        println!("{file}: {cases} cases; at most {} KiB ({most}) and {} ms ({last})", bytes / 1024, time.as_millis());
    }
}
