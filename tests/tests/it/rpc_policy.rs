//! Who may call what between systems: one row per RPC, and the whole matrix tried.
//!
//! An RPC was added and this fails? Add its row below, and its name to the callers' grants in `daemon::identity`. A row is
//! the policy; the grants must equal it, and the servers must hold it.

use std::collections::{BTreeMap, BTreeSet};

use daemon::{
    SystemClock,
    identity::{Registry, ServiceCredentials, ServiceKey},
};
use domain::ServiceName;
use http::uri::PathAndQuery;
use prost::Message as _;
use prost_types::FileDescriptorSet;
use proto::{Transport, refusal_from_status};
use tests::topology::Topology;
use tonic::{Code, Request, Status, client::Grpc, metadata::MetadataValue};
use tonic_prost::ProstCodec;

use ServiceName::{EccImageRender, EslImageMerger, HardwareExporter, OperatorGateway, RecordImport, StudioRenderer};

/// The services that have a queue.
const WORKERS: &[ServiceName] = &[EccImageRender, StudioRenderer, EslImageMerger, HardwareExporter];
const GATEWAY: &[ServiceName] = &[OperatorGateway];
const WORKERS_AND_GATEWAY: &[ServiceName] =
    &[EccImageRender, StudioRenderer, EslImageMerger, HardwareExporter, OperatorGateway];
const EVERYBODY: &[ServiceName] =
    &[EccImageRender, StudioRenderer, EslImageMerger, HardwareExporter, OperatorGateway, RecordImport];

/// RPC → its callers.
const POLICY: &[(&str, &[ServiceName])] = &[
    ("cqs.v1.ChangeQueueService/CreateOrConfigureQueue", WORKERS),
    ("cqs.v1.ChangeQueueService/Dequeue", WORKERS),
    ("cqs.v1.ChangeQueueService/Complete", WORKERS),
    ("cqs.v1.ChangeQueueService/ExtendLease", WORKERS),
    ("cqs.v1.ChangeQueueService/ReEnqueue", WORKERS),
    ("cqs.v1.ChangeQueueService/SelfEnqueue", WORKERS),
    ("cqs.v1.ChangeQueueService/GetOperation", WORKERS_AND_GATEWAY),
    ("cqs.v1.ChangeQueueService/ListOperations", GATEWAY),
    ("cqs.v1.ChangeQueueService/ControlOperation", GATEWAY),
    ("cqs.v1.ChangeQueueService/SetBrake", GATEWAY),
    ("cqs.v1.ChangeQueueService/GetBrake", GATEWAY),
    ("cqs.v1.ChangeQueueService/GetOverview", GATEWAY),
    ("cqs.v1.ChangeQueueService/AppendAudit", WORKERS_AND_GATEWAY),
    ("cqs.v1.ChangeQueueService/ListAudit", GATEWAY),
    ("cqs.v1.ChangeQueueService/FollowAudit", GATEWAY),
    ("cqs.v1.ChangeQueueService/ListFailures", GATEWAY),
    ("cqs.v1.ChangeQueueService/RetryFailures", GATEWAY),
    ("cqs.v1.ChangeQueueService/GetRecordFates", GATEWAY),
    (
        "dtoflow.v1.DtoFlowService/PutMany",
        &[EccImageRender, StudioRenderer, EslImageMerger, HardwareExporter, RecordImport],
    ),
    (
        "dtoflow.v1.DtoFlowService/DeleteMany",
        &[EccImageRender, StudioRenderer, EslImageMerger, HardwareExporter, RecordImport],
    ),
    ("dtoflow.v1.DtoFlowService/GetMany", EVERYBODY),
    ("dtoflow.v1.DtoFlowService/ListByAlias", WORKERS_AND_GATEWAY),
    ("dtoflow.v1.DtoFlowService/CountByAlias", WORKERS_AND_GATEWAY),
    ("dtoflow.v1.DtoFlowService/ListStoresByAlias", WORKERS_AND_GATEWAY),
    ("dtoflow.v1.DtoFlowService/ListHistory", GATEWAY),
    // The exporter announces pictures again after an access point was reset.
    ("dtoflow.v1.DtoFlowService/TouchDto", &[OperatorGateway, HardwareExporter]),
    ("ecc_image_render.v1.EccImageRenderTriggers/TriggerModelRefresh", GATEWAY),
    ("ecc_image_render.v1.EccImageRenderTriggers/TriggerEccStoreRerender", GATEWAY),
    ("ecc_image_render.v1.EccImageRenderTriggers/PreviewModelRefresh", GATEWAY),
    ("studio_renderer.v1.StudioRendererTriggers/TriggerDesignRefresh", GATEWAY),
    ("studio_renderer.v1.StudioRendererTriggers/TriggerStudioStoreRerender", GATEWAY),
    ("studio_renderer.v1.StudioRendererTriggers/PreviewDesignRefresh", GATEWAY),
    ("hardware_exporter.v1.HardwareExporterTriggers/TriggerStoreReexport", GATEWAY),
    ("hardware_exporter.v1.HardwareExporterTriggers/TriggerAccessPointReexport", GATEWAY),
    ("hardware_exporter.v1.HardwareExporterTriggers/TriggerLabelReexport", GATEWAY),
];

