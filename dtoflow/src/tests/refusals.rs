//! What the server refuses, and what it names.

use domain::{ErrorCode, Refusal, ServiceName};
use prost::{Message as _, bytes::Bytes};
use proto::{DtoFlowClient, dtoflow::v1 as wire, dtoflow_client, records::v1 as records, refusal_from_status};
use tonic::{Response, Status};

use super::{
    client::serve_world,
    world::{World, link},
};

struct Clients {
    import: DtoFlowClient,
    renderer: DtoFlowClient,
    gateway: DtoFlowClient,
    nobody: DtoFlowClient,
}

fn clients() -> Clients {
    let (bare, mut transports) = serve_world(&World::memory());
    let mut of = |service| dtoflow_client(transports.remove(&service).unwrap());
    Clients {
        import: of(ServiceName::RecordImport),
        renderer: of(ServiceName::EccImageRender),
        gateway: of(ServiceName::OperatorGateway),
        nobody: dtoflow_client(bare),
    }
}

fn item(dto_type: &str, dto_id: &str, payload: Bytes) -> wire::PutItem {
    wire::PutItem { dto_type: dto_type.to_owned(), dto_id: dto_id.to_owned(), payload, ..wire::PutItem::default() }
}

fn good() -> wire::PutItem {
    item("ecclink.v1", "t/T/s/S/ecclinks/E", link("I", "M"))
}

fn refusal<T: std::fmt::Debug>(answer: Result<Response<T>, Status>) -> Refusal {
    refusal_from_status(&answer.expect_err("must be refused"))
}

async fn put(client: &mut DtoFlowClient, items: Vec<wire::PutItem>) -> Refusal {
    refusal(client.put_many(wire::PutManyRequest { items, lease: None }).await)
}

#[tokio::test]
async fn who_may_not_write_is_refused() {
    let mut clients = clients();
    assert_eq!(put(&mut clients.nobody, vec![good()]).await.code, ErrorCode::Unauthenticated);
    assert_eq!(put(&mut clients.gateway, vec![good()]).await.code, ErrorCode::PermissionDenied);
    let image = item("ecceslimage.v1", "t/T/s/S/ecceslimages/E", Bytes::new());
    let denied = put(&mut clients.import, vec![good(), image.clone()]).await;
    assert_eq!((denied.code, denied.field.as_str()), (ErrorCode::PermissionDenied, "items[1].dto_type"));

    let unleased = put(&mut clients.renderer, vec![image.clone()]).await;
    assert_eq!((unleased.code, unleased.field.as_str()), (ErrorCode::InvalidArgument, "lease"));
    let lease = |queue: &str, generation| Some(wire::WriteLease { queue_name: queue.to_owned(), generation });
    for (lease, code, field) in [
        (lease("esl-image-merger", 1), ErrorCode::PermissionDenied, "lease.queue_name"),
        (lease("", 1), ErrorCode::InvalidArgument, "lease.queue_name"),
        (lease("ecc-image-render-service", 0), ErrorCode::InvalidArgument, "lease.generation"),
    ] {
        let request = wire::PutManyRequest { items: vec![image.clone()], lease };
        let refusal = refusal(clients.renderer.put_many(request).await);
        assert_eq!((refusal.code, refusal.field.as_str()), (code, field));
    }
    let leased = wire::PutManyRequest { items: vec![good()], lease: lease("record-import", 1) };
    assert_eq!(refusal(clients.import.put_many(leased).await).field, "lease");
}

