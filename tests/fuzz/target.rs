//! One target under libFuzzer: which one, the program's own name says.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use tests::fuzz::Target;

/// Folder that the seeds are written to before libFuzzer reads it.
const SEEDS_FOLDER: &str = "RESHELF_FUZZ_SEEDS";

thread_local! {
    // libFuzzer has one thread of its own.
    static TARGET: Target = Target::named(env!("CARGO_BIN_NAME"));
}

fn begin() {
    if let Some(folder) = std::env::var_os(SEEDS_FOLDER) {
        TARGET.with(|target| target.write_seeds(Path::new(&folder)));
    }
}

fuzz_target!(init: begin(), |input: &[u8]| TARGET.with(|target| target.hit(input)));
