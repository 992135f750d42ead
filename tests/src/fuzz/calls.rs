//! What a running platform is sent: messages of every kind, and page tokens. It answers, and the fault is never its own.

use std::{cell::RefCell, sync::Arc};

use daemon::{SystemClock, identity::ServiceCredentials};
use domain::ServiceName;
use http::uri::PathAndQuery;
use prost::bytes::Bytes;
use proto::{cqs::v1 as cqs, dtoflow::v1 as dtoflow};
use tokio::runtime::Runtime;
use tonic::{Code, Request, Status, client::Grpc};

use super::{Target, seeds, text};
use crate::{data::Shelf, grpc::Raw, topology::Topology};

/// It waits for work, so long as it is asked to.
const WAITS: &str = "cqs.v1.ChangeQueueService/Dequeue";

/// The input is the number of an RPC and its message.
pub(super) fn calls() -> Target {
    let cases = seeds::cases("messages.jsonl");
    let named = cases.iter().map(|case| seeds::field(case, "rpc").to_owned());
    let mut rpcs: Vec<String> = named.filter(|rpc| rpc != WAITS).collect();
    rpcs.sort_unstable();
    rpcs.dedup();
    let seed = |case| {
        let number = rpcs.iter().position(|rpc| *rpc == seeds::field(case, "rpc"))?;
        Some([vec![u8::try_from(number).expect("few RPCs")], seeds::bytes(case)].concat())
    };
    let seeds = cases.iter().filter_map(seed).collect();
    let runtime = Runtime::new().expect("a runtime");
    let topology = runtime.block_on(Topology::in_process());
    // The import service may write records, the renderer has a queue.
    let grpc = [ServiceName::EccImageRender, ServiceName::RecordImport].map(|service| {
        let key = topology.doors.keys.get(&service).expect("a key").clone();
        let credentials = ServiceCredentials::new(service, key, Arc::new(SystemClock));
        RefCell::new(Grpc::new(credentials.attach(topology.doors.platform.clone())))
    });
    Target::new(seeds, move |bytes| {
        // Its folder and its loops live as long as the target.
        let _ = &topology;
        let Some((number, message)) = bytes.split_first() else { return };
        let rpc = &rpcs[usize::from(*number) % rpcs.len()];
        let path: PathAndQuery = format!("/{rpc}").parse().expect("a path");
        let mut grpc = grpc[usize::from(rpc.ends_with("Many"))].borrow_mut();
        let answer = runtime.block_on(async {
            grpc.ready().await.expect("the server is there");
            grpc.unary(Request::new(Bytes::copy_from_slice(message)), path, Raw).await
        });
        if let Err(status) = answer {
            let ours = matches!(status.code(), Code::Internal | Code::Unknown | Code::DataLoss | Code::Unavailable);
            assert!(!ours, "{rpc}: {status}");
        }
    })
}

/// Page tokens: whatever they are, the answer is a page or a refusal.
pub(super) fn cursors() -> Target {
    let runtime = Runtime::new().expect("a runtime");
    let topology = runtime.block_on(async {
        let topology = Topology::in_process().await;
        Shelf::write(&topology.doors, "acme", &[("alpha", 3)]).await;
        topology.quiet().await;
        topology
    });
    let (cqs, mut flow) =
        (topology.doors.cqs(ServiceName::OperatorGateway), topology.doors.dtoflow(ServiceName::OperatorGateway));
    let links = |page_token: String| dtoflow::ListByAliasRequest {
        dto_type: "ecclink.v1".to_owned(),
        alias_name: "by_store".to_owned(),
        parent_ids: vec!["t/acme/s/store-1".to_owned()],
        page_size: 1,
        page_token,
    };
    let next = runtime.block_on(flow.list_by_alias(links(String::new()))).expect("a page").into_inner().next_page_token;
    assert!(!next.is_empty(), "there is a second page");
    let seeds = [next.as_str(), "00000000000000ff", "1-2", "store-1", ""].map(|text| text.as_bytes().to_vec()).into();
    let refused = |status: Option<Status>, token: &str| {
        // A right token still leads to an operation that is not there.
        let status = status.filter(|status| !matches!(status.code(), Code::InvalidArgument | Code::NotFound));
        assert!(status.is_none(), "{token:?}: {status:?}");
    };
    let names = || ("acme".to_owned(), "CHG-1".to_owned());
    let cells = RefCell::new((cqs, flow));
    Target::new(seeds, move |bytes| {
        // Its folder and its loops live as long as the target.
        let _ = &topology;
        let token = text(bytes).into_owned();
        let (cqs, flow) = &mut *cells.borrow_mut();
        runtime.block_on(async {
            let (page_size, page_token) = (1, token.clone());
            let (tenant_ids, (tenant_id, tracking_id)) = (vec!["acme".to_owned()], names());
            let asked = cqs::ListOperationsRequest {
                tenant_ids: tenant_ids.clone(),
                page_size,
                page_token,
                ..cqs::ListOperationsRequest::default()
            };
            refused(cqs.list_operations(asked).await.err(), &token);
            let page_token = token.clone();
            let asked = cqs::ListAuditRequest { tenant_ids, page_size, page_token, ..cqs::ListAuditRequest::default() };
            refused(cqs.list_audit(asked).await.err(), &token);
            let page_token = token.clone();
            let asked = cqs::ListFailuresRequest {
                tenant_id,
                tracking_id,
                page_size,
                page_token,
                ..cqs::ListFailuresRequest::default()
            };
            refused(cqs.list_failures(asked).await.err(), &token);
            refused(flow.list_by_alias(links(token.clone())).await.err(), &token);
            let asked = dtoflow::ListStoresByAliasRequest {
                dto_type: "ecclink.v1".to_owned(),
                alias_name: "by_store".to_owned(),
                parent_id: "t/acme".to_owned(),
                page_size,
                page_token: token.clone(),
            };
            refused(flow.list_stores_by_alias(asked).await.err(), &token);
        });
    })
}
