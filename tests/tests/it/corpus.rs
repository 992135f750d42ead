//! The hostile corpus, as far as it is about names and messages; what comes over HTTP is replayed by the gateway's tests.

use std::fs;

use crate::costs::{Costs, Running};
use daemon::{SystemClock, identity::ServiceCredentials};
use domain::{OperatorSubject, QueueName, Reason, RecordId, ServiceName, TenantId, TrackingId, Urn};
use http::uri::PathAndQuery;
use prost::bytes::Bytes;
use serde_json::Value;
use tests::{grpc::Raw, source::workspace_root, topology::Topology};
use tonic::{Code, Request, client::Grpc};

fn cases(file: &str, least: usize) -> Vec<Value> {
    let path = workspace_root().join("tests/corpus").join(file);
    let text = fs::read_to_string(&path).expect("the corpus");
    let cases: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("a case")).collect();
    assert!(cases.len() >= least, "{file} has only {} cases", cases.len());
    cases
}

fn text<'c>(case: &'c Value, key: &str) -> &'c str {
    case[key].as_str().expect("a text")
}

#[test]
fn names_are_accepted_exactly_as_the_rules_say() {
    let (mut wrong, mut costs) = (Vec::new(), Costs::default());
    for case in cases("names.jsonl", 600) {
        let (name, running) = (text(&case, "text"), Running::begin());
        let accepted = match text(&case, "kind") {
            "tenant_id" => name.parse::<TenantId>().is_ok(),
            "record_id" => name.parse::<RecordId>().is_ok(),
            "tracking_id" => name.parse::<TrackingId>().is_ok(),
            "queue_name" => name.parse::<QueueName>().is_ok(),
            "reason" => name.parse::<Reason>().is_ok(),
            "subject" => name.parse::<OperatorSubject>().is_ok(),
            "urn" => match name.parse::<Urn>() {
                Ok(urn) => {
                    assert_eq!(urn.to_string(), name, "a URN is written as it was read");
                    true
                }
                Err(_) => false,
            },
            kind => panic!("no kind {kind}"),
        };
        costs.end(&running, text(&case, "name"));
        if case["valid"] != accepted {
            wrong.push(format!("{}: {name:?}", text(&case, "name")));
        }
    }
    costs.tell("names.jsonl");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Whatever a service sends, the platform answers, and never that the fault is its own.
#[tokio::test(flavor = "multi_thread")]
async fn messages_never_cause_a_fault_of_ours() {
    let topology = Topology::in_process().await;
    let key = topology.doors.keys.get(&ServiceName::EccImageRender).expect("a key").clone();
    let credentials = ServiceCredentials::new(ServiceName::EccImageRender, key, std::sync::Arc::new(SystemClock));
    let (mut wrong, mut costs) = (Vec::new(), Costs::default());
    for case in cases("messages.jsonl", 450) {
        let hex = text(&case, "bytes");
        let bytes: Vec<u8> =
            (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[at * 2..at * 2 + 2], 16).expect("hex")).collect();
        let mut grpc = Grpc::new(credentials.attach(topology.doors.platform.clone()));
        grpc.ready().await.expect("the server is there");
        let path: PathAndQuery = format!("/{}", text(&case, "rpc")).parse().expect("a path");
        let running = Running::begin();
        let answer = grpc.unary(Request::new(Bytes::from(bytes)), path, Raw).await;
        costs.end(&running, text(&case, "name"));
        if let Err(status) = answer
            && matches!(status.code(), Code::Internal | Code::Unknown | Code::DataLoss | Code::Unavailable)
        {
            wrong.push(format!("{}: {status}", text(&case, "name")));
        }
    }
    costs.tell("messages.jsonl");
    assert!(wrong.is_empty(), "{wrong:#?}");
    topology.assert_exact().await;
}
