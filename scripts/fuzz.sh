#!/usr/bin/env bash
# Runs the fuzz targets long, each for SECONDS (default 600), with new random mutations. The same targets run for a moment
# in every ./test. A failure prints the input: add it to the corpus with the answer it must get.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
RESHELF_FUZZ_SECONDS=${1:-600} cargo nextest run --workspace --no-fail-fast -E 'test(/^fuzz::/)' --no-capture
