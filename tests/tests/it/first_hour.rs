//! What a person meets in the first hour: `reshelf dev` on an empty directory, the commands it and the README print, a
//! second start, and starts that cannot be.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, time::Duration};

use app::demo;
use domain::ServiceName;
use proto::cqs::v1::OperationState;
use sqlx::{ConnectOptions as _, Connection as _, sqlite::SqliteConnectOptions};
use tests::{
    process::{Program, tail},
    source::workspace_root,
    topology::{DevOptions, OPERATION_LIMIT, START_LIMIT, Topology, dev_command, split_through, stage, through},
};
use tokio::process::Command;

/// How long a start that cannot be may take to say so.
const REFUSAL_LIMIT: Duration = Duration::from_secs(10);

/// The code block of the README that follows `<!-- run:NAME -->`.
fn readme_block(name: &str) -> String {
    block_of("README.md", name)
}

/// The code block of a document that follows `<!-- run:NAME -->`.
fn block_of(document: &str, name: &str) -> String {
    let text = fs::read_to_string(workspace_root().join(document)).expect("the document");
    let marker = format!("<!-- run:{name} -->");
    let (_, after) = text.split_once(&marker).unwrap_or_else(|| panic!("{document} has no {marker}"));
    let block = after.split_once("```sh\n").and_then(|(_, code)| code.split_once("\n```"));
    block.unwrap_or_else(|| panic!("no code after {marker}")).0.to_owned()
}

/// Runs a line as a person pastes it into a shell.
async fn paste(line: &str, folder: &Path) -> String {
    let output = Command::new("bash").arg("-c").arg(line).current_dir(folder).output().await.expect("bash runs");
    assert!(output.status.success(), "{line}\n{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The printed curl lines of the trigger: (run, dry run).
fn printed_triggers(text: &str) -> (String, String) {
    let find = |dry_run: &str| {
        let line =
            text.lines().find(|line| line.starts_with("curl ") && line.contains(&format!("\"dry_run\":{dry_run}")));
        line.unwrap_or_else(|| panic!("no curl line with dry_run {dry_run} in\n{text}")).to_owned()
    };
    (find("false"), find("true"))
}

/// Tracking id at the end of the `Location` of a printed answer.
fn accepted(answer: &str) -> String {
    assert!(answer.starts_with("HTTP/1.1 202"), "{answer}");
    let location = answer.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("location").then(|| value.trim().to_owned())
    });
    let location = location.unwrap_or_else(|| panic!("no Location in\n{answer}"));
    location.rsplit('/').next().expect("a tracking id").to_owned()
}

async fn finished_in_time(topology: &Topology, tracking_id: &str, unchanged: bool) {
    let labels = i64::from(demo::refreshed_model().labels);
    let operation = topology.finished(demo::TENANT, tracking_id, OPERATION_LIMIT).await;
    assert_eq!(operation.state(), OperationState::Succeeded, "{operation:#?}");
    let ecc = ServiceName::EccImageRender;
    let (left_alone, passed_on) = if unchanged { (labels, 0) } else { (0, labels) };
    assert_eq!(stage(&operation, ecc), split_through(ecc, labels, left_alone));
    for service in [ServiceName::EslImageMerger, ServiceName::HardwareExporter] {
        assert_eq!(stage(&operation, service), through(service, passed_on, 0));
    }
}