/// Every RPC of every contract, as `package.Service/Method`.
fn rpcs() -> BTreeSet<String> {
    let set = FileDescriptorSet::decode(proto::DESCRIPTORS).expect("the descriptors decode");
    let mut rpcs = BTreeSet::new();
    for file in &set.file {
        for service in &file.service {
            for method in &service.method {
                rpcs.insert(format!("{}.{}/{}", file.package(), service.name(), method.name()));
            }
        }
    }
    rpcs
}

#[test]
fn every_rpc_has_a_row_and_every_row_an_rpc() {
    let rows: BTreeSet<String> = POLICY.iter().map(|(rpc, _)| (*rpc).to_owned()).collect();
    assert_eq!(rows.len(), POLICY.len(), "a row is there twice");
    let rpcs = rpcs();
    let missing: Vec<&String> = rpcs.difference(&rows).collect();
    assert!(missing.is_empty(), "say who may call them, in tests/tests/it/rpc_policy.rs: {missing:#?}");
    let stale: Vec<&String> = rows.difference(&rpcs).collect();
    assert!(stale.is_empty(), "rows of RPCs that are no more: {stale:#?}");
}

/// What `dev` writes, and a production registry starts from.
#[test]
fn the_standard_grants_are_the_policy() {
    for service in ServiceName::ALL {
        let key = ServiceKey::generate().expect("a key");
        let document = Registry::standard_document(&[(*service, key.public().clone())]).expect("a document");
        let listed: BTreeSet<&str> = document
            .lines()
            .filter_map(|line| line.trim().trim_end_matches(',').strip_prefix('"')?.strip_suffix('"'))
            .filter(|text| text.contains('/'))
            .collect();
        let allowed: BTreeSet<&str> =
            POLICY.iter().filter(|(_, callers)| callers.contains(service)).map(|(rpc, _)| *rpc).collect();
        assert_eq!(listed, allowed, "{service}");
    }
}

/// Calls `rpc` with an empty message.
async fn call(transport: Transport, rpc: &str, change: impl FnOnce(&mut Request<()>)) -> Result<(), Status> {
    let mut grpc = Grpc::new(transport);
    grpc.ready().await.expect("the server is there");
    let path: PathAndQuery = format!("/{rpc}").parse().expect("a path");
    let mut request = Request::new(());
    change(&mut request);
    grpc.unary(request, path, ProstCodec::<(), ()>::default()).await.map(drop)
}

