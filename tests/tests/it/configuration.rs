//! The reference of configuration keys names exactly what the programs accept: each table of each program is given a key
//! that nobody knows, in the file, and the refusal lists what is known there.

use std::{collections::BTreeSet, fs, path::Path};

use tests::{process::program, source::workspace_root};
use tokio::process::Command;

/// What no program knows.
const UNKNOWN: &str = "unknown_key";
/// Each program: its heading in the reference, its file name, what precedes `--config`, and the prefix of its variables.
const PROGRAMS: [(&str, &str, &[&str], &str); 3] = [
    ("`reshelf platform`", "reshelf", &["platform"], "RESHELF_PLATFORM__"),
    ("`reshelf-worker`", "reshelf-worker", &[], "RESHELF_WORKER__"),
    ("`reshelf-gateway`", "reshelf-gateway", &[], "RESHELF_GATEWAY__"),
];

/// Starts a program with this file and this environment; what it says before it ends, as it must.
async fn refusal(name: &str, arguments: &[&str], file: &str, environment: &[(&str, &str)]) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("config.toml");
    fs::write(&path, file).expect("the file is written");
    let mut command = Command::new(program(name));
    command.args(arguments).arg("--config").arg(&path).envs(environment.iter().copied()).kill_on_drop(true);
    let ended = tokio::time::timeout(tests::topology::START_LIMIT, command.output()).await;
    let output = ended.unwrap_or_else(|_| panic!("{name} runs with {file}")).expect("it starts");
    assert!(!output.status.success(), "{name} accepts {file}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// What a refusal lists as known, when the unknown key was met.
fn listed(refusal: &str) -> Option<BTreeSet<String>> {
    let (_, rest) = refusal.split_once(&format!("unknown field `{UNKNOWN}`, expected "))?;
    let line = rest.lines().next().unwrap_or_default();
    Some(line.split('`').skip(1).step_by(2).map(str::to_owned).collect())
}

/// How a value is wrapped until it lies in a table: what stands before it, and what behind.
#[derive(Clone)]
struct Place {
    name: String,
    before: String,
    after: String,
}

impl Place {
    fn within(&self, key: &str, (name, before, after): (&str, &str, &str)) -> Self {
        Self {
            name: format!("{}{key}{name}.", self.name),
            before: format!("{}{key} = {before}", self.before),
            after: format!("{after}{}", self.after),
        }
    }

    fn file(&self) -> String {
        format!("{}{UNKNOWN} = 1{}\n", self.before, self.after)
    }
}

/// Every key a program knows, as the reference writes it.
async fn known(name: &'static str, arguments: &'static [&'static str]) -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    let mut places = vec![Place { name: String::new(), before: String::new(), after: String::new() }];
    while let Some(place) = places.pop() {
        let said = refusal(name, arguments, &place.file(), &[]).await;
        let here = listed(&said).unwrap_or_else(|| panic!("{name} at {}: {said}", place.name));
        for key in here {
            let table = place.within(&key, ("", "{ ", " }"));
            let said = refusal(name, arguments, &table.file(), &[]).await;
            // What else it may be is told by what it is not.
            let inner = if listed(&said).is_some() {
                Some(table)
            } else if said.contains("expected a sequence") {
                Some(place.within(&key, ("[]", "[{ ", " }]")))
            } else if said.contains("expected struct") {
                Some(place.within(&key, (".<>", "{ any = { ", " } }")))
            } else {
                None
            };
            let mut leaf = true;
            if let Some(inner) = inner
                && listed(&refusal(name, arguments, &inner.file(), &[]).await).is_some()
            {
                places.push(inner);
                leaf = false;
            }
            if leaf {
                keys.insert(format!("{}{key}", place.name));
            }
        }
    }
    keys
}

/// The keys under a heading of the reference.
fn described(reference: &str, heading: &str) -> BTreeSet<String> {
    let (_, section) =
        reference.split_once(&format!("\n## {heading}\n")).unwrap_or_else(|| panic!("no section {heading}"));
    let section = section.split("\n## ").next().unwrap_or_default();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.filter_map(|row| row.split('`').next()).map(str::to_owned).collect()
}

fn reference(root: &Path) -> String {
    fs::read_to_string(root.join("docs/configuration.md")).expect("the reference")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_reference_names_exactly_the_keys_that_the_programs_accept() {
    let reference = reference(&workspace_root());
    let asked = PROGRAMS.map(|(_, name, arguments, _)| tokio::spawn(known(name, arguments)));
    for ((heading, name, _, prefix), known) in PROGRAMS.into_iter().zip(asked) {
        assert!(reference.contains(&format!("Variables begin with `{prefix}`.")), "{prefix}");
        let (known, described) = (known.await.expect("its keys"), described(&reference, heading));
        assert!(known.len() > 5, "{name}: {known:?}");
        let missing: Vec<_> = known.difference(&described).collect();
        let invented: Vec<_> = described.difference(&known).collect();
        assert!(missing.is_empty() && invented.is_empty(), "{name}: not described {missing:?}; not known {invented:?}");
    }
}

/// Whoever starts a daemon at night reads one line, under its name, and no backtrace.
#[tokio::test]
async fn a_daemon_that_cannot_start_says_why_in_one_line() {
    for (_, name, arguments, _) in PROGRAMS {
        for file in ["unknown_key = 1\n", "", "= no toml", "listen = \"nowhere\"\n"] {
            let said = refusal(name, arguments, file, &[("RUST_BACKTRACE", "1")]).await;
            assert!(
                said.starts_with(&format!("{name}: ")) && said.lines().count() == 1,
                "{name} with {file:?}:\n{said}"
            );
            assert!(said.contains("config.toml"), "it names the file: {said}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_environment_lies_over_the_file_and_its_unknown_keys_are_refused() {
    for (_, name, arguments, prefix) in PROGRAMS {
        let unknown = format!("{prefix}UNKNOWN_KEY");
        let said = refusal(name, arguments, "", &[(&unknown, "1")]).await;
        assert!(said.contains(&unknown) && listed(&said).is_some(), "{name}: {said}");
        // Seen although the file says something that would be accepted.
        let listen = format!("{prefix}LISTEN");
        let said = refusal(name, arguments, "listen = \"127.0.0.1:0\"\n", &[(&listen, "nowhere")]).await;
        assert!(said.contains(&listen) && said.contains("address"), "{name}: {said}");
    }
}
