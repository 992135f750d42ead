#!/usr/bin/env bash
# A design refresh over 100,000 labels, killed with SIGKILL fifty times at random points of both stages. Takes about half
# an hour on two cores; the suite runs a smaller version. A seed may be given: scripts/kill-two-stage.sh 7
set -euo pipefail
cd "$(dirname "$0")/.."
export RESHELF_TWO_STAGE_KILLS=${RESHELF_TWO_STAGE_KILLS:-50}
export RESHELF_TWO_STAGE_STORES=${RESHELF_TWO_STAGE_STORES:-20}
export RESHELF_TWO_STAGE_LABELS=${RESHELF_TWO_STAGE_LABELS:-5000}
export RESHELF_KILL_SEED=${1:-$RANDOM}
echo "seed $RESHELF_KILL_SEED"
cargo build --release --locked -p app -p worker -p gateway
exec cargo test --release --locked -p tests --test it -- --exact --nocapture \
  kill_two_stage::killed_in_both_stages_each_link_is_enqueued_once