/// Whether the refusal says that this caller may not call this RPC at all.
fn is_forbidden(answer: &Result<(), Status>) -> bool {
    answer.as_ref().is_err_and(|status| {
        status.code() == Code::PermissionDenied && refusal_from_status(status).message.contains("may not call")
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn the_matrix_holds() {
    let topology = Topology::in_process().await;
    let operator = topology.operator(&["acme"]).token().expect("a token").to_owned();
    let mut cells = BTreeMap::from([("allowed", 0), ("forbidden", 0), ("unauthenticated", 0)]);
    let mut count = |kind: &'static str| *cells.entry(kind).or_insert(0) += 1;
    for (rpc, callers) in POLICY {
        let door = if rpc.contains("Triggers/") { &topology.doors.triggers } else { &topology.doors.platform };
        for service in ServiceName::ALL {
            let key = topology.doors.keys.get(service).expect("a key").clone();
            let credentials = ServiceCredentials::new(*service, key, std::sync::Arc::new(SystemClock));
            let answer = call(credentials.attach(door.clone()), rpc, |request| {
                // What a client says of itself counts for nothing.
                for name in ["x-service-id", "x-spiffe-id", "x-forwarded-client-cert", "x-forwarded-for"] {
                    request.metadata_mut().insert(name, MetadataValue::from_static("svc:operator-gateway"));
                }
            })
            .await;
            assert_eq!(is_forbidden(&answer), !callers.contains(service), "{service} calls {rpc}: {answer:?}");
            if let Err(status) = &answer {
                assert!(!matches!(status.code(), Code::Internal | Code::Unknown), "{service} calls {rpc}: {status}");
            }
            count(if callers.contains(service) { "allowed" } else { "forbidden" });
        }
        let stranger = ServiceKey::generate().expect("a key");
        let impostor = ServiceCredentials::new(OperatorGateway, stranger, std::sync::Arc::new(SystemClock));
        let bearer: MetadataValue<_> = format!("Bearer {operator}").parse().expect("metadata");
        for (who, answer) in [
            ("nobody", call(door.clone(), rpc, |_| {}).await),
            (
                "an operator",
                call(door.clone(), rpc, |request| {
                    request.metadata_mut().insert("authorization", bearer.clone());
                })
                .await,
            ),
            ("an impostor", call(impostor.attach(door.clone()), rpc, |_| {}).await),
        ] {
            assert_eq!(answer.expect_err(who).code(), Code::Unauthenticated, "{who} calls {rpc}");
            count("unauthenticated");
        }
    }
    let tried: usize = cells.values().sum();
    assert_eq!(tried, rpcs().len() * (ServiceName::ALL.len() + 3), "every cell is tried: {cells:?}");
}

/// Bytes that are no message of the RPC's type are the caller's mistake, not a fault of ours.
#[tokio::test(flavor = "multi_thread")]
async fn undecodable_messages_are_invalid_arguments() {
    let topology = Topology::in_process().await;
    for (rpc, callers) in POLICY {
        let door = if rpc.contains("Triggers/") { &topology.doors.triggers } else { &topology.doors.platform };
        let service = *callers.first().expect("a caller");
        let key = topology.doors.keys.get(&service).expect("a key").clone();
        let transport = ServiceCredentials::new(service, key, std::sync::Arc::new(SystemClock)).attach(door.clone());
        let mut grpc = Grpc::new(transport);
        grpc.ready().await.expect("the server is there");
        let path: PathAndQuery = format!("/{rpc}").parse().expect("a path");
        let answer =
            grpc.unary(Request::new(Broken { number: 7 }), path, ProstCodec::<Broken, ()>::default()).await.map(drop);
        match answer {
            // Requests without fields: this one is unknown there, and passed over.
            Ok(()) => assert!(rpc.ends_with("/GetBrake") || rpc.ends_with("/GetOverview"), "{rpc}"),
            Err(status) => assert_eq!(status.code(), Code::InvalidArgument, "{rpc}: {status}"),
        }
    }
}

/// Field 1 of a wire type that no field 1 of ours has.
#[derive(Clone, PartialEq, prost::Message)]
struct Broken {
    #[prost(fixed64, tag = "1")]
    number: u64,
}