#[tokio::test]
async fn what_is_wrong_with_an_item_is_named() {
    let mut clients = clients();
    let no_item = records::EccLink { model_id: "M".to_owned(), ..records::EccLink::default() };
    let no_item = Bytes::from(no_item.encode_to_vec());
    let timestamp = |nanos| Some(prost_types::Timestamp { seconds: 0, nanos });
    let input = |dto_id: &str, version| wire::InputVersion {
        dto_type: "eccmodel.v1".to_owned(),
        dto_id: dto_id.to_owned(),
        version,
    };
    let with_inputs = |inputs| wire::PutItem { inputs, ..good() };
    let model = "t/T/s/S/eccmodels/M";
    for (second, field, message) in [
        (item("ecclink.v2", "t/T/s/S/ecclinks/F", link("I", "M")), "items[1].dto_type", "is not a known DTO type"),
        (item("ecclink.v1", "", link("I", "M")), "items[1].dto_id", "is required"),
        (item("ecclink.v1", "t/T/s/S/esls/F", link("I", "M")), "items[1].dto_id", "is not the URN of a ecclink.v1"),
        (
            item("ecclink.v1", "t/U/s/S/ecclinks/F", link("I", "M")),
            "items[1].dto_id",
            "lies under another tenant than items[0]",
        ),
        (good(), "items[1].dto_id", "is the same record as items[0]"),
        (item("ecclink.v1", "t/T/s/S/ecclinks/F", no_item), "items[1].payload", "item_id is required"),
        (
            item("ecclink.v1", "t/T/s/S/ecclinks/F", Bytes::from_static(b"\xff")),
            "items[1].payload",
            "does not decode as a record of its type",
        ),
        (
            wire::PutItem { tracking_id: "a b".to_owned(), ..good() },
            "items[1].tracking_id",
            "may hold only A-Z a-z 0-9 . _ : -",
        ),
        (
            wire::PutItem { sla_timestamp: timestamp(-1), ..good() },
            "items[1].sla_timestamp",
            "is not a timestamp between the years 1 and 9999",
        ),
        (with_inputs(vec![input(model, -1)]), "items[1].inputs[0].version", "must not be negative"),
        (
            with_inputs(vec![input(model, 1), input("t/U/s/S/eccmodels/M", 1)]),
            "items[1].inputs[1].dto_id",
            "lies under another tenant than the record",
        ),
        (with_inputs(vec![input(model, 1); 17]), "items[1].inputs", "must have at most 16 entries"),
    ] {
        let refusal = put(&mut clients.import, vec![good(), second]).await;
        assert_eq!((refusal.field.as_str(), refusal.message.as_str()), (field, message));
        assert_eq!(refusal.code, ErrorCode::InvalidArgument);
    }
    let large = item("ecclink.v1", "t/T/s/S/ecclinks/E", vec![0; 320 * 1024 + 1].into());
    let refusal = put(&mut clients.import, vec![large]).await;
    assert_eq!((refusal.code, refusal.field.as_str()), (ErrorCode::PayloadTooLarge, "items[0].payload"));
    assert_eq!(put(&mut clients.import, Vec::new()).await.field, "items");
    let many = (0..4_097).map(|n| item("ecclink.v1", &format!("t/T/s/S/ecclinks/{n}"), link("I", "M"))).collect();
    assert_eq!(put(&mut clients.import, many).await.field, "items");
}

