//! What the documents say: links lead somewhere, guarantees name tests that exist, and the guide to several processes
//! runs as it is written.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use tests::{
    data::{Shelf, layout},
    process::{Program, program},
    source::{sources, workspace_root},
    topology::{DevOptions, START_LIMIT, Topology, free_ports},
    wait::until,
};
use tokio::process::Command;

/// Every Markdown file of the repository that we wrote.
fn documents() -> Vec<PathBuf> {
    let root = workspace_root();
    let mut found = Vec::from(["README.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(|name| root.join(name)));
    let mut folders = vec![root.join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of documents") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path);
            }
        }
    }
    found
}

#[test]
fn links_lead_somewhere() {
    let mut dead = Vec::new();
    for document in documents() {
        let text = fs::read_to_string(&document).expect("a document");
        let folder = document.parent().expect("a folder");
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let path = target.split('#').next().unwrap_or_default();
            if !path.is_empty() && !path.contains("://") && !folder.join(path).exists() {
                dead.push(format!("{}: {target}", document.display()));
            }
        }
    }
    assert!(dead.is_empty(), "{dead:#?}");
}

#[test]
fn the_index_names_every_document() {
    let folder = workspace_root().join("docs");
    let index = fs::read_to_string(folder.join("README.md")).expect("the index");
    let unnamed: Vec<PathBuf> = documents()
        .iter()
        .filter_map(|document| document.strip_prefix(&folder).ok())
        .filter(|name| !name.starts_with("adr") && *name != Path::new("README.md"))
        .filter(|name| !index.contains(&format!("]({})", name.display())))
        .map(Path::to_path_buf)
        .collect();
    assert!(unnamed.is_empty(), "docs/README.md lacks {unnamed:?}");
}

#[test]
fn every_guarantee_names_tests_that_exist() {
    let text = fs::read_to_string(workspace_root().join("docs/architecture.md")).expect("the architecture");
    let (_, table) = text.split_once("<!-- guarantees:begin -->").expect("the guarantees");
    let (table, _) = table.split_once("<!-- guarantees:end -->").expect("their end");
    let sources = sources();
    let rows = table.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| what |"));
    let mut count = 0;
    for row in rows {
        let named: Vec<(&str, &str)> =
            row.split('`').skip(1).step_by(2).filter_map(|word| word.split_once("::")).collect();
        assert!(!named.is_empty(), "no test is named in {row}");
        for (path, test) in named {
            let source = sources.iter().find(|source| source.path == path);
            let source = source.unwrap_or_else(|| panic!("no file {path}, named in {row}"));
            assert!(source.code.contains(&format!("fn {test}(")), "no test {test} in {path}");
        }
        count += 1;
    }
    assert!(count > 30, "{count} guarantees");
}

/// The block that follows `<!-- MARKER -->` in a document.
fn block(text: &str, marker: &str) -> String {
    let (_, after) = text.split_once(&format!("<!-- {marker} -->")).unwrap_or_else(|| panic!("no {marker}"));
    let code = after.split_once("```").and_then(|(_, rest)| rest.split_once('\n'));
    let code = code.and_then(|(_, rest)| rest.split_once("\n```"));
    code.unwrap_or_else(|| panic!("no code after {marker}")).0.to_owned()
}

/// Every block of shell commands of a document, in order.
fn shell_blocks(text: &str) -> Vec<String> {
    let blocks = text.split("\n```sh\n").skip(1);
    blocks.filter_map(|rest| rest.split("\n```").next()).map(str::to_owned).collect()
}

