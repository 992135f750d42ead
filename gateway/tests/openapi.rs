//! The document: committed, current, valid where generators care, and silent about queues and notifications.

#![expect(clippy::unwrap_used, reason = "a test's own helpers: a failure is the test's")]

use std::{fs, path::PathBuf};

use serde_json::Value;

fn committed() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../openapi/openapi.json")
}

fn document() -> Value {
    serde_json::from_str(&gateway::openapi_json()).unwrap()
}

/// (path, method, operation)
fn operations(document: &Value) -> Vec<(String, String, Value)> {
    let mut all = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            all.push((path.clone(), method.clone(), operation.clone()));
        }
    }
    assert!(all.len() >= 21, "the walk found only {}", all.len());
    all
}

#[test]
fn the_committed_document_is_current() {
    let current = gateway::openapi_json();
    if std::env::var_os("UPDATE_OPENAPI").is_some() {
        fs::write(committed(), &current).unwrap();
    }
    let known = fs::read_to_string(committed()).unwrap_or_default();
    assert!(known == current, "openapi/openapi.json has drifted: run this test with UPDATE_OPENAPI=1 and commit it");
}

#[test]
fn every_operation_is_complete() {
    let document = document();
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    let mut ids = Vec::new();
    for (path, method, operation) in operations(&document) {
        let name = format!("{method} {path}");
        let id = operation["operationId"].as_str().unwrap_or_else(|| panic!("{name} has no operationId")).to_owned();
        let verb = id.split('_').next().unwrap();
        assert!(
            [
                "get", "list", "trigger", "touch", "preview", "pause", "resume", "cancel", "approve", "decline", "set",
                "retry"
            ]
            .contains(&verb),
            "{id} is not verb_resource"
        );
        assert!(!ids.contains(&id), "{id} twice");
        ids.push(id);
        assert!(operation["tags"].as_array().is_some_and(|tags| tags.len() == 1), "{name} needs one tag");
        assert!(operation["security"].as_array().is_some_and(|list| !list.is_empty()), "{name} declares no security");
        let responses = operation["responses"].as_object().unwrap();
        for (status, response) in responses {
            assert!(response["description"].as_str().is_some_and(|text| !text.is_empty()), "{name} {status}");
        }
        assert!(responses.keys().any(|status| status.starts_with('2')), "{name} documents no success");
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            assert!(parameter["description"].as_str().is_some_and(|text| !text.is_empty()), "{name} {parameter}");
        }
    }
}

/// Paths and operations of what can be forced.
fn triggers(document: &Value) -> Vec<(String, Value)> {
    let is_trigger = |operation: &Value| {
        operation["operationId"].as_str().is_some_and(|id| id.starts_with("trigger_") || id.starts_with("touch_"))
    };
    let all = operations(document).into_iter().filter(|(_, _, operation)| is_trigger(operation));
    all.map(|(path, _, operation)| (path, operation)).collect()
}

#[test]
fn every_trigger_example_is_a_dry_run() {
    let mut found = 0;
    for (path, operation) in triggers(&document()) {
        let example = &operation["requestBody"]["content"]["application/json"]["example"];
        assert_eq!(example["dry_run"], Value::Bool(true), "{path}");
        assert!(example["reason"].is_string() && example["tracking_id"].is_string(), "{path}");
        found += 1;
    }
    assert_eq!(found, domain::Trigger::ALL.len() + 1);
}

#[test]
fn every_trigger_body_has_reason_tracking_id_and_dry_run() {
    let document = document();
    for (path, operation) in triggers(&document) {
        let reference = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"].as_str().unwrap();
        let schema = &document["components"]["schemas"][reference.rsplit('/').next().unwrap()];
        let required: Vec<&str> = schema["required"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        for field in ["reason", "tracking_id", "dry_run"] {
            assert!(required.contains(&field), "{path} does not require {field}");
        }
        assert_eq!(schema["additionalProperties"], Value::Bool(false), "{path} takes unknown fields");
    }
}

/// Operators need not know how the platform hands work around.
#[test]
fn no_path_or_field_names_a_queue_or_a_notification() {
    let document = document();
    let mut names: Vec<String> = document["paths"].as_object().unwrap().keys().cloned().collect();
    let mut rest: Vec<&Value> = vec![&document];
    while let Some(value) = rest.pop() {
        match value {
            Value::Object(map) => {
                if let Some(properties) = map.get("properties").and_then(Value::as_object) {
                    names.extend(properties.keys().cloned());
                }
                names.extend(map.get("operationId").and_then(Value::as_str).map(str::to_owned));
                if map.contains_key("in") {
                    names.extend(map.get("name").and_then(Value::as_str).map(str::to_owned));
                }
                rest.extend(map.values());
            }
            Value::Array(list) => rest.extend(list),
            _ => {}
        }
    }
    assert!(names.len() > 100, "the walk found only {}", names.len());
    for name in names {
        let lower = name.to_lowercase();
        let words: Vec<&str> = lower.split(|c: char| !c.is_ascii_alphanumeric()).collect();
        for word in ["queue", "queues", "notification", "notifications", "inject", "enqueue"] {
            assert!(!words.contains(&word), "{name} names a {word}");
        }
    }
}

#[test]
fn every_reference_resolves() {
    let document = document();
    let mut rest: Vec<&Value> = vec![&document];
    let mut found = 0;
    while let Some(value) = rest.pop() {
        match value {
            Value::Object(map) => {
                if let Some(reference) = map.get("$ref").and_then(Value::as_str) {
                    let pointer = reference.strip_prefix('#').expect("references stay inside the document");
                    assert!(document.pointer(pointer).is_some(), "{reference} leads nowhere");
                    found += 1;
                }
                rest.extend(map.values());
            }
            Value::Array(list) => rest.extend(list),
            _ => {}
        }
    }
    assert!(found > 20);
}
