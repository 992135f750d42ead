#!/usr/bin/env bash
# Generates requests from the gateway's own document and sends them to a `reshelf dev` of its own: every operation, valid and
# not, single and in sequences along the document's links. Fails on any 5xx, undocumented status, wrong body, ignored token,
# valid request that is refused and invalid one that is accepted: all checks that there are.
#
#   scripts/schemathesis.sh [EXAMPLES [SEED…]]      default: what ./test runs, 8 examples of each operation from seed 1
#
# Long: scripts/schemathesis.sh 300 $RANDOM $RANDOM
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
examples=${1:-8}
seeds=("${@:2}")
((${#seeds[@]} > 0)) || seeds=(1)
# Operators that ask in turn: each has its own rates, of 10 actions a second.
readonly OPERATORS=24
program=${RESHELF:-${CARGO_TARGET_DIR:-target}/debug/reshelf}
[[ -x $program ]] || { echo "build it first: cargo build --workspace" >&2; exit 2; }
tools=$(scripts/python-tools.sh)

work=$(mktemp -d)
server=""
cleanup() {
  if [[ -n $server ]]; then
    kill "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
  fi
  rm -rf "$work"
}
trap cleanup EXIT
"$program" dev --data-dir "$work/data" --listen 127.0.0.1:0 >"$work/out" 2>&1 &
server=$!
for _ in $(seq 240); do
  [[ -s $work/data/gateway.addr && -s $work/data/operator.token ]] && break
  kill -0 "$server" || { cat "$work/out" >&2; exit 1; }
  sleep 0.5
done
api=$(<"$work/data/gateway.addr")
tokens=""
for number in $(seq "$OPERATORS"); do
  tokens+="$("$program" token --data-dir "$work/data" --subject "operator-$number@localhost" --lifetime 12h) "
done
failed=0
for seed in "${seeds[@]}"; do
  echo "seed $seed, $examples examples"
  (
    cd "$work"
    RESHELF_API=${api%/} RESHELF_TOKENS=$tokens PYTHONPATH="$OLDPWD/tests/schemathesis" PYTHONDONTWRITEBYTECODE=1 SCHEMATHESIS_HOOKS=hooks \
      "$tools/schemathesis" --config-file "$OLDPWD/tests/schemathesis/schemathesis.toml" run "${api%/}/openapi.json" \
      --checks all --seed "$seed" --max-examples "$examples"
  ) || failed=1
done
exit "$failed"
