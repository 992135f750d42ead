//! Re-exports: pictures that are right are sent again, nothing is rendered, nothing is skipped.

use domain::{DtoType, ServiceName};
use proto::{
    cqs::v1::{Operation, OperationState},
    hardware_exporter::v1::{
        TriggerAccessPointReexportRequest, TriggerLabelReexportRequest, TriggerStoreReexportRequest,
    },
    records::v1::{AccessPoint, DeliveryState, StoreEsl},
};

use super::world::{World, counts};

const EXPORTER: ServiceName = ServiceName::HardwareExporter;
const GATEWAY: ServiceName = ServiceName::OperatorGateway;

/// A request of the exporter's triggers.
macro_rules! request {
    ($message:ident, $tracking_id:expr, $dry_run:expr $(, $field:ident)*) => {
        $message {
            tenant_id: "T".into(),
            store_id: "S".into(),
            $($field: $field.into(),)*
            reason: "INC-1: power cut".into(),
            tracking_id: $tracking_id.into(),
            dry_run: $dry_run,
            operator_subject: "ops@example".into(),
            ..$message::default()
        }
    };
}

/// Three labels on access point A, one on B; all are shown.
async fn shown(world: &World) {
    world.store().await;
    let record = AccessPoint { driver: "folder".into(), address: String::new() };
    world.put(DtoType::AccessPoint, "t/T/s/S/accesspoints/B", record).await;
    world.model("M", "m1").await;
    world.item("I", "item").await;
    for label in ["E1", "E2", "E3"] {
        world.esl(label).await;
        world.link(label, "I", "M").await;
    }
    let esl = StoreEsl { esltype_id: "X".into(), accesspoint_id: "B".into(), hardware_address: "hw-F".into() };
    world.put(DtoType::StoreEsl, "t/T/s/S/esls/F", esl).await;
    world.link("F", "I", "M").await;
    for label in ["E1", "E2", "E3", "F"] {
        world.shown(label, "item m1").await;
    }
    world.idle().await;
}

/// Empties the folder, as a reset empties hardware.
fn wipe(world: &World, labels: &[&str]) {
    for label in labels {
        std::fs::remove_file(world.file(label)).unwrap();
    }
}

/// The operation sent exactly that many labels, and only the exporter had anything to do.
fn assert_sent(operation: &Operation, labels: i64) {
    assert_eq!(operation.state(), OperationState::Succeeded, "{operation:?}");
    assert_eq!(counts(operation, EXPORTER), (labels, labels, 0, 0));
    for service in [ServiceName::EccImageRender, ServiceName::EslImageMerger] {
        assert_eq!(counts(operation, service), (0, 0, 0, 0), "{service}");
    }
}

#[tokio::test]
async fn a_store_an_access_point_and_a_label_are_sent_again_and_nothing_is_rendered() {
    let world = World::new();
    let worker = world.work().await;
    shown(&world).await;
    let pictures = world.version(DtoType::EccEslImage, "E1").await;
    let mut triggers = world.exporter_triggers(GATEWAY);

    wipe(&world, &["E1", "E2", "E3", "F"]);
    let dry = request!(TriggerStoreReexportRequest, "INC-1", true);
    let counted = triggers.trigger_store_reexport(dry).await.unwrap().into_inner();
    assert_eq!((counted.labels, counted.items_enqueued), (4, 0));
    let live = request!(TriggerStoreReexportRequest, "INC-1", false);
    assert_eq!(triggers.trigger_store_reexport(live.clone()).await.unwrap().into_inner().items_enqueued, 1);
    assert_sent(&world.finished("INC-1").await, 4);
    assert!(triggers.trigger_store_reexport(live).await.unwrap().into_inner().replayed);
    for label in ["E1", "E2", "E3", "F"] {
        assert!(world.shows(label, "item m1"), "{label}");
        let status = world.status(label).await.unwrap();
        assert!(status.transitions.iter().any(|step| step.state() == DeliveryState::Lost), "{status:?}");
    }

    wipe(&world, &["E1", "F"]);
    let access_point_id = "B";
    let request = request!(TriggerAccessPointReexportRequest, "INC-2", false, access_point_id);
    assert_eq!(triggers.trigger_access_point_reexport(request).await.unwrap().into_inner().labels, 1);
    assert_sent(&world.finished("INC-2").await, 1);
    assert!(world.shows("F", "item m1") && !world.file("E1").exists());

    let label_id = "E1";
    let request = request!(TriggerLabelReexportRequest, "INC-3", false, label_id);
    assert_eq!(triggers.trigger_label_reexport(request).await.unwrap().into_inner().labels, 1);
    assert_sent(&world.finished("INC-3").await, 1);
    assert!(world.shows("E1", "item m1"));
    assert_eq!(world.version(DtoType::EccEslImage, "E1").await, pictures, "nothing was rendered");
    worker.stop().await;
}

#[tokio::test]
async fn a_reexport_names_what_does_not_exist_and_only_the_gateway_may_call_it() {
    let world = World::new();
    let worker = world.work().await;
    shown(&world).await;
    let mut triggers = world.exporter_triggers(GATEWAY);
    let (access_point_id, label_id) = ("nothing", "nothing");
    let field = |status: tonic::Status| {
        let refusal = proto::refusal_from_status(&status);
        assert_eq!(refusal.code, domain::ErrorCode::NotFound, "{refusal}");
        refusal.field
    };
    let request = request!(TriggerAccessPointReexportRequest, "X-1", true, access_point_id);
    assert_eq!(field(triggers.trigger_access_point_reexport(request).await.unwrap_err()), "access_point_id");
    let request = request!(TriggerLabelReexportRequest, "X-2", true, label_id);
    assert_eq!(field(triggers.trigger_label_reexport(request).await.unwrap_err()), "label_id");
    let empty = TriggerStoreReexportRequest {
        store_id: "nowhere".into(),
        ..request!(TriggerStoreReexportRequest, "X-3", true)
    };
    assert_eq!(field(triggers.trigger_store_reexport(empty).await.unwrap_err()), "store_id");
    let request = request!(TriggerStoreReexportRequest, "X-4", false);
    let refused = world.exporter_triggers(EXPORTER).trigger_store_reexport(request).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::PermissionDenied);
    worker.stop().await;
}
