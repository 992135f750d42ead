//! Hostile bytes for everything that parses (`tests::fuzz`), ten seconds a target: its seeds, what broke it once, and then
//! mutations of these from a fixed seed, the same in every run as far as it comes. `scripts/fuzz.sh` goes on from there.

use std::{
    collections::BTreeSet,
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    time::{Duration, Instant},
};

use domain::{IdSource as _, SeededIds};
use tests::{
    fuzz::{INPUT_MAX_BYTES, TARGETS, Target},
    source::workspace_root,
};

/// For how long a target runs. Twelve, two at a time, take a minute of the test command.
const TIME: Duration = Duration::from_secs(10);
/// From where the mutations begin.
const SEED: u64 = 7;

/// Pieces that parsers stumble over.
const PIECES: &[&[u8]] = &[
    b"",
    b"\0",
    b"\n",
    b"/",
    b"..",
    b"%00",
    b"\"",
    b"'",
    b"<",
    b">",
    b"&",
    b"]]>",
    b"{",
    b"}",
    b"[[[[[[[[",
    b"]",
    b",",
    b":",
    b"-1",
    b"99999999999999999999",
    b"1e308",
    b"NaN",
    b"\xff\xfe",
    b"\xed\xa0\x80",
    "\u{202e}".as_bytes(),
    "\u{1d54f}".as_bytes(),
    b"\x80\x80\x80\x80\x10",
    b"\x0a\xff\xff\xff\xff\x07",
    b"url(#a)",
    b"href=",
    b"data:",
    b"<use href='#a'/>",
    b"<svg>",
    b"matrix(0 0 0 0 0 0)",
];

fn below(random: &SeededIds, end: usize) -> usize {
    let end = u64::try_from(end.max(1)).expect("a length");
    usize::try_from(random.below(end)).expect("below a length")
}

/// One of `seeds` after one to five random changes.
fn mutated(random: &SeededIds, seeds: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = seeds[below(random, seeds.len())].clone();
    for _ in 0..=below(random, 5) {
        let at = below(random, bytes.len() + 1);
        let until = (at + 1 + below(random, 16)).min(bytes.len());
        match below(random, 6) {
            0 if at < bytes.len() => bytes[at] ^= 1 << below(random, 8),
            1 if at < until => drop(bytes.drain(at..until)),
            2 => drop(bytes.splice(at..at, PIECES[below(random, PIECES.len())].iter().copied())),
            3 if at < until => {
                let again: Vec<u8> = bytes[at..until].repeat(1 + below(random, 64));
                drop(bytes.splice(at..at, again));
            }
            4 => {
                let other = &seeds[below(random, seeds.len())];
                let from = below(random, other.len() + 1);
                bytes.truncate(at);
                bytes.extend_from_slice(&other[from..]);
            }
            _ => bytes.truncate(at),
        }
    }
    bytes.truncate(INPUT_MAX_BYTES);
    bytes
}

fn run(name: &str) {
    let (target, begun) = (Target::named(name), Instant::now());
    let hit = |input: &[u8]| {
        let ran = catch_unwind(AssertUnwindSafe(|| target.hit(input)));
        assert!(ran.is_ok(), "it panics on b\"{}\"", input.escape_ascii());
    };
    target.seeds().iter().for_each(|seed| hit(seed));
    let (random, mut mutations) = (SeededIds::new(SEED), 0_u64);
    while begun.elapsed() < TIME {
        hit(&mutated(&random, target.seeds()));
        mutations += 1;
    }
    println!("{name}: {} seeds, {mutations} mutations", target.seeds().len());
}

#[test]
fn names() {
    run("names");
}

#[test]
fn tokens() {
    run("tokens");
}

#[test]
fn claims() {
    run("claims");
}

#[test]
fn messages() {
    run("messages");
}

#[test]
fn calls() {
    run("calls");
}

#[test]
fn cursors() {
    run("cursors");
}

#[test]
fn layouts() {
    run("layouts");
}

#[test]
fn designs() {
    run("designs");
}

#[test]
fn pngs() {
    run("pngs");
}

#[test]
fn packed() {
    run("packed");
}

#[test]
fn configurations() {
    run("configurations");
}

#[test]
fn imports() {
    run("imports");
}

/// A target that only one of the two runs would be forgotten.
#[test]
fn every_target_is_tried_here_and_run_long() {
    let read = |path: &str| fs::read_to_string(workspace_root().join(path)).expect("a file");
    let quoted = |text: &str, before: &str| -> BTreeSet<String> {
        let names = text.split(before).skip(1).filter_map(|rest| rest.split_once('"'));
        names.map(|(name, _)| name.to_owned()).collect()
    };
    let targets: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(quoted(&read("tests/tests/it/fuzz.rs"), "\n    run(\""), targets);
    assert_eq!(quoted(&read("tests/fuzz/Cargo.toml"), "[[bin]]\nname = \""), targets);
}
