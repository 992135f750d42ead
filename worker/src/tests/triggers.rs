//! The trigger over its gRPC surface.

use domain::{DtoType, ServiceName};
use proto::{cqs::v1::AuditOutcome, ecc_image_render::v1::TriggerModelRefreshRequest, refusal_from_status};
use tonic::Code;

use super::world::World;

async fn two_links(world: &World) {
    world.store().await;
    world.model("M", "m1").await;
    for label in ["E", "F"] {
        world.link(label, "I", "M").await;
    }
}

#[tokio::test]
async fn a_dry_run_counts_and_reserves_nothing_and_the_call_injects_one_parent() {
    let world = World::new();
    let worker = world.work_with(vec![world.service(ServiceName::EccImageRender)]).await;
    two_links(&world).await;
    let mut triggers = world.triggers(ServiceName::OperatorGateway);
    let dry = TriggerModelRefreshRequest { dry_run: true, ..World::refresh("M", "CHG-1") };
    let counted = triggers.trigger_model_refresh(dry).await.unwrap().into_inner();
    assert_eq!((counted.items_enqueued, counted.labels, counted.replayed), (0, 2, false));
    assert_eq!(counted.sample_label_ids, ["E", "F"]);
    assert!(world.operation("CHG-1").await.is_none());
    assert!(world.audit("CHG-1").await.is_empty());

    let accepted = triggers.trigger_model_refresh(World::refresh("M", "CHG-1")).await.unwrap().into_inner();
    assert_eq!((accepted.items_enqueued, accepted.labels, accepted.replayed), (1, 2, false));
    let again = triggers.trigger_model_refresh(World::refresh("M", "CHG-1")).await.unwrap().into_inner();
    assert_eq!((again.items_enqueued, again.replayed, again.accepted_at), (1, true, accepted.accepted_at));
    let operation = world.finished("CHG-1").await;
    assert_eq!((operation.scope.as_str(), operation.trigger.as_str()), ("t/T/s/S/eccmodels/M", "model-refresh"));
    assert_eq!((operation.reason.as_str(), operation.operator_subject.as_str()), ("CHG-1: test", "ops@example"));
    worker.stop().await;
}

#[tokio::test]
async fn what_the_call_refuses_the_dry_run_refuses_and_each_has_one_audit_row() {
    let world = World::new();
    let worker = world.work_with(vec![world.service(ServiceName::EccImageRender)]).await;
    two_links(&world).await;
    world.model("N", "n1").await;
    let mut triggers = world.triggers(ServiceName::OperatorGateway);
    triggers.trigger_model_refresh(World::refresh("M", "taken")).await.unwrap();
    let taken = world.audit("taken").await.len();

    let refused = [
        (World::refresh("absent", "r-1"), Code::NotFound, "model_id"),
        (World::refresh("a/b", "r-2"), Code::InvalidArgument, "model_id"),
        (
            TriggerModelRefreshRequest { reason: String::new(), ..World::refresh("M", "r-3") },
            Code::InvalidArgument,
            "reason",
        ),
        (World::refresh("N", "taken"), Code::AlreadyExists, "model_id"),
    ];
    for (request, code, field) in refused {
        for dry_run in [true, false] {
            let request = TriggerModelRefreshRequest { dry_run, ..request.clone() };
            let status = triggers.trigger_model_refresh(request).await.unwrap_err();
            assert_eq!((status.code(), refusal_from_status(&status).field.as_str()), (code, field));
        }
    }
    for id in ["r-1", "r-2", "r-3"] {
        let rows = world.audit(id).await;
        assert_eq!(rows.len(), 2, "{rows:?}");
        assert!(rows.iter().all(|row| row.outcome() == AuditOutcome::Refused && row.action == "trigger model-refresh"));
        assert!(world.operation(id).await.is_none());
    }
    assert_eq!(world.audit("taken").await.len(), taken + 2);
    worker.stop().await;
}

#[tokio::test]
async fn only_the_gateway_may_call() {
    let world = World::new();
    let worker = world.work_with(vec![world.service(ServiceName::EccImageRender)]).await;
    two_links(&world).await;
    for service in [ServiceName::EccImageRender, ServiceName::EslImageMerger, ServiceName::RecordImport] {
        let status = world.triggers(service).trigger_model_refresh(World::refresh("M", "CHG-1")).await.unwrap_err();
        assert_eq!(status.code(), Code::PermissionDenied, "{service}");
    }
    assert!(world.operation("CHG-1").await.is_none());
    assert_eq!(world.audit("CHG-1").await.len(), 3);
    assert!(!world.read(DtoType::EccEslImage, "t/T/s/S/ecceslimages/E").await.exists);
    worker.stop().await;
}
