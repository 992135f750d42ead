//! Which version of its model a label shows, read from its picture, and a watch over all labels that notices when one
//! goes back.

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use picture::Ink;
use serde_json::{Value, json};

use crate::{data, pictures::shown};

/// Top of the bar that shows the version, below everything else of the layout.
const BAR_TOP: u32 = 125;
/// Pixels of the bar for each version. The panel has room for 148.
const BAR_STEP: u32 = 2;
/// Pause between two looks at all labels.
const PAUSE: Duration = Duration::from_millis(10);

/// [`data::layout`] with a bar as long as the version, so that a program can read it. A picture without one shows 0.
pub fn layout(name: &str, version: u32) -> String {
    let mut layout: Value = serde_json::from_str(&data::layout(name, version)).expect("a layout");
    let elements = layout.pointer_mut("/variants/0/elements").and_then(Value::as_array_mut).expect("its elements");
    elements.push(json!({
        "kind": "rect", "id": "version", "box": [0, BAR_TOP, BAR_STEP * version, 3], "fill": "black",
    }));
    layout.to_string()
}

/// The version that a label shows.
pub fn version(png: &Path) -> Result<u32, String> {
    let pixels = shown(png)?;
    let from = usize::try_from((BAR_TOP + 1) * pixels.width).map_err(|error| error.to_string())?;
    let row = pixels.rgb.get(from..).ok_or("too low a picture")?;
    let width = usize::try_from(pixels.width).map_err(|error| error.to_string())?;
    let bar = row.iter().take(width).take_while(|rgb| **rgb == Ink::Black.srgb()).count();
    u32::try_from(bar).map(|bar| bar / BAR_STEP).map_err(|error| error.to_string())
}

/// A thread that looks at every label, over and over.
#[derive(Debug)]
pub struct Watch {
    seen: Arc<Mutex<Seen>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// What a watch saw.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    versions: Vec<u32>,
    /// How often a label was seen with a newer picture.
    pub forward: u64,
    /// Labels seen with an older version after a newer one, and what could not be read.
    pub wrong: Vec<String>,
}

impl Seen {
    /// Labels that show this version or a later one.
    pub fn at_least(&self, version: u32) -> usize {
        self.versions.iter().filter(|seen| **seen >= version).count()
    }
}

fn locked(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().expect("the watch goes on")
}

impl Watch {
    /// Looks at these labels from now on. Each must be there.
    pub fn over(labels: Vec<PathBuf>) -> Self {
        let seen = Arc::new(Mutex::new(Seen { versions: vec![0; labels.len()], ..Seen::default() }));
        let stop = Arc::new(AtomicBool::new(false));
        let (shared, told) = (Arc::clone(&seen), Arc::clone(&stop));
        let thread = std::thread::spawn(move || {
            let mut files = vec![(0, 0, 0); labels.len()];
            // Once more after being told, so that the end is seen.
            let mut last = false;
            while !last {
                last = told.load(Ordering::Acquire);
                for (index, (label, file)) in labels.iter().zip(&mut files).enumerate() {
                    look(label, file, &shared, index);
                }
                std::thread::park_timeout(PAUSE);
            }
        });
        Self { seen, stop, thread: Some(thread) }
    }

    /// What it saw so far.
    pub fn seen(&self) -> Seen {
        locked(&self.seen).clone()
    }

    /// Ends it; what it saw, the last state included.
    pub fn end(mut self) -> Seen {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the watch ends");
        }
        self.seen()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
    }
}

/// Reads the picture when its file is another one than before.
fn look(label: &Path, file: &mut (u64, i64, i64), seen: &Mutex<Seen>, index: usize) {
    let Ok(found) = fs::metadata(label) else {
        locked(seen).wrong.push(format!("{} is gone", label.display()));
        return;
    };
    let found = (found.ino(), found.mtime(), found.mtime_nsec());
    if found == *file {
        return;
    }
    *file = found;
    let read = version(label);
    let mut seen = locked(seen);
    let before = seen.versions.get(index).copied().unwrap_or_default();
    match read {
        Ok(now) if now < before => seen.wrong.push(format!("{}: {now} after {before}", label.display())),
        Ok(now) => {
            seen.forward += u64::from(now > before);
            if let Some(slot) = seen.versions.get_mut(index) {
                *slot = now;
            }
        }
        Err(error) => seen.wrong.push(error),
    }
}
