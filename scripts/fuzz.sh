#!/usr/bin/env bash
# Runs the fuzz targets (tests/src/fuzz) long, under libFuzzer, which follows what code an input reaches. They are the same
# that every ./test tries for ten seconds each.
#
#   scripts/fuzz.sh                      every target, 600 seconds each, two at a time
#   scripts/fuzz.sh SECONDS [TARGET…]    so long; only these
#
# What reaches new code is kept in target/fuzz/corpus and gone on from the next time. An input that breaks a target (or takes
# 10 seconds, or 2 GiB) ends that target; the last lines say where it lies: commit it to tests/corpus/fuzz/TARGET with what
# mends it, and ./test tries it from then on. Needs a C++ compiler, and cargo-fuzz, which is installed below target/fuzz; the
# ordinary compiler will do.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly CARGO_FUZZ_VERSION=0.13.2
readonly JOBS=2
readonly INPUT_MAX_BYTES=65536
seconds=${1:-600}
shift || true

work="$(realpath -m "${CARGO_TARGET_DIR:-target}")/fuzz"
tool="$work/cargo-fuzz-$CARGO_FUZZ_VERSION"
if [[ ! -x $tool/bin/cargo-fuzz ]]; then
  cargo install --locked --quiet cargo-fuzz --version "$CARGO_FUZZ_VERSION" --root "$tool"
fi
# What the product is built of, in its versions; the package only adds libFuzzer.
cp Cargo.lock tests/fuzz/Cargo.lock
# Other sanitizers want a nightly compiler, and look for what no code without `unsafe` does.
"$tool/bin/cargo-fuzz" build --fuzz-dir tests/fuzz --target-dir "$work/build" --dev --sanitizer none
programs="$work/build/$(rustc -vV | sed -n 's/^host: //p')/debug"

if (($# == 0)); then
  mapfile -t targets < <("$tool/bin/cargo-fuzz" list --fuzz-dir tests/fuzz)
else
  targets=("$@")
fi
echo "${#targets[@]} targets, $seconds seconds each, $JOBS at a time"

# one TARGET: runs it, and says what came of it.
one() {
  local name=$1 last
  local corpus="$work/corpus/$name" seeds="$work/seeds/$name" found="$work/found/$name" log="$work/$name.log"
  rm -rf "$seeds" "$found"
  mkdir -p "$corpus" "$seeds" "$found"
  if RESHELF_FUZZ_SEEDS="$seeds" "$programs/$name" "$corpus" "$seeds" -artifact_prefix="$found/" \
    -max_total_time="$seconds" -timeout=10 -max_len="$INPUT_MAX_BYTES" -print_final_stats=1 >"$log" 2>&1; then
    last=$(grep -oE 'cov: [0-9]+ ft: [0-9]+ corp: [0-9]+' "$log" | tail -1)
    echo "$name: held; $last, $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") runs"
  else
    echo "$name: BROKEN by $(find "$found" -type f | tr '\n' ' ')see $log"
    return 1
  fi
}
export -f one
export work programs seconds INPUT_MAX_BYTES
printf '%s\n' "${targets[@]}" | xargs -P "$JOBS" -I {} bash -c 'one {}'