/// Runs a script in `folder` as a person would, the built programs in the path.
async fn run(script: &str, folder: &Path) -> String {
    let programs = program("reshelf").parent().expect("a folder").to_owned();
    let path =
        env::join_paths(std::iter::once(programs).chain(env::split_paths(&env::var_os("PATH").unwrap_or_default())));
    let mut command = Command::new("bash");
    command.args(["-euo", "pipefail", "-c", script]).current_dir(folder).env("PATH", path.expect("a path"));
    let output = command.output().await.expect("bash runs");
    assert!(output.status.success(), "{script}\n{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_guide_to_three_processes_runs_as_written() {
    let guide = fs::read_to_string(workspace_root().join("docs/running.md")).expect("the guide");
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let [platform, triggers, rest] = free_ports();
    for name in ["platform.toml", "worker.toml", "gateway.toml", "example.jsonl"] {
        let text = block(&guide, &format!("file:{name}"))
            .replace("127.0.0.1:7400", &platform.to_string())
            .replace("127.0.0.1:7500", &triggers.to_string())
            .replace("127.0.0.1:8080", &rest.to_string());
        fs::write(folder.join(name), format!("{text}\n")).expect("the file is written");
    }
    run(&block(&guide, "run:keys"), folder).await;

    let start = |name: &str, line: &[&str]| {
        let mut command = Command::new(program(name));
        command.args(line).current_dir(folder);
        Program::start(name, command, folder)
    };
    // In an order in which everyone finds nobody at first.
    let mut gateway = start("reshelf-gateway", &["--config", "gateway.toml"]);
    let mut worker = start("reshelf-worker", &["--config", "worker.toml"]);
    let mut store = start("reshelf", &["platform", "--config", "platform.toml"]);
    store.shows("to listen", START_LIMIT, |text| text.contains("listening on").then_some(())).await;
    // Only a queue that exists is told of a write, so the worker's must be there before the first record is.
    worker.shows("to run", START_LIMIT, |text| text.contains("running").then_some(())).await;
    let import = format!("reshelf import example.jsonl --platform http://{platform} --key keys/record-import.key");
    assert!(run(&import, folder).await.starts_with("6 records: 6 written"));
    let picture = folder.join("labels/acme/lab/E1.png");
    until("the picture", START_LIMIT, || async { picture.exists().then_some(()).ok_or("not there") }).await;

    let token = run("reshelf token --key keys/operator-issuer.key --tenants acme", folder).await;
    let operator = tests::rest::Rest::new(&format!("http://{rest}"), Some(token.trim()));
    let label = operator.get_json("/v1/tenants/acme/stores/lab/labels/E1").await;
    assert_eq!(label["model_id"], "plain", "{label}");
    for program in [&mut gateway, &mut worker, &mut store] {
        assert_eq!(program.stop(START_LIMIT).await, Some(0), "SIGTERM ends it in order");
    }
}

/// Commands as a document has them, for the product that runs here. A refusal fails, which curl alone does not.
fn here(commands: &str, base: &str) -> String {
    let curl = "curl() { command curl --fail-with-body \"$@\"; }";
    let commands = commands.replace("http://127.0.0.1:8080", base).replace("cargo run --release -- ", "reshelf ");
    format!("{curl}\n{commands}")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_runbooks_and_the_readmes_commands_run_as_written() {
    let topology = Topology::dev(DevOptions::default()).await;
    let base = topology.anonymous().base().to_owned();
    let readme = fs::read_to_string(workspace_root().join("README.md")).expect("the README");
    let printed = run(&here(&block(&readme, "run:cli"), &base), topology.folder()).await;
    assert!(printed.contains("SUCCEEDED"), "{printed}");
    let mut runbooks: Vec<PathBuf> = documents()
        .into_iter()
        .filter(|path| path.parent().is_some_and(|folder| folder.ends_with("runbooks")))
        // It wants labels that fail; see below.
        .filter(|path| !path.ends_with(OPERATIONS))
        .collect();
    runbooks.sort();
    assert!(runbooks.len() >= 5, "{runbooks:?}");
    for runbook in runbooks {
        let blocks = runbook_blocks(&runbook);
        // One shell for all of them: the first block sets what the others use.
        run(&here(&blocks.join("\n"), &base), topology.folder()).await;
    }
    topology.quiet().await;
    topology.assert_exact().await;
    let wrong: Vec<String> =
        topology.operator(&[app::demo::TENANT]).get_json("/v1/operations?page_size=200").await["operations"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|operation| operation["state"] != "SUCCEEDED")
            .map(ToString::to_string)
            .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The runbook of what is done with an operation once it is accepted.
const OPERATIONS: &str = "docs/runbooks/operations.md";
/// Labels of the model that it refreshes, and of another one in the same store.
const REFRESHED: usize = 200;
const OTHERS: usize = 60;
/// Those whose price cannot be shown at first: enough of them, in the midst, that the operation holds itself.
const FAILING: std::ops::Range<usize> = 100..120;

/// The commands of a runbook, block by block.
fn runbook_blocks(runbook: &Path) -> Vec<String> {
    let blocks = shell_blocks(&fs::read_to_string(runbook).expect("a runbook"));
    let both = ["reshelf trigger", "curl "].iter().all(|word| blocks.iter().any(|block| block.contains(word)));
    assert!(both, "{}: the command line stands beside curl", runbook.display());
    blocks
}

#[tokio::test(flavor = "multi_thread")]
async fn the_runbook_of_operations_runs_as_written() {
    let between = u32::try_from(REFRESHED + OTHERS / 2).expect("few");
    let options = DevOptions { demo: false, approval_above: Some(between), ..DevOptions::default() };
    let topology = Topology::dev(options).await;
    let models = [("standard", REFRESHED), ("promotion", OTHERS)];
    let shelf = Shelf::write_store(&topology.doors, "demo", "krakow", &models).await;
    topology.quiet().await;
    let priced = |price: &str| shelf.labels["standard"][FAILING].iter().map(|id| shelf.item(id, price)).collect();
    shelf.import(&topology.doors, priced("no price")).await;
    shelf.import(&topology.doors, vec![shelf.model("standard", layout("standard", 2))]).await;
    topology.quiet().await;

    let blocks = runbook_blocks(&workspace_root().join(OPERATIONS));
    let mended = blocks.iter().position(|block| block.contains("operations resume CHG-150") && block.contains("retry"));
    let (until_held, after) = blocks.split_at(mended.expect("the block that goes on"));
    let base = topology.anonymous().base().to_owned();
    let operator = topology.operator(&["demo"]);
    let state = async |id: &str| {
        operator.get_json(&format!("/v1/tenants/demo/operations/{id}")).await["state"].as_str().map(str::to_owned)
    };
    let printed = run(&here(&until_held.join("\n"), &base), topology.folder()).await;
    assert!(printed.contains("ended with 124"), "the watch was left: {printed}");
    assert!(printed.contains("ended with 8"), "the wait ended because a person is needed: {printed}");
    assert_eq!(state("CHG-150").await.as_deref(), Some("HELD"));
    // The person mends the cause.
    shelf.import(&topology.doors, priced("1.49")).await;
    until("the prices are out", START_LIMIT, || async {
        let failed = |id: &String| format!("/v1/tenants/demo/stores/krakow/labels/{id}");
        let last = operator.get_json(&failed(&shelf.labels["standard"][FAILING.end - 1])).await;
        if last["item"]["values"]["price"] == "1.49" { Ok(()) } else { Err(last.to_string()) }
    })
    .await;
    let after = [&blocks[..1], after].concat();
    let printed = run(&here(&after.join("\n"), &base), topology.folder()).await;
    assert!(printed.contains("ended with 3"), "some had failed: {printed}");
    topology.quiet().await;
    for (id, wanted) in [
        ("CHG-150", "FINISHED_WITH_FAILURES"),
        ("CHG-150-again", "SUCCEEDED"),
        ("CHG-151", "CANCELLED"),
        ("CHG-152", "SUCCEEDED"),
        ("CHG-153", "CANCELLED"),
    ] {
        assert_eq!(state(id).await.as_deref(), Some(wanted), "{id}");
    }
    assert_eq!(topology.assert_pictures(Some("demo")).await.equal, REFRESHED + OTHERS);
    topology.assert_exact().await;
    topology.stop().await;
}