#[tokio::test]
async fn wrong_looks_are_named() {
    let mut clients = clients();
    let list = |parents: &[&str]| wire::ListByAliasRequest {
        dto_type: "studiolink.v1".to_owned(),
        alias_name: "by_design".to_owned(),
        parent_ids: parents.iter().map(|parent| (*parent).to_owned()).collect(),
        ..wire::ListByAliasRequest::default()
    };
    let parent = "t/T/s/S/designs/D";
    for (request, field) in [
        (list(&[]), "parent_ids"),
        (list(&["nothing"]), "parent_ids[0]"),
        (list(&[parent, "t/T/designs/D"]), "parent_ids[1]"),
        (list(&[parent, "t/U/s/S/designs/D"]), "parent_ids[1]"),
        (wire::ListByAliasRequest { alias_name: "by_eccmodel".to_owned(), ..list(&[parent]) }, "alias_name"),
        (wire::ListByAliasRequest { alias_name: String::new(), ..list(&[parent]) }, "alias_name"),
        (wire::ListByAliasRequest { dto_type: "x".to_owned(), ..list(&[parent]) }, "dto_type"),
        (wire::ListByAliasRequest { page_size: 4_097, ..list(&[parent]) }, "page_size"),
        (wire::ListByAliasRequest { page_size: -1, ..list(&[parent]) }, "page_size"),
        (wire::ListByAliasRequest { page_token: "1:E".to_owned(), ..list(&[parent]) }, "page_token"),
        (wire::ListByAliasRequest { page_token: "0:a/b".to_owned(), ..list(&[parent]) }, "page_token"),
        (wire::ListByAliasRequest { page_token: "E".to_owned(), ..list(&[parent]) }, "page_token"),
    ] {
        assert_eq!(refusal(clients.gateway.list_by_alias(request).await).field, field);
    }
    let stores = wire::ListStoresByAliasRequest {
        dto_type: "studiolink.v1".to_owned(),
        alias_name: "by_design".to_owned(),
        parent_id: parent.to_owned(),
        ..wire::ListStoresByAliasRequest::default()
    };
    assert_eq!(refusal(clients.gateway.list_stores_by_alias(stores).await).field, "parent_id");
    let key = |id: &str, version| wire::GetKey {
        dto_type: "ecclink.v1".to_owned(),
        dto_id: id.to_owned(),
        known_version: version,
    };
    for (keys, field) in [
        (vec![], "keys"),
        (vec![key("t/T/s/S/ecclinks/E", -1)], "keys[0].known_version"),
        (vec![key("t/T/s/S/ecclinks/E", 0), key("t/U/s/S/ecclinks/E", 0)], "keys[1].dto_id"),
        (vec![key("t/T", 0)], "keys[0].dto_id"),
    ] {
        assert_eq!(refusal(clients.gateway.get_many(wire::GetManyRequest { keys }).await).field, field);
    }
}

#[tokio::test]
async fn a_touch_needs_the_gateway_a_reason_and_a_tracking_id() {
    let mut clients = clients();
    let touch = || wire::TouchDtoRequest {
        dto_type: "ecclink.v1".to_owned(),
        dto_id: vec!["t/T/s/S/ecclinks/E".to_owned()],
        reason: "hardware was replaced".to_owned(),
        tracking_id: "touch-1".to_owned(),
        ..wire::TouchDtoRequest::default()
    };
    for client in [&mut clients.import, &mut clients.renderer] {
        assert_eq!(refusal(client.touch_dto(touch()).await).code, ErrorCode::PermissionDenied);
    }
    for (request, field) in [
        (wire::TouchDtoRequest { reason: " ".to_owned(), ..touch() }, "reason"),
        (wire::TouchDtoRequest { reason: "line\nbreak".to_owned(), ..touch() }, "reason"),
        (wire::TouchDtoRequest { tracking_id: String::new(), ..touch() }, "tracking_id"),
        (wire::TouchDtoRequest { dto_id: vec![], ..touch() }, "dto_id"),
        (wire::TouchDtoRequest { dto_id: vec!["t/T/s/S/ecclinks/E".to_owned(); 2], ..touch() }, "dto_id[1]"),
        (wire::TouchDtoRequest { dto_id: vec!["t/T/s/S/eccmodels/E".to_owned()], ..touch() }, "dto_id[0]"),
        (wire::TouchDtoRequest { operator_subject: "a\0".to_owned(), ..touch() }, "operator_subject"),
    ] {
        assert_eq!(refusal(clients.gateway.touch_dto(request).await).field, field);
    }
    let answer = clients.gateway.touch_dto(touch()).await.unwrap().into_inner();
    assert_eq!((answer.touched, answer.missing), (0, vec!["t/T/s/S/ecclinks/E".to_owned()]));
}
