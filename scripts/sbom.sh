#!/usr/bin/env bash
# Writes a bill of materials (CycloneDX 1.5, JSON) of everything the programs are built of, to standard output.
# Needs cargo and python3; no network.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cargo metadata --locked --offline --filter-platform x86_64-unknown-linux-gnu --format-version 1 | python3 -c '
import json, sys

metadata = json.load(sys.stdin)
ours = set(metadata["workspace_members"])
# What only tests and build scripts use is no part of the programs.
nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
reached, todo = set(), [member for member in ours if member.split("#")[0].rstrip("/").rsplit("/", 1)[-1] != "tests"]
while todo:
    name = todo.pop()
    if name in reached:
        continue
    reached.add(name)
    for dependency in nodes[name]["deps"]:
        if any(kind["kind"] is None for kind in dependency["dep_kinds"]):
            todo.append(dependency["pkg"])
components = []
for package in sorted(metadata["packages"], key=lambda package: (package["name"], package["version"])):
    if package["id"] in ours or package["id"] not in reached:
        continue
    components.append({
        "type": "library", "name": package["name"], "version": package["version"],
        "purl": "pkg:cargo/{}@{}".format(package["name"], package["version"]),
        "licenses": [{"expression": package["license"]}] if package["license"] else [],
    })
json.dump({"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
           "metadata": {"component": {"type": "application", "name": "reshelf"}}, "components": components}, sys.stdout, indent=1)
print()
'
