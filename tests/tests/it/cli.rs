//! The operator commands of `reshelf`, run as a person runs them against a running product.

use std::{fs, os::unix::fs::PermissionsExt as _};

use app::cli::Exit;
use domain::{DtoType, OperatorScope};
use serde_json::{Value, json};
use tests::{
    cli::{Ran, Shell},
    data::Shelf,
    process::Program,
    source::workspace_root,
    topology::{DevOptions, START_LIMIT, Topology, dev_command},
};

const TENANT: &str = "acme";

/// A product with one store, and its operator's shell.
async fn shop(models: &[(&str, usize)]) -> (Topology, Shelf, Shell) {
    let topology = Topology::in_process().await;
    let shelf = Shelf::write(&topology.doors, TENANT, models).await;
    topology.quiet().await;
    let shell = Shell::new(&topology.operator(&[TENANT]), topology.folder());
    (topology, shelf, shell)
}

fn texts<'a>(rows: &'a Value, key: &str) -> Vec<&'a str> {
    rows.as_array().into_iter().flatten().filter_map(|row| row[key].as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refresh_is_counted_started_followed_and_looked_up() {
    let (topology, _, shell) = shop(&[("alpha", 5), ("beta", 2)]).await;
    let rest = topology.operator(&[TENANT]);
    let refresh = ["trigger", "model-refresh", "--store", "store-1", "--model", "alpha", "--reason", "CHG-1: a test"];
    let with = |more: &[&'static str]| [&refresh[..], more].concat();

    let counted = shell.run(&with(&["--dry-run", "-o", "json"])).await.ended(0).json();
    assert_eq!((counted["labels"].as_i64(), counted["dry_run"].as_bool()), (Some(5), Some(true)), "{counted}");
    shell.run(&with(&["--dry-run", "--detailed-exitcode"])).await.ended(10);
    let table = shell.run(&with(&["--dry-run"])).await.ended(0);
    assert!(table.out.contains("labels") && table.err.contains("nothing was done"), "{table:?}");

    // The tracking id is the first line, before any waiting.
    let started = shell.run(&with(&["--tracking-id", "CHG-1", "--wait"])).await.ended(0);
    assert_eq!(started.out.lines().next(), Some("CHG-1"), "{started:?}");
    assert!(started.out.contains("SUCCEEDED"), "{started:?}");
    assert!(started.err.contains("reshelf operations wait CHG-1 --tenant acme"), "{started:?}");
    let again = shell.run(&with(&["--tracking-id", "CHG-1", "-o", "jsonl", "--wait"])).await.ended(0).jsonl();
    assert_eq!(again[0]["replayed"], true, "{again:?}");
    assert_eq!(again[1]["state"], "SUCCEEDED", "the operation at its end is the second line: {again:?}");
    // Without an id one is made, told, and not used again once there was an answer.
    let first = shell.run(&with(&["-q"])).await.ended(0);
    let second = shell.run(&with(&["-q"])).await.ended(0);
    assert!(first.out.starts_with("cli-") && first.out != second.out, "{first:?} {second:?}");

    // JSON is the gateway's own answer.
    let path = format!("/v1/tenants/{TENANT}/operations/CHG-1");
    for line in [["operations", "show", "CHG-1"], ["operations", "wait", "CHG-1"], ["operations", "watch", "CHG-1"]] {
        let shown = shell.run(&[&line[..], &["-o", "json"]].concat()).await.ended(0).json();
        assert_eq!(shown, rest.get_json(&path).await, "{line:?}");
    }
    let until = shell.run(&["operations", "wait", "CHG-1", "--until", "rendered", "--tenant", TENANT]).await.ended(0);
    assert!(until.out.contains("rendered"), "{until:?}");
    let listed = shell.run(&["operations", "list", "-o", "jsonl"]).await.ended(0).jsonl();
    assert_eq!(listed.len(), 3, "{listed:?}");
    let limited = shell.run(&["operations", "list", "--limit", "1", "-o", "json"]).await.ended(0).json();
    assert_eq!(limited.as_array().map(Vec::len), Some(1), "{limited}");
    topology.quiet().await;
    topology.assert_exact().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_there_who_did_what_and_who_one_is() {
    let (topology, shelf, shell) = shop(&[("alpha", 3)]).await;
    let json = async |line: &[&str]| shell.run(&[line, &["-o", "json"]].concat()).await.ended(0).json();

    assert_eq!(texts(&json(&["labels", "stores"]).await, "store_id"), ["store-1"]);
    assert_eq!(texts(&json(&["labels", "models", "--store", "store-1"]).await, "model_id"), ["alpha"]);
    assert_eq!(json(&["labels", "designs"]).await, json!([]));
    assert_eq!(json(&["labels", "list", "--store", "store-1"]).await.as_array().map(Vec::len), Some(3));
    let label = &shelf.labels["alpha"][0];
    let shown = json(&["labels", "show", label, "--store", "store-1"]).await;
    assert_eq!(shown["delivery"]["state"], "CONFIRMED", "{shown}");
    let table = shell.run(&["labels", "show", label, "--store", "store-1"]).await.ended(0);
    assert!(table.out.contains("CONFIRMED") && table.out.contains("1.99"), "{table:?}");
    shell.run(&["labels", "image", label, "--store", "store-1", "--to", "label.png"]).await.ended(0);
    let picture = fs::read(shell.home().join("label.png")).expect("the picture");
    let path = format!("/v1/tenants/{TENANT}/stores/store-1/labels/{label}/image.png");
    assert_eq!(picture, topology.operator(&[TENANT]).get(&path).await.bytes);

    let urn = format!("{}={}", DtoType::EccModel, shelf.urn(DtoType::EccModel, "alpha"));
    let touch = ["trigger", "touch", "--record", &urn, "--reason", "CHG-2: a test", "--tracking-id", "CHG-2"];
    assert_eq!(json(&[&touch[..], &["--dry-run"]].concat()).await["would_touch"], 1);
    assert_eq!(json(&touch).await["touched"], 1);
    let absent = format!("{}={}", DtoType::EccModel, shelf.urn(DtoType::EccModel, "absent"));
    let missing = ["trigger", "touch", "--record", &absent, "--reason", "a test", "-o", "json"];
    assert_eq!(shell.run(&missing).await.ended(3).json()["missing"].as_array().map(Vec::len), Some(1));
    let audited = json(&["audit", "list", "--tracking-id", "CHG-2"]).await;
    assert_eq!(texts(&audited, "outcome"), ["ACCEPTED"], "{audited}");
    narrowed_audit(&shell).await;
    let triggers = json(&["trigger", "list"]).await;
    assert!(texts(&triggers, "name").contains(&"model-refresh"), "{triggers}");

    let me = json(&["whoami"]).await;
    assert_eq!(me["subject"], "operator@test", "{me}");
    assert!(shell.run(&["whoami"]).await.ended(0).out.contains(TENANT));
    let verdicts = |checks: &Value| -> Vec<String> {
        checks.as_array().into_iter().flatten().map(|row| format!("{} {}", row["check"], row["verdict"])).collect()
    };
    let data = topology.data.path().display().to_string();
    let checks = json(&["doctor", "--data-dir", &data]).await;
    let failed: Vec<String> = verdicts(&checks).into_iter().filter(|line| line.contains("failed")).collect();
    assert!(failed.is_empty() && verdicts(&checks).len() >= 8, "{checks}");
    assert!(verdicts(&checks).contains(&"\"database\" \"ok\"".to_owned()), "{checks}");
    assert_eq!(texts(&json(&["labels", "access-points", "--store", "store-1"]).await, "access_point_id"), ["ap-1"]);
    for name in ["bash", "zsh", "fish"] {
        assert!(shell.run(&["completions", name]).await.ended(0).out.contains("model-refresh"), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_stores_are_counted_first_and_a_repeated_command_does_nothing_twice() {
    let (topology, _, shell) = shop(&[("alpha", 2)]).await;
    Shelf::write_store(&topology.doors, TENANT, "store-2", &[("alpha", 3)]).await;
    Shelf::write_store(&topology.doors, TENANT, "store-3", &[("beta", 4)]).await;
    topology.quiet().await;
    let refresh =
        ["trigger", "model-refresh", "--model", "alpha", "--reason", "CHG-3: a test", "--tracking-id", "CHG-3"];
    let over = |stores: &'static str, more: &[&'static str]| [&refresh[..], &["--stores", stores], more].concat();

    // A store of a list that has nothing of it is refused, and then nothing is done in the others either.
    fs::write(shell.home().join("stores"), "store-1 # the first\nstore-3\n").expect("a list");
    let refused = shell.run(&over("stores", &[])).await.ended(7);
    assert!(refused.err.contains("store-3") && refused.err.contains("nothing was done"), "{refused:?}");
    assert!(topology.operation(TENANT, "CHG-3:store-1").await.is_none(), "nothing was done");
    fs::write(shell.home().join("stores"), "store-1\nstore-1\n").expect("a list");
    assert!(shell.run(&over("stores", &[])).await.ended(2).err.contains("line 2"));

    let counted = shell.run(&over("all", &["--dry-run", "-o", "json"])).await.ended(0).json();
    assert_eq!(counted["labels"], 5, "{counted}");
    let done = shell.run(&over("all", &["--wait", "-o", "json"])).await.ended(0).json();
    assert_eq!(texts(&done["stores"], "outcome"), ["SUCCEEDED", "SUCCEEDED", "not there"], "{done}");
    assert_eq!(texts(&done["stores"], "tracking_id")[1], "CHG-3:store-2");
    assert_eq!(done["labels"], 5, "{done}");
    let notifications = topology.tables().await.notifications_ever().await;
    let again = shell.run(&over("all", &["-o", "jsonl"])).await.ended(0).jsonl();
    let outcomes: Vec<&str> = again.iter().filter_map(|row| row["outcome"].as_str()).collect();
    assert_eq!(outcomes, ["accepted before", "accepted before", "not there"], "{again:?}");
    topology.quiet().await;
    assert_eq!(topology.tables().await.notifications_ever().await, notifications, "nothing is done twice");
    topology.assert_exact().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_name_the_field_and_what_to_do_and_end_as_documented() {
    let (topology, _, shell) = shop(&[("alpha", 1), ("beta", 1)]).await;
    let refresh = |model: &'static str, id: &'static str| {
        ["trigger", "model-refresh", "--store", "store-1", "--model", model, "--reason", "a test", "--tracking-id", id]
    };
    let told = |ran: Ran, words: &[&str]| {
        for word in words {
            assert!(ran.err.contains(word), "{word}: {ran:?}");
        }
    };
    told(
        shell.run(&refresh("absent", "CHG-4")).await.ended(7),
        &["model_id", "NOT_FOUND", "what to do", "check the ids"],
    );
    shell.run(&refresh("alpha", "CHG-4")).await.ended(0);
    told(shell.run(&refresh("beta", "CHG-4")).await.ended(6), &["model_id", "ALREADY_EXISTS", "another tracking id"]);
    let as_json = shell.run(&[&refresh("beta", "CHG-4")[..], &["-o", "json"]].concat()).await.ended(6);
    let error: Value = serde_json::from_str(&as_json.err).expect("an error is JSON when answers are");
    assert_eq!((&error["error"]["field"], &error["error"]["exit"]), (&json!("model_id"), &json!(6)), "{error}");

    let reader =
        Shell::new(&topology.operator_as(&topology.claims(&[TENANT], &[OperatorScope::LabelsRead])), topology.folder());
    told(reader.run(&refresh("alpha", "CHG-5")).await.ended(7), &["trigger:model-refresh", "whoami"]);
    let stranger = Shell::new(&topology.anonymous(), topology.folder());
    told(stranger.run(&["whoami"]).await.ended(7), &["UNAUTHENTICATED", "reshelf doctor"]);
    let checked = stranger.run(&["doctor", "-o", "json"]).await.ended(1).json();
    assert!(texts(&checked, "verdict").contains(&"failed"), "{checked}");
    let both = Shell::new(&topology.operator(&[TENANT, "other"]), topology.folder());
    told(both.run(&["labels", "stores"]).await.ended(2), &["--tenant", "acme, other"]);

    // A reason is nobody's default, an unknown flag and an unknown key are refused by name.
    told(shell.run(&["trigger", "design-refresh", "--design", "d"]).await.ended(2), &["--reason"]);
    told(shell.run(&["operations", "list", "--page", "2"]).await.ended(2), &["--page"]);
    fs::write(shell.home().join("config.toml"), "[contexts.a]\nurl = \"http://127.0.0.1:1\"\ntokn_file = \"t\"\n")
        .expect("a file");
    told(shell.run(&["whoami", "--config", "config.toml", "--context", "a"]).await.ended(2), &["tokn_file"]);
    // Nobody listens there: tried for a while, then told.
    let nobody = Shell::at("http://127.0.0.1:1", topology.folder());
    told(nobody.run(&["whoami"]).await.ended(9), &["trying again", "no answer from http://127.0.0.1:1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn contexts_name_gateway_token_and_tenant() {
    let (topology, _, shell) = shop(&[("alpha", 1)]).await;
    let rest = topology.operator(&[TENANT, "other"]);
    fs::write(shell.home().join("shop.token"), rest.token().unwrap_or_default()).expect("a token");
    let config = format!(
        "context = \"shop\"\n[contexts.shop]\nurl = \"{url}\"\ntoken_file = \"shop.token\"\ntenant = \"{TENANT}\"\n\
         [contexts.command]\nurl = \"{url}\"\ntoken_command = [\"cat\", \"shop.token\"]\ntenant = \"{TENANT}\"\n",
        url = rest.base()
    );
    fs::write(shell.home().join("config.toml"), config).expect("a file");
    for context in [&[][..], &["--context", "command"]] {
        let mut command = shell.command(&[&["labels", "stores", "--config", "config.toml", "-q"], context].concat());
        command.env_remove("RESHELF_URL").env_remove("RESHELF_TOKEN_FILE");
        let output = command.output().await.expect("reshelf runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(String::from_utf8_lossy(&output.stdout), "store-1\n");
    }
}

#[test]
fn the_document_lists_every_exit_code_once() {
    let text = fs::read_to_string(workspace_root().join("docs/cli.md")).expect("docs/cli.md");
    let (_, table) = text.split_once("<!-- exits:begin -->").expect("the exit codes");
    let (table, _) = table.split_once("<!-- exits:end -->").expect("their end");
    let documented: Vec<u8> =
        table.lines().filter_map(|line| line.strip_prefix("| ")?.split(' ').next()?.parse().ok()).collect();
    assert_eq!(documented, Exit::ALL.map(Exit::code));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_of_a_running_product_is_restored_and_goes_on() {
    let mut topology = Topology::dev(DevOptions { demo: false, ..DevOptions::default() }).await;
    // The tenant of the token that `dev` writes.
    Shelf::write(&topology.doors, app::demo::TENANT, &[("alpha", 60)]).await;
    let shell = Shell::new(&topology.operator(&[app::demo::TENANT]), topology.folder());
    let data = topology.data.path().display().to_string();
    let listed = shell.run(&["backup", "--data-dir", &data, "--to", "listed", "-o", "json"]).await.ended(0).json();
    assert!(texts(&listed["files"], "path").contains(&"keys/operator-issuer.key"), "{listed}");
    assert!(!shell.home().join("listed/keys").exists(), "keys are listed, not copied");

    let refresh = ["trigger", "model-refresh", "--store", "store-1", "--model", "alpha", "--reason", "a test"];
    shell.run(&[&refresh[..], &["--tracking-id", "before"]].concat()).await.ended(0);
    // In the midst of the work: of the first rendering and of the operation.
    let line = ["backup", "--data-dir", &data, "--to", "saved", "--with-keys"];
    shell.run(&line).await.ended(0);
    shell.run(&line).await.ended(1);
    let mode = |path: &str| fs::metadata(shell.home().join(path)).expect(path).permissions().mode() & 0o777;
    assert_eq!((mode("saved"), mode("saved/keys/operator-issuer.key")), (0o700, 0o600));
    topology.programs().first_mut().expect("dev").kill().await;

    // As the document says: the folder is a data directory.
    let restored = shell.home().join("restored");
    fs::create_dir(&restored).expect("a folder");
    fs::rename(shell.home().join("saved"), restored.join(".reshelf")).expect("moved");
    let options = DevOptions { demo: false, ..DevOptions::default() };
    let mut program = Program::start("restored", dev_command(&restored.join(".reshelf"), &options), shell.home());
    program.shows("to run", START_LIMIT, |text| text.contains("reshelf is running").then_some(())).await;
    // Whoever stands beside the data directory needs to name nothing.
    let mut command = shell.command(&["operations", "wait", "before", "--timeout", "1m", "-o", "json"]);
    command.current_dir(&restored).env_remove("RESHELF_URL").env_remove("RESHELF_TOKEN_FILE");
    let output = command.output().await.expect("reshelf runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let operation: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(operation["summary"]["labels"], 60, "{operation}");
    assert_eq!(program.stop(START_LIMIT).await, Some(0));
}

/// The audit log by each of its filters: what was touched above is found, and by any other value it is not.
async fn narrowed_audit(shell: &Shell) {
    let all = [
        ("--actor", "operator@test", "another@test"),
        ("--action", "touch", "pause"),
        ("--outcome", "accepted", "refused"),
        ("--since", "1h", "2999-01-01T00:00:00Z"),
        ("--until", "2999-01-01T00:00:00Z", "1h"),
    ];
    for (flag, right, other) in all {
        for (value, found) in [(right, 1), (other, 0)] {
            let line = ["audit", "list", "--tracking-id", "CHG-2", flag, value, "-o", "json"];
            let entries = shell.run(&line).await.ended(0).json();
            assert_eq!(entries.as_array().map(Vec::len), Some(found), "{flag} {value}: {entries}");
        }
    }
    for wrong in [["--since", "yesterday"], ["--outcome", "lost"]] {
        shell.run(&[&["audit", "list"], &wrong[..]].concat()).await.ended(2);
    }
}
