//! A value made of files, made anew when one of them changes.

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Between two looks at the files: a look costs a few system calls, a rotation may take a second to be seen.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What a change of a file changes: device, inode, length, change time.
type Stamp = (u64, u64, u64, i64, i64);
type Make<T> = Box<dyn Fn() -> Result<T, String> + Send + Sync>;

/// A value made of files. Looks at them when the value is asked for, at most once a second; there is no task to stop.
pub(crate) struct Watched<T> {
    what: &'static str,
    paths: Vec<PathBuf>,
    make: Make<T>,
    state: Mutex<State<T>>,
}

struct State<T> {
    value: Arc<T>,
    stamps: Vec<Option<Stamp>>,
    looked: Instant,
}

impl<T> Watched<T> {
    /// Makes the first value; its failure is the caller's.
    pub(crate) fn new(
        what: &'static str,
        paths: Vec<PathBuf>,
        make: impl Fn() -> Result<T, String> + Send + Sync + 'static,
    ) -> Result<Self, String> {
        // Stamps first: a change in between is seen at the next look.
        let stamps = stamps(&paths);
        let value = Arc::new(make()?);
        Ok(Self {
            what,
            paths,
            make: Box::new(make),
            state: Mutex::new(State { value, stamps, looked: Instant::now() }),
        })
    }

    /// The value of the files as they are, or the last good one.
    pub(crate) fn get(&self) -> Arc<T> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.looked.elapsed() < LOOK_EVERY {
            return Arc::clone(&state.value);
        }
        state.looked = Instant::now();
        let stamps = stamps(&self.paths);
        if stamps != state.stamps {
            match (self.make)() {
                Ok(value) => {
                    tracing::info!(what = self.what, "read again: its files changed");
                    state.value = Arc::new(value);
                    state.stamps = stamps;
                }
                // The stamps stay: files that are replaced one by one are tried again until they fit.
                Err(error) => tracing::warn!(what = self.what, %error, "not read again; the last good one stays"),
            }
        }
        Arc::clone(&state.value)
    }
}

fn stamps(paths: &[PathBuf]) -> Vec<Option<Stamp>> {
    let stamp = |path: &PathBuf| {
        let file = fs::metadata(path).ok()?;
        Some((file.dev(), file.ino(), file.len(), file.ctime(), file.ctime_nsec()))
    };
    paths.iter().map(stamp).collect()
}
