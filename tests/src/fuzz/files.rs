//! Files that people write: configurations, the registry, records to import.

use std::fs;

use daemon::identity::{Registry, ServiceKey};
use domain::ServiceName;
use gateway::GatewayConfig;
use serde_json::Value;
use worker::config::WorkerConfig;

use super::{Target, seeds, text};
use crate::source::workspace_root;

/// What programs are configured by, and the registry.
pub(super) fn configurations() -> Target {
    let key = ServiceKey::generate().expect("a key");
    let registry = Registry::standard_document(&[(ServiceName::OperatorGateway, key.public().clone())]);
    let mut seeds = vec![
        registry.expect("a document").into_bytes(),
        fs::read(workspace_root().join("gateway/gateway.example.toml")).expect("the example"),
    ];
    seeds.extend(seeds::blocks("docs/running.md", "toml").into_iter().map(String::into_bytes));
    let folder = tempfile::tempdir().expect("a folder");
    Target::new(seeds, move |bytes| {
        drop(Registry::parse(&text(bytes)));
        let path = folder.path().join("program.toml");
        fs::write(&path, bytes).expect("written");
        drop(daemon::config::read::<GatewayConfig>(&path));
        if let Ok(config) = daemon::config::read::<WorkerConfig>(&path) {
            drop(config.service_names());
        }
    })
}

/// One line of an import.
pub(super) fn imports() -> Target {
    let lines = fs::read_to_string(workspace_root().join("docs/running.md")).expect("the document");
    let mut seeds: Vec<Vec<u8>> =
        lines.lines().filter(|line| line.starts_with("{\"dto_type\"")).map(|line| line.as_bytes().to_vec()).collect();
    seeds.push(br#"{"dto_type":"design.v1","dto_id":"t/T/designs/D","record":{"name":"n","svg":"<svg/>","mappings":{"studio":1,"name":"n","elements":{}}}}"#.to_vec());
    let read = seeds.iter().filter(|line| app::records::record_from_json(&text(line)).is_ok()).count();
    assert_eq!(read, seeds.len(), "the seeds are read");
    Target::new(seeds, |bytes| {
        let line = text(bytes);
        if let Ok(record) = app::records::record_from_json(&line) {
            let given: Value = serde_json::from_str(&line).expect("what is read is JSON");
            assert_eq!(given["dto_id"], record.urn.to_string());
            assert_eq!(given["dto_type"], record.dto_type.as_str());
        }
    })
}