/// What the page offers to try works as it stands, with the token that the page is told to be given.
async fn examples_of_the_document_work(topology: &Topology) {
    let token = fs::read_to_string(topology.data.operator_token()).expect("the token");
    let operator = topology.anonymous().with_token(Some(token.trim()));
    let document = operator.get_json("/openapi.json").await;
    let paths = document["paths"].as_object().expect("paths");
    let mut executed = 0;
    for (path, methods) in paths {
        let example = &methods["post"]["requestBody"]["content"]["application/json"]["example"];
        // What is asked of one operation needs that operation; the scenarios of control do it.
        if example.is_object() && !path.contains('{') {
            let answer = operator.post(path, example).await.json(200);
            assert_eq!(answer["missing"].as_array().map_or(0, Vec::len), 0, "{path}: {answer}");
            executed += 1;
        }
    }
    assert!(executed >= 2, "model-refresh and touch at least");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_printed_and_the_readmes_commands_do_what_they_say() {
    assert_eq!(readme_block("dev"), "cargo run --release -- dev", "the test stands in for exactly this");
    // The first start is killed while it loads the demo tenant; the second goes on and finishes.
    let options = DevOptions { first_start_killed: true, ..DevOptions::default() };
    let mut topology = Topology::dev(options).await;
    let (run, dry_run) = printed_triggers(&topology.printed());
    let mode = |path: &Path| fs::metadata(path).expect("a file").permissions().mode() & 0o777;
    assert_eq!(mode(&topology.data.operator_token()), 0o600);
    let folder = topology.folder().to_owned();
    let labels = demo::refreshed_model().labels;
    let notifications = topology.tables().await.notifications_ever().await;

    // The dry run counts and does nothing.
    let dry = paste(&dry_run, &folder).await;
    assert!(dry.starts_with("HTTP/1.1 200"), "{dry}");
    assert!(dry.contains(&format!("\"labels\":{labels}")), "{dry}");
    assert_eq!(topology.tables().await.notifications_ever().await, notifications, "a dry run enqueues nothing");

    examples_of_the_document_work(&topology).await;
    assert_eq!(topology.tables().await.notifications_ever().await, notifications, "every example is a dry run");

    // The printed line, as it is.
    let pasted = paste(&run, &folder).await;
    assert!(pasted.contains(&format!("\"labels\":{labels}")), "{pasted}");
    finished_in_time(&topology, &accepted(&pasted), false).await;
    let compared = topology.assert_pictures(Some(demo::TENANT)).await;
    assert_eq!(u32::try_from(compared.equal).ok(), Some(demo::labels()), "every label shows what its records say");

    // The README's line: what is printed but for the port, and pasted again: all unchanged.
    let readme = readme_block("refresh").replace("http://127.0.0.1:8080", topology.anonymous().base());
    let printed = run.replace(&topology.data.operator_token().display().to_string(), ".reshelf/operator.token");
    assert_eq!(readme, printed, "README and program print the same command");
    finished_in_time(&topology, &accepted(&paste(&readme, &folder).await), true).await;
    topology.assert_exact().await;

    exports_again_as_the_runbook_says(&topology).await;

    // A second start finds its data and goes on.
    let records = topology.tables().await.records(None).await;
    let notifications = topology.tables().await.notifications_ever().await;
    let code = topology.programs().first_mut().expect("dev").stop(START_LIMIT).await;
    assert_eq!(code, Some(0), "SIGTERM ends it in order");
    topology.restart().await;
    let (run, _) = printed_triggers(&topology.printed());
    topology.quiet().await;
    assert_eq!(topology.tables().await.records(None).await, records, "a second start writes no record");
    assert_eq!(topology.tables().await.notifications_ever().await, notifications);
    finished_in_time(&topology, &accepted(&paste(&run, &folder).await), true).await;
    topology.stop().await;
}

/// The runbook's commands, one after the other, on a store whose pictures were lost.
async fn exports_again_as_the_runbook_says(topology: &Topology) {
    let block = |name: &str| block_of("docs/runbooks/re-export.md", name);
    let names = block("names").replace("http://127.0.0.1:8080", topology.anonymous().base());
    let names = names.replace(".reshelf/operator.token", &topology.data.operator_token().display().to_string());
    let run = async |name: &str| paste(&format!("{names}\n{}", block(name)), topology.folder()).await;
    let listed = run("look").await;
    assert!(listed.contains("\"access_point_id\":\"ap-1\""), "{listed}");
    let dry = run("dry").await;
    assert!(dry.contains("\"would_run_on\":\"hardware-exporter\""), "{dry}");
    let accepted = run("live").await;
    assert!(accepted.contains("/operations/INC-4712"), "{accepted}");
    let operation = topology.finished(demo::TENANT, "INC-4712", OPERATION_LIMIT).await;
    assert_eq!(operation.state(), OperationState::Succeeded, "{operation:#?}");
    assert!(run("follow").await.contains("hardware-exporter"));
    let label = run("label").await;
    assert!(label.contains("\"state\":\"LOST\"") && label.contains("\"evidence\":\"WRITTEN\""), "{label}");
}

/// Starts `reshelf dev` where it cannot, and gives the one line it says.
async fn refused(data: &Path, options: &DevOptions) -> String {
    let logs = tempfile::tempdir().expect("a folder");
    let mut program = Program::start("refused", dev_command(data, options), logs.path());
    let code = program.ended(REFUSAL_LIMIT).await;
    assert!(code.is_some_and(|code| code != 0), "it says by its exit code that it failed: {code:?}");
    let log = program.log();
    let lines: Vec<&str> = log.lines().filter(|line| !line.trim().is_empty()).collect();
    let [line] = lines.as_slice() else { panic!("one line, not\n{}", tail(&log)) };
    (*line).to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn starts_that_cannot_be_name_the_fix_in_one_line() {
    let options = DevOptions { demo: false, ..DevOptions::default() };
    let mut topology = Topology::dev(options.clone()).await;
    let data = topology.data.path().to_owned();

    let line = refused(&data, &options).await;
    assert!(line.contains("in use by another process") && line.contains("data directory"), "{line}");

    let taken =
        DevOptions { listen: topology.anonymous().base().trim_start_matches("http://").to_owned(), ..options.clone() };
    let line = refused(&topology.folder().join("elsewhere"), &taken).await;
    assert!(line.contains(&taken.listen) && line.contains("--listen"), "{line}");

    topology.programs().first_mut().expect("dev").stop(START_LIMIT).await;
    let schema = schema_version(&data, None).await;
    schema_version(&data, Some(schema + 1)).await;
    let line = refused(&data, &options).await;
    assert!(line.contains("newer build"), "{line}");
    schema_version(&data, Some(schema - 1)).await;
    let line = refused(&data, &options).await;
    assert!(line.contains("reshelf migrate"), "{line}");

    let damaged = topology.folder().join("damaged");
    fs::create_dir(&damaged).expect("a folder");
    fs::copy(data.join("reshelf.db"), damaged.join("reshelf.db")).expect("a copy");
    let file = fs::File::options().write(true).open(damaged.join("reshelf.db")).expect("it opens");
    file.set_len(40_000).expect("most of it is cut off");
    let line = refused(&damaged, &options).await;
    assert!(line.contains("damaged/reshelf.db") && line.contains("restore a backup"), "{line}");

    // Nothing was harmed by all that.
    schema_version(&data, Some(schema)).await;
    topology.restart().await;
    topology.stop().await;
}

/// Reads or sets the schema version in the header of the database file.
async fn schema_version(data: &Path, set: Option<i64>) -> i64 {
    let options = SqliteConnectOptions::new().filename(data.join("reshelf.db"));
    let mut connection = options.connect().await.expect("the database opens");
    if let Some(version) = set {
        let pragma = sqlx::AssertSqlSafe(format!("PRAGMA user_version = {version}"));
        sqlx::raw_sql(pragma).execute(&mut connection).await.expect("the version is set");
    }
    let version = sqlx::query_scalar("PRAGMA user_version").fetch_one(&mut connection).await.expect("a version");
    connection.close().await.expect("the database closes");
    version
}
