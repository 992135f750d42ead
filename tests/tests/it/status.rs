//! How the platform stands: on the command line and for Prometheus, over a running product.

use std::fs;

use tests::{cli::Shell, data::Shelf, source::workspace_root, topology::Topology};

const TENANT: &str = "acme";
/// Enough labels that an operation of one label a second is not done before the test is.
const LABELS: usize = 40;

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_and_what_stops_it_is_seen_on_one_screen() {
    let topology = Topology::in_process().await;
    Shelf::write(&topology.doors, TENANT, &[("alpha", LABELS)]).await;
    topology.quiet().await;
    let shell = Shell::new(&topology.operator(&[TENANT]), topology.folder());
    let idle = shell.run(&["status", "-o", "json"]).await.ended(0).json();
    assert_eq!(idle["brake"]["on"], false, "{idle}");
    assert_eq!(idle["operations"]["running"], 0, "{idle}");
    assert_eq!(idle["services"].as_array().map(Vec::len), Some(4), "{idle}");

    shell.run(&["brake", "on", "--reason", "INC-7: wrong prices"]).await.ended(0);
    let refresh = ["trigger", "model-refresh", "--store", "store-1", "--model", "alpha", "--reason", "a test"];
    shell.run(&[&refresh[..], &["--tracking-id", "braked"]].concat()).await.ended(0);
    let braked = shell.run(&["status"]).await.ended(0);
    for words in ["ON since", "INC-7: wrong prices", "1 running", "ecc-image-render-service  operations"] {
        assert!(braked.out.contains(words), "{words}: {}", braked.out);
    }
    let json = shell.run(&["status", "-o", "json"]).await.ended(0).json();
    let renderer = json["services"]
        .as_array()
        .and_then(|all| all.iter().find(|service| service["service"] == "ecc-image-render-service"));
    // Its one parent, which nobody may split.
    assert_eq!(renderer.map(|found| &found["operations"]["ready"]), Some(&1.into()), "{json}");

    let metrics = topology.operator(&[TENANT]).get("/metrics").await.text();
    assert!(metrics.contains("reshelf_brake_on 1"), "{metrics}");
    assert!(metrics.contains("reshelf_operations{state=\"running\"} 1"), "{metrics}");
    documented(&metrics);

    shell.run(&["brake", "off", "--reason", "INC-7: corrected"]).await.ended(0);
    shell.run(&["operations", "wait", "braked"]).await.ended(0);
    topology.assert_exact().await;
}

/// The names of series in a text.
fn series(text: &str) -> Vec<&str> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    let mut names: Vec<&str> = words.filter(|word| word.starts_with("reshelf_")).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// The document and the rules name only what there is, and the document all of it.
fn documented(metrics: &str) {
    let root = workspace_root();
    let read = |path: &str| fs::read_to_string(root.join(path)).expect("a file of the repository");
    let there: Vec<&str> = metrics.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    let (document, rules) = (read("docs/monitoring.md"), read("monitoring/alerts.yml"));
    for name in series(&document).into_iter().chain(series(&rules)) {
        assert!(there.contains(&name), "{name} is documented, and not among {there:?}");
    }
    for name in there {
        assert!(series(&document).contains(&name), "{name} is not in docs/monitoring.md");
    }
    let alerts = rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: "));
    for alert in alerts {
        assert!(document.contains(&format!("`{alert}`")), "{alert} is not in docs/monitoring.md");
    }
}
