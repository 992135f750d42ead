//! What the product is built of: floors of known advisories, kept offline, and a list of everything for those who ask.
//!
//! Advisory databases need a network and, for some of these, know nothing (a library's C code, a repaired default). The list
//! is `tests/advisory-floors.json`; `scripts/sbom.sh` writes the bill of materials.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    process::Command,
};

use cargo_metadata::{MetadataCommand, semver::Version};
use serde_json::Value;
use tests::source::workspace_root;

#[derive(Debug)]
struct Floor {
    package: String,
    least: Version,
    why: String,
}

/// The floors, and the packages that must not be there.
fn floors() -> (Vec<Floor>, BTreeMap<String, String>) {
    let path = workspace_root().join("tests/advisory-floors.json");
    let document: Value =
        serde_json::from_str(&fs::read_to_string(path).expect("the floors")).expect("the floors are JSON");
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let floors = document["floors"].as_object().expect("floors").iter().map(|(package, floor)| Floor {
        package: package.clone(),
        least: text(&floor["least"]).parse().expect("a version"),
        why: text(&floor["why"]),
    });
    let banned = document["banned"].as_object().expect("banned").iter();
    (floors.collect(), banned.map(|(package, why)| (package.clone(), text(why))).collect())
}

/// Every package of the lock file: also what other platforms and build scripts use.
fn locked() -> Vec<(String, Version)> {
    let lock = fs::read_to_string(workspace_root().join("Cargo.lock")).expect("the lock file");
    let packages = lock.split("[[package]]").skip(1).map(|package| {
        let field = |name: &str| {
            let line = package.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = \""));
            line.and_then(|line| line.strip_suffix('"')).expect("a field").to_owned()
        };
        (field("name"), field("version").parse().expect("a version"))
    });
    packages.collect()
}

#[test]
fn no_dependency_is_below_the_floor_of_an_advisory() {
    let (floors, banned) = floors();
    let mut found = 0;
    for (name, version) in locked() {
        if let Some(why) = banned.get(&name) {
            panic!("{name} {version} is in the tree: {why}");
        }
        for floor in floors.iter().filter(|floor| floor.package == name) {
            assert!(version >= floor.least, "{name} {version} is below {}: {}", floor.least, floor.why);
            found += 1;
        }
    }
    assert!(found >= 20, "only {found} of the listed packages were found: are the names right?");
}

/// Every room forbids unsafe code: through the workspace's lints, which it must take over.
#[test]
fn unsafe_code_is_forbidden_everywhere() {
    let root = fs::read_to_string(workspace_root().join("Cargo.toml")).expect("the manifest");
    assert!(root.contains("unsafe_code = \"forbid\""), "the workspace forbids unsafe code");
    let metadata =
        MetadataCommand::new().manifest_path(workspace_root().join("Cargo.toml")).no_deps().exec().expect("metadata");
    assert!(metadata.packages.len() >= 12);
    for package in metadata.packages {
        let manifest = fs::read_to_string(&package.manifest_path).expect("a manifest");
        assert!(manifest.contains("[lints]\nworkspace = true"), "{} does not take over the lints", package.name);
    }
}

/// The bill of materials has what the programs are built of, in the versions of the lock file, and nothing that only tests use.
#[test]
fn the_bill_of_materials_is_what_is_built_in() {
    let written = Command::new("bash").arg(workspace_root().join("scripts/sbom.sh")).output().expect("bash runs");
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    let bill: Value = serde_json::from_slice(&written.stdout).expect("the bill is JSON");
    assert_eq!((&bill["bomFormat"], &bill["specVersion"]), (&"CycloneDX".into(), &"1.5".into()));
    let locked: BTreeSet<String> =
        locked().into_iter().map(|(name, version)| format!("pkg:cargo/{name}@{version}")).collect();
    let mut names = BTreeSet::new();
    for component in bill["components"].as_array().expect("components") {
        let purl = component["purl"].as_str().expect("a purl");
        assert!(locked.contains(purl), "{purl} is not in the lock file");
        assert!(component["licenses"][0]["expression"].is_string(), "{purl} has no licence");
        names.insert(component["name"].as_str().expect("a name"));
    }
    for name in ["aws-lc-sys", "axum", "libsqlite3-sys", "resvg", "rustls", "tonic"] {
        assert!(names.contains(name), "{name} is missing");
    }
    for name in ["bolero", "cargo_metadata", "proptest", "rxing"] {
        assert!(!names.contains(name), "{name} is in no program");
    }
}
