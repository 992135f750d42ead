#!/usr/bin/env bash
# Generates requests from the gateway's own document and sends them to a `reshelf dev` of its own: every operation, valid and
# not, single and in sequences. Fails on any 5xx, undocumented status, wrong body or ignored token.
#
#   scripts/schemathesis.sh [SECONDS]      default 120
#
# Needs python3 with venv and a package registry once; not part of ./test (it takes longer than it finds per run).
# One check is left out, because what it holds against the gateway is meant: a valid-looking page token or tracking id is
# still refused when no page or operation is behind it (positive_data_acceptance).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
seconds=${1:-120}
readonly VERSION=4.32.5
program=${RESHELF:-target/debug/reshelf}
[[ -x $program ]] || { echo "build it first: cargo build --workspace" >&2; exit 2; }

work=$(mktemp -d)
server=""
cleanup() {
  [[ -n $server ]] && kill "$server" 2>/dev/null && wait "$server" 2>/dev/null
  rm -rf "$work"
}
trap cleanup EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet "schemathesis==$VERSION"
"$program" dev --data-dir "$work/data" --listen 127.0.0.1:0 >"$work/out" 2>&1 &
server=$!
for _ in $(seq 120); do
  [[ -s $work/data/gateway.addr && -s $work/data/operator.token ]] && break
  kill -0 "$server" || { cat "$work/out" >&2; exit 1; }
  sleep 0.5
done
api=$(<"$work/data/gateway.addr")
cd "$work"
# 8 requests a second stay below the rates of one operator.
"$work/venv/bin/schemathesis" run "${api%/}/openapi.json" --header "Authorization: Bearer $(<"$work/data/operator.token")" \
  --checks all --exclude-checks positive_data_acceptance --rate-limit 8/s --max-time "$seconds" --continue-on-failure
