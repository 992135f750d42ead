#!/usr/bin/env bash
# 100,000 labels refreshed by three workers, two platform servers and two gateways over one PostgreSQL, killed with SIGKILL
# thirty times at random, PostgreSQL ended twice as by a power cut. Takes about half an hour on two cores; the suite runs a
# smaller version. A seed may be given: scripts/kill-cluster.sh 7
set -euo pipefail
cd "$(dirname "$0")/.."
export RESHELF_CLUSTER_KILLS=${RESHELF_CLUSTER_KILLS:-30}
export RESHELF_CLUSTER_STORES=${RESHELF_CLUSTER_STORES:-50}
export RESHELF_CLUSTER_LABELS=${RESHELF_CLUSTER_LABELS:-2000}
export RESHELF_KILL_SEED=${1:-$RANDOM}
echo "seed $RESHELF_KILL_SEED"
cargo build --release --locked -p app -p worker -p gateway
exec cargo test --release --locked -p tests --test it -- --exact --nocapture \
  kill_many::many_processes_and_postgres_killed_at_random_nothing_is_lost
