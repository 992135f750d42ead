//! The gates of CQS itself, tried directly with the keys of services: who may inject what, and what is written down.

use std::time::Duration;

use daemon::SystemClock;
use domain::{Clock as _, DtoType, ServiceName, Trigger};
use proto::{
    cqs::v1::{ReEnqueueRequest, SelfEnqueueRequest, SplitItem, split_item},
    cqs_client,
    dtoflow::v1::{GetManyRequest, PutManyRequest, TouchDtoRequest},
    dtoflow_client,
    ecc_image_render::v1::{TriggerEccStoreRerenderRequest, TriggerModelRefreshRequest},
    hardware_exporter::v1::{
        TriggerAccessPointReexportRequest, TriggerLabelReexportRequest, TriggerStoreReexportRequest,
    },
    studio_renderer::v1::{TriggerDesignRefreshRequest, TriggerStudioStoreRerenderRequest},
};
use tests::{
    data::Shelf,
    grpc::{Doors, refusal},
    topology::{OPERATION_LIMIT, Topology},
    wait::throughout,
};
use tonic::{Request, metadata::MetadataValue};

const ECC: ServiceName = ServiceName::EccImageRender;
const TENANT: &str = "acme";

fn parent(urn: &str, alias: &str) -> SplitItem {
    SplitItem {
        dto_type: DtoType::EccLink.to_string(),
        urn: Some(split_item::Urn::ParentId(urn.to_owned())),
        alias_name: alias.to_owned(),
    }
}

/// What the ECC renderer's trigger would ask for.
fn fair(tracking_id: &str) -> SelfEnqueueRequest {
    SelfEnqueueRequest {
        queue_name: ECC.to_string(),
        items: vec![parent("t/acme/s/store-1/eccmodels/alpha", "by_eccmodel")],
        reason: "CHG-118".to_owned(),
        tracking_id: tracking_id.to_owned(),
        ..SelfEnqueueRequest::default()
    }
}

/// What may not change by a refused call.
#[derive(Debug, PartialEq, Eq)]
struct Footprint {
    notifications: i64,
    operations: i64,
}

async fn footprint(topology: &Topology) -> Footprint {
    let mut tables = topology.tables().await;
    Footprint { notifications: tables.notifications_ever().await, operations: tables.operations().await }
}

