//! The arrows and the other rules of the architecture that no compiler holds.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, PackageId};
use tests::source::{SourceFile, sources, workspace_root};

/// Which rooms a room may name in its normal dependencies. `app` and `tests` may name all.
const ARROWS: &[(&str, &[&str])] = &[
    ("domain", &[]),
    ("proto", &["domain"]),
    ("daemon", &["proto", "domain"]),
    ("picture", &["domain"]),
    ("render", &["picture", "domain"]),
    ("cluster", &[]),
    ("db", &["domain"]),
    ("cqs", &["db", "daemon", "proto", "domain"]),
    ("dtoflow", &["cqs", "db", "daemon", "proto", "domain"]),
    ("worker", &["render", "picture", "daemon", "proto", "domain"]),
    ("gateway", &["picture", "daemon", "proto", "domain"]),
    ("simulators", &["picture", "domain"]),
];
/// Rooms that compose the others.
const COMPOSERS: &[&str] = &["app", "tests"];

/// What a room must not reach, however many steps away.
const OUT_OF_REACH: &[(&str, &[&str])] = &[
    ("domain", &["sqlx", "tonic", "axum", "tokio"]),
    ("picture", &["sqlx", "tonic", "axum", "tokio", "hyper", "reqwest", "mio"]),
    ("render", &["sqlx", "tonic", "axum", "tokio", "hyper", "reqwest", "mio"]),
    ("proto", &["sqlx"]),
    ("daemon", &["sqlx"]),
    ("worker", &["sqlx"]),
    ("gateway", &["sqlx"]),
];

/// Where SQL may stand.
const SQL_ROOMS: &[&str] = &["cqs/src/sqlite", "cqs/src/postgres", "dtoflow/src/sqlite", "dtoflow/src/postgres", "db/"];
/// Files elsewhere that hold SQL, each with its reason.
const SQL_ELSEWHERE: &[(&str, &str)] = &[(
    "app/src/bench/split.rs",
    "the lower bound a split is measured against is a plain insert, so it must go round the twin",
)];
/// Rooms that may name the database library at all, e.g. to turn its errors into theirs.
const STORAGE_ROOMS: &[&str] = &["cqs/", "dtoflow/", "db/"];

/// Longest file, in lines without its tests: about what one reads in a sitting.
const FILE_LINES_MAX: usize = 500;
/// Longer files, each with its reason.
const LONG_FILES: &[(&str, &str)] = &[];

fn metadata() -> Metadata {
    MetadataCommand::new()
        .manifest_path(workspace_root().join("Cargo.toml"))
        // This platform only: a build fetches nothing that other platforms would need.
        .other_options([
            "--offline".to_owned(),
            "--filter-platform".to_owned(),
            format!("{}-unknown-linux-gnu", std::env::consts::ARCH),
        ])
        .exec()
        .expect("cargo metadata reads the workspace")
}

/// Normal dependencies of every package.
fn normal_edges(metadata: &Metadata) -> HashMap<&PackageId, Vec<&PackageId>> {
    let resolve = metadata.resolve.as_ref().expect("cargo metadata resolves");
    resolve
        .nodes
        .iter()
        .map(|node| {
            let normal = node
                .deps
                .iter()
                .filter(|dep| dep.dep_kinds.iter().any(|kind| kind.kind == DependencyKind::Normal))
                .map(|dep| &dep.pkg);
            (&node.id, normal.collect())
        })
        .collect()
}

fn names(metadata: &Metadata) -> HashMap<&PackageId, &str> {
    metadata.packages.iter().map(|package| (&package.id, package.name.as_str())).collect()
}

fn rooms(metadata: &Metadata) -> BTreeMap<&str, &PackageId> {
    let names = names(metadata);
    metadata.workspace_members.iter().map(|id| (names[id], id)).collect()
}

