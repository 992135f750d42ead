//! Hostile bytes for everything that parses: what each target begins with, and what it does with an input.
//!
//! `tests/it/fuzz.rs` tries each target for ten seconds in every `./test`; `scripts/fuzz.sh` builds the same ones for libFuzzer
//! (the package `tests/fuzz`), which follows what code an input reaches, and runs them long.
//!
//! Invariants
//! - No input makes a target panic, and what is accepted is what was given: written again, drawn, or signed by us.
//! - A target means the same in every run: keys and times in it are fixed.
//!
//! Reading order: `seeds`, then the targets by what they read: `names`, `tokens`, `messages` and `calls`, `drawings` and
//! `pictures`, `files`.
//!
//! Deliberately not here: how inputs are made.

mod calls;
mod drawings;
mod files;
mod messages;
mod names;
mod pictures;
mod seeds;
mod tokens;

use std::{borrow::Cow, fmt, fs, path::Path};

use crate::source::workspace_root;

/// Longest input, in bytes: that of a model's document.
pub const INPUT_MAX_BYTES: usize = 64 * 1024;

/// Inputs that broke a target once, one folder a target. Each stays, so that it never does again.
const FOUND: &str = "tests/corpus/fuzz";

/// A target's name, and how it is made.
pub type Known = (&'static str, fn() -> Target);
/// What tries an input.
type Hit = Box<dyn Fn(&[u8])>;

/// Every target by its name.
pub const TARGETS: &[Known] = &[
    ("names", names::names),
    ("tokens", tokens::tokens),
    ("claims", tokens::claims),
    ("messages", messages::messages),
    ("calls", calls::calls),
    ("cursors", calls::cursors),
    ("layouts", drawings::layouts),
    ("designs", drawings::designs),
    ("pngs", pictures::pngs),
    ("packed", pictures::packed),
    ("configurations", files::configurations),
    ("imports", files::imports),
];

/// Something that reads bytes.
pub struct Target {
    seeds: Vec<Vec<u8>>,
    hit: Hit,
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Target({} seeds)", self.seeds.len())
    }
}

impl Target {
    fn new(seeds: Vec<Vec<u8>>, hit: impl Fn(&[u8]) + 'static) -> Self {
        assert!(!seeds.is_empty(), "a target has seeds");
        Self { seeds, hit: Box::new(hit) }
    }

    /// The target of that name, with what broke it once among its seeds.
    pub fn named(name: &str) -> Self {
        let (_, target) = TARGETS.iter().find(|(known, _)| *known == name).expect("a target");
        let mut target = target();
        if let Ok(found) = fs::read_dir(workspace_root().join(FOUND).join(name)) {
            let mut paths: Vec<_> = found.map(|entry| entry.expect("an entry").path()).collect();
            paths.sort();
            target.seeds.extend(paths.into_iter().map(|path| fs::read(path).expect("an input")));
        }
        target
    }

    /// Inputs to begin with: the hostile corpus and the product's own files.
    pub fn seeds(&self) -> &[Vec<u8>] {
        &self.seeds
    }

    /// Tries an input. Panics when something is wrong with us.
    pub fn hit(&self, input: &[u8]) {
        (self.hit)(input);
    }

    /// Writes the seeds into an empty folder, a file each, as libFuzzer wants them.
    pub fn write_seeds(&self, folder: &Path) {
        for (number, seed) in self.seeds.iter().enumerate() {
            fs::write(folder.join(format!("seed-{number:04}")), seed).expect("a seed is written");
        }
    }
}

fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}