/// What must be refused: a name, the request, and how the refusal begins.
fn unfair() -> Vec<(&'static str, SelfEnqueueRequest, &'static str)> {
    let item = |urn: split_item::Urn, alias: &str| SplitItem {
        dto_type: DtoType::EccLink.to_string(),
        urn: Some(urn),
        alias_name: alias.to_owned(),
    };
    vec![
        (
            "another service's queue",
            SelfEnqueueRequest { queue_name: ServiceName::HardwareExporter.to_string(), ..fair("gate-queue") },
            "PERMISSION_DENIED queue_name",
        ),
        (
            "a queue nobody has",
            SelfEnqueueRequest { queue_name: "nobody".to_owned(), ..fair("gate-nobody") },
            "PERMISSION_DENIED queue_name",
        ),
        (
            "an undeclared alias",
            SelfEnqueueRequest {
                items: vec![parent("t/acme/s/store-1/esls/alpha-0000", "by_storeesl")],
                ..fair("gate-alias")
            },
            "PERMISSION_DENIED items[0]",
        ),
        (
            "a record instead of a parent",
            SelfEnqueueRequest {
                items: vec![item(split_item::Urn::DtoId("t/acme/s/store-1/ecclinks/alpha-0000".to_owned()), "")],
                ..fair("gate-record")
            },
            "PERMISSION_DENIED items[0]",
        ),
        (
            "a second tenant's URN",
            SelfEnqueueRequest {
                items: vec![
                    parent("t/acme/s/store-1/eccmodels/alpha", "by_eccmodel"),
                    parent("t/other/s/store-1/eccmodels/alpha", "by_eccmodel"),
                ],
                ..fair("gate-tenant")
            },
            "PERMISSION_DENIED items[1]",
        ),
        (
            "1,001 items",
            SelfEnqueueRequest {
                items: (0..1_001)
                    .map(|number| parent(&format!("t/acme/s/store-1/eccmodels/m{number}"), "by_eccmodel"))
                    .collect(),
                ..fair("gate-1001")
            },
            "INVALID_ARGUMENT items",
        ),
        ("no items", SelfEnqueueRequest { items: Vec::new(), ..fair("gate-empty") }, "INVALID_ARGUMENT items"),
        ("no reason", SelfEnqueueRequest { reason: String::new(), ..fair("gate-reason") }, "INVALID_ARGUMENT reason"),
        ("no tracking id", fair(""), "INVALID_ARGUMENT tracking_id"),
        ("a tracking id of other characters", fair("a b"), "INVALID_ARGUMENT tracking_id"),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_of_self_enqueue_enqueue_nothing_and_are_audited_once() {
    let topology = Topology::in_process().await;
    Shelf::write(&topology.doors, TENANT, &[("alpha", 2)]).await;
    topology.quiet().await;
    let before = footprint(&topology).await;
    for (name, request, expected) in unfair() {
        let audited = topology.tables().await.audit_entries().await;
        let tracking_id = request.tracking_id.clone();
        let refused = refusal(topology.doors.cqs(ECC).self_enqueue(request).await);
        assert!(refused.starts_with(expected), "{name}: {refused}, expected {expected}");
        assert_eq!(footprint(&topology).await, before, "{name}: nothing is enqueued");
        let new = topology.tables().await.audit_after(audited).await;
        let [entry] = new.as_slice() else { panic!("{name}: one audit entry, not {new:#?}") };
        let code = expected.split(' ').next().unwrap_or_default();
        assert_eq!(
            (entry.outcome.as_str(), entry.error_code.as_str(), entry.service.as_str()),
            ("refused", code, "ecc-image-render-service"),
            "{name}: {entry:#?}"
        );
        if tracking_id.starts_with("gate-") {
            assert_eq!(entry.tracking_id, tracking_id, "{name}");
        }
    }
    topology.assert_exact().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fair_self_enqueue_is_due_now_and_enqueues_one() {
    let topology = Topology::in_process().await;
    Shelf::write(&topology.doors, TENANT, &[("alpha", 2)]).await;
    topology.quiet().await;
    let before = SystemClock.now().as_ms();
    let answer = topology.doors.cqs(ECC).self_enqueue(fair("fair-1")).await.expect("accepted").into_inner();
    let after = SystemClock.now().as_ms();
    assert_eq!(answer.items_enqueued, 1);
    assert!(!answer.replayed);
    let sla = proto::timestamp_from_wire("sla_timestamp", &answer.sla_timestamp.expect("an SLA")).expect("a time");
    assert!((before..=after).contains(&sla.as_ms()), "due now: {before} {} {after}", sla.as_ms());
    let entries = topology.tables().await.audit_of("fair-1").await;
    let [entry] = entries.as_slice() else { panic!("one audit entry, not {entries:#?}") };
    assert_eq!((entry.outcome.as_str(), entry.reason.as_str()), ("accepted", "CHG-118"));
    let again = topology.doors.cqs(ECC).self_enqueue(fair("fair-1")).await.expect("the same again").into_inner();
    assert!(again.replayed);
    assert_eq!((again.items_enqueued, again.sla_timestamp), (1, answer.sla_timestamp));
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_writes_or_touches_under_an_operations_tracking_id() {
    let topology = Topology::in_process().await;
    let shelf = Shelf::write(&topology.doors, TENANT, &[("alpha", 2)]).await;
    topology.quiet().await;
    topology.doors.cqs(ECC).self_enqueue(fair("owned-1")).await.expect("accepted");
    topology.finished(TENANT, "owned-1", OPERATION_LIMIT).await;
    let before = (footprint(&topology).await, topology.tables().await.records(None).await);

    let mut put = shelf.item("alpha-0000", "7.77");
    put.tracking_id = "owned-1".to_owned();
    let request = PutManyRequest { items: vec![put], lease: None };
    let refused = refusal(topology.doors.dtoflow(ServiceName::RecordImport).put_many(request).await);
    assert!(refused.ends_with("tracking_id"), "{refused}");
    let touch = TouchDtoRequest {
        dto_type: DtoType::StoreItemValues.to_string(),
        dto_id: vec![shelf.urn(DtoType::StoreItemValues, "alpha-0000")],
        reason: "look".to_owned(),
        tracking_id: "owned-1".to_owned(),
        ..TouchDtoRequest::default()
    };
    let refused = refusal(topology.doors.dtoflow(ServiceName::OperatorGateway).touch_dto(touch).await);
    assert!(refused.ends_with("tracking_id"), "{refused}");
    let after = (footprint(&topology).await, topology.tables().await.records(None).await);
    assert_eq!(before, after, "nothing is written, nothing is announced");
    topology.assert_exact().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_gateway_may_call_a_trigger() {
    let topology = Topology::in_process().await;
    Shelf::write(&topology.doors, TENANT, &[("alpha", 2)]).await;
    topology.quiet().await;
    let before = footprint(&topology).await;
    for service in ServiceName::ALL.iter().filter(|service| **service != ServiceName::OperatorGateway) {
        for trigger in Trigger::ALL {
            let audited = topology.tables().await.audit_entries().await;
            let refused = refused_trigger(&topology.doors, *service, *trigger).await;
            assert_eq!(refused, "PERMISSION_DENIED", "{service} {trigger}");
            assert_eq!(footprint(&topology).await, before, "{service} {trigger}");
            let new = topology.tables().await.audit_after(audited).await;
            let [entry] = new.as_slice() else { panic!("{service} {trigger}: one audit entry, not {new:#?}") };
            let outcome = (entry.outcome.as_str(), entry.error_code.as_str());
            assert_eq!(outcome, ("refused", "PERMISSION_DENIED"), "{entry:#?}");
            assert!(format!("{entry:?}").contains(&format!("svc:{service}")), "the entry names the caller: {entry:#?}");
        }
    }
}

/// What a service that calls a trigger itself is told.
async fn refused_trigger(doors: &Doors, service: ServiceName, trigger: Trigger) -> String {
    macro_rules! request {
        ($message:ident { $($field:ident: $value:literal),* }) => {
            $message {
                tenant_id: TENANT.to_owned(),
                $($field: $value.to_owned(),)*
                reason: "CHG-118".to_owned(),
                tracking_id: format!("{trigger}-{service}"),
                operator_subject: "operator@test".to_owned(),
                ..$message::default()
            }
        };
    }
    let (mut ecc, mut studio) = (doors.ecc_triggers(service), doors.studio_triggers(service));
    let mut exporter = doors.exporter_triggers(service);
    match trigger {
        Trigger::ModelRefresh => {
            let request = request!(TriggerModelRefreshRequest { store_id: "store-1", model_id: "alpha" });
            refusal(ecc.trigger_model_refresh(request).await)
        }
        Trigger::EccStoreRerender => {
            let request = request!(TriggerEccStoreRerenderRequest { store_id: "store-1" });
            refusal(ecc.trigger_ecc_store_rerender(request).await)
        }
        Trigger::DesignRefresh => {
            let request = request!(TriggerDesignRefreshRequest { design_id: "poster" });
            refusal(studio.trigger_design_refresh(request).await)
        }
        Trigger::StudioStoreRerender => {
            let request = request!(TriggerStudioStoreRerenderRequest { store_id: "store-1" });
            refusal(studio.trigger_studio_store_rerender(request).await)
        }
        Trigger::StoreReexport => {
            let request = request!(TriggerStoreReexportRequest { store_id: "store-1" });
            refusal(exporter.trigger_store_reexport(request).await)
        }
        Trigger::AccessPointReexport => {
            let request = request!(TriggerAccessPointReexportRequest { store_id: "store-1", access_point_id: "A" });
            refusal(exporter.trigger_access_point_reexport(request).await)
        }
        Trigger::LabelReexport => {
            let request = request!(TriggerLabelReexportRequest { store_id: "store-1", label_id: "alpha-0000" });
            refusal(exporter.trigger_label_reexport(request).await)
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn operator_tokens_and_no_tokens_are_unauthenticated_in_one_process() {
    let topology = Topology::in_process().await;
    strangers_are_unauthenticated(&topology).await;
}

/// No token, an operator's token, a token of a key nobody registered: nobody, at every door.
pub(crate) async fn strangers_are_unauthenticated(topology: &Topology) {
    let operator = topology.operator(&[TENANT]);
    let token = operator.token().expect("a token");
    let audited = topology.tables().await.audit_entries().await;
    for shown in [None, Some(format!("Bearer {token}")), Some("Bearer x.y.z".to_owned()), Some(token.to_owned())] {
        let authorize = |request: &mut Request<()>| {
            if let Some(text) = &shown {
                let value = MetadataValue::try_from(text.as_str()).expect("a header value");
                request.metadata_mut().insert("authorization", value);
            }
        };
        let mut head = Request::new(());
        authorize(&mut head);
        let wrap = |head: &Request<()>| head.metadata().clone();
        let mut request = Request::new(fair("stranger"));
        *request.metadata_mut() = wrap(&head);
        let refused = refusal(cqs_client(topology.doors.platform.clone()).self_enqueue(request).await);
        assert_eq!(refused, "UNAUTHENTICATED", "CQS with {shown:?}");
        let mut request = Request::new(GetManyRequest::default());
        *request.metadata_mut() = wrap(&head);
        let refused = refusal(dtoflow_client(topology.doors.platform.clone()).get_many(request).await);
        assert_eq!(refused, "UNAUTHENTICATED", "DTOflow with {shown:?}");
        let mut request = Request::new(TriggerModelRefreshRequest::default());
        *request.metadata_mut() = wrap(&head);
        let triggers = topology.doors.triggers.clone();
        let refused = refusal(proto::ecc_triggers_client(triggers).trigger_model_refresh(request).await);
        assert_eq!(refused, "UNAUTHENTICATED", "the trigger with {shown:?}");
    }
    assert_eq!(topology.tables().await.audit_entries().await, audited, "nobody is not written down");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_but_self_enqueue_and_a_leased_split_makes_a_parent() {
    let topology = Topology::in_process().await;
    let shelf = Shelf::write(&topology.doors, TENANT, &[("alpha", 2)]).await;
    topology.quiet().await;
    // Every kind of record written and touched, the model included.
    shelf
        .import(
            &topology.doors,
            vec![shelf.model("alpha", tests::data::layout("alpha", 2)), shelf.item("alpha-0000", "3.49")],
        )
        .await;
    for (dto_type, id) in
        [(DtoType::EccModel, "alpha"), (DtoType::StoreItemValues, "alpha-0001"), (DtoType::EccLink, "alpha-0001")]
    {
        let request = TouchDtoRequest {
            dto_type: dto_type.to_string(),
            dto_id: vec![shelf.urn(dto_type, id)],
            reason: "look".to_owned(),
            tracking_id: "touch-1".to_owned(),
            ..TouchDtoRequest::default()
        };
        let touched = topology.doors.dtoflow(ServiceName::OperatorGateway).touch_dto(request).await.expect("touched");
        assert_eq!(touched.into_inner().touched, 1);
    }
    topology.quiet().await;
    // A split without a live lease.
    for generation in [1, 1_000_000_000] {
        let request = ReEnqueueRequest {
            queue_name: ECC.to_string(),
            lease_generation: generation,
            notification_id: 1,
            items: vec![parent("t/acme/s/store-1/eccmodels/alpha", "by_eccmodel")],
            ..ReEnqueueRequest::default()
        };
        let refused = refusal(topology.doors.cqs(ECC).re_enqueue(request).await);
        assert!(refused.starts_with("STALE_LEASE"), "{refused}");
    }
    throughout("no parent came to be", Duration::from_millis(300), || async {
        match topology.tables().await.parents_ever().await {
            0 => Ok(()),
            parents => Err(format!("{parents} parents")),
        }
    })
    .await;
}