#[test]
fn arrows_between_rooms_go_down() {
    let metadata = metadata();
    let (edges, names, rooms) = (normal_edges(&metadata), names(&metadata), rooms(&metadata));
    let mut wrong = Vec::new();
    for (room, id) in &rooms {
        if COMPOSERS.contains(room) {
            continue;
        }
        let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| name == room) else {
            wrong.push(format!("{room} is not in the table of rooms"));
            continue;
        };
        for dependency in &edges[id] {
            let name = names[dependency];
            if rooms.contains_key(name) && !allowed.contains(&name) {
                wrong.push(format!("{room} must not import {name}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn rooms_do_not_reach_what_they_must_not_know() {
    let metadata = metadata();
    let (edges, names, rooms) = (normal_edges(&metadata), names(&metadata), rooms(&metadata));
    let mut wrong = Vec::new();
    for (room, forbidden) in OUT_OF_REACH {
        let start = rooms.get(room).unwrap_or_else(|| panic!("there is no room {room}"));
        // Each package with the one it was reached from, to say how.
        let mut from: HashMap<&PackageId, &PackageId> = HashMap::new();
        let mut open = vec![*start];
        while let Some(package) = open.pop() {
            for next in &edges[package] {
                if *next != *start && !from.contains_key(next) {
                    from.insert(next, package);
                    open.push(next);
                }
            }
        }
        for reached in from.keys() {
            if forbidden.contains(&names[reached]) {
                let mut path = vec![names[reached]];
                let mut step = *reached;
                while let Some(before) = from.get(step) {
                    path.push(names[before]);
                    step = before;
                }
                path.reverse();
                wrong.push(path.join(" -> "));
            }
        }
    }
    // The rule would hold vacuously if the storage rooms did not use it either.
    let sqlx_users: BTreeSet<&str> = edges
        .iter()
        .filter(|(_, deps)| deps.iter().any(|dep| names[*dep] == "sqlx"))
        .map(|(id, _)| names[*id])
        .collect();
    assert!(sqlx_users.contains("db"), "db does not use sqlx: {sqlx_users:?}");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Beginnings of statements that are hardly anything else.
fn is_sql(text: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.windows(2).any(|pair| {
        matches!(pair, ["INSERT", "INTO" | "OR"] | ["DELETE", "FROM"] | ["CREATE", "TABLE" | "INDEX"])
            || pair[0] == "PRAGMA"
            || pair[0] == "SELECT"
    }) || words.windows(3).any(|three| three[0] == "UPDATE" && three[2] == "SET")
}

#[test]
fn sql_stands_only_in_the_twins_and_in_db() {
    let all = sources();
    let lies_in = |file: &SourceFile, rooms: &[&str]| rooms.iter().any(|room| file.path.starts_with(room));
    let wrong: Vec<&str> = all
        .iter()
        // The checker in tests/ reads the tables on purpose: it shares no code with the system. A storage room's own tests
        // break rows on purpose.
        .filter(|file| !(file.path.starts_with("tests/") || file.is_test() && lies_in(file, STORAGE_ROOMS)))
        .filter(|file| {
            let names_library = || file.identifiers().any(|word| word == "sqlx");
            (is_sql(&file.strings) && !lies_in(file, SQL_ROOMS)) || (!lies_in(file, STORAGE_ROOMS) && names_library())
        })
        .map(|file| file.path.as_str())
        .collect();
    let excepted: Vec<&str> = SQL_ELSEWHERE.iter().map(|(path, _)| *path).collect();
    assert!(SQL_ELSEWHERE.iter().all(|(_, reason)| !reason.is_empty()));
    assert_eq!(wrong, excepted, "SQL outside {SQL_ROOMS:?}, against the exceptions there are");
}

#[test]
fn the_sql_rule_knows_sql_when_it_sees_it() {
    for sql in [
        "SELECT id FROM rows",
        "  INSERT INTO t VALUES (1)",
        "UPDATE t SET a = 1",
        "WITH x AS (SELECT 1) DELETE FROM t",
    ] {
        assert!(is_sql(sql), "{sql}");
    }
    for other in ["select a store", "the update is set", "INSERT COIN", "UPDATE"] {
        assert!(!is_sql(other), "{other}");
    }
}

#[test]
fn files_are_a_few_hundred_lines_at_most() {
    let all = sources();
    let mut wrong = Vec::new();
    for file in all.iter().filter(|file| !file.is_test()) {
        let excepted = LONG_FILES.iter().any(|(path, _)| *path == file.path);
        match (file.non_test_lines > FILE_LINES_MAX, excepted) {
            (true, false) => wrong.push(format!("{}: {} lines", file.path, file.non_test_lines)),
            (false, true) => wrong.push(format!("{}: no exception needed any more", file.path)),
            _ => {}
        }
    }
    for (path, reason) in LONG_FILES {
        assert!(!reason.is_empty() && all.iter().any(|file| file.path == *path), "{path}");
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn no_code_asks_whether_work_was_forced() {
    let wrong: Vec<String> = sources()
        .iter()
        .filter(|file| !file.is_test())
        .flat_map(|file| {
            let forced = |word: &&str| {
                word.split('_').any(|part| {
                    let part = part.to_ascii_lowercase();
                    part == "force" || part.starts_with("forced") || part.starts_with("isforce")
                })
            };
            file.identifiers().filter(forced).map(|word| format!("{}: {word}", file.path)).collect::<Vec<_>>()
        })
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_readmes_map_names_every_room() {
    let readme = std::fs::read_to_string(workspace_root().join("README.md")).expect("the README");
    let metadata = metadata();
    let missing: Vec<&str> =
        rooms(&metadata).into_keys().filter(|room| !readme.contains(&format!("[`{room}/`]({room})"))).collect();
    assert!(missing.is_empty(), "the map of the README lacks {missing:?}");
}
