//! An injected parent and a re-enqueued one are the same on the wire: a service cannot tell, so it cannot treat a
//! forced one apart.

use domain::ServiceName;
use prost::Message as _;
use proto::cqs::v1::{
    CompleteRequest, CreateOrConfigureQueueRequest, DequeueRequest, DequeueResponse, DtoChangeNotification,
    ItemOutcome, OutcomeKind, ParentShape, ReEnqueueRequest, SelfEnqueueRequest, SplitItem, Subscription,
    dto_change_notification, split_item,
};
use tests::{grpc::Doors, topology::PlatformAlone};

/// Whose parents these are; no worker runs here, the test is the service.
const SERVICE: ServiceName = ServiceName::StudioRenderer;

fn parent(urn: &str, alias: &str) -> SplitItem {
    SplitItem {
        dto_type: "studiolink.v1".to_owned(),
        urn: Some(split_item::Urn::ParentId(urn.to_owned())),
        alias_name: alias.to_owned(),
    }
}

async fn dequeue(doors: &Doors) -> DequeueResponse {
    let request = DequeueRequest {
        queue_name: SERVICE.to_string(),
        max_items: 10,
        wait_ms: 5_000,
        lease_ms: 60_000,
        worker_id: "test".to_owned(),
        lease_generation: 0,
    };
    doors.cqs(SERVICE).dequeue(request).await.expect("Dequeue").into_inner()
}

/// The one notification of an answer, with its lease's generation.
fn single(answer: DequeueResponse) -> (i64, DtoChangeNotification) {
    let generation = answer.lease.expect("a lease").generation;
    assert_eq!(answer.notifications.len(), 1, "a parent is claimed alone: {:?}", answer.notifications);
    (generation, answer.notifications.into_iter().next().expect("one"))
}

#[tokio::test(flavor = "multi_thread")]
async fn injected_and_re_enqueued_parents_are_equal_apart_from_id() {
    let platform = PlatformAlone::open().await;
    let mut cqs = platform.doors.cqs(SERVICE);
    cqs.create_or_configure_queue(CreateOrConfigureQueueRequest {
        queue_name: SERVICE.to_string(),
        subscriptions: vec![Subscription { dto_type: "studiolink.v1".to_owned() }],
        shapes: ["by_design", ""]
            .map(|alias| ParentShape { dto_type: "studiolink.v1".to_owned(), alias_name: alias.to_owned() })
            .to_vec(),
        exclusive_by_store: false,
    })
    .await
    .expect("the queue");
    let store_parent = parent("t/acme/s/store-1/designs/d-1", "by_design");
    cqs.self_enqueue(SelfEnqueueRequest {
        queue_name: SERVICE.to_string(),
        items: vec![store_parent.clone(), parent("t/acme/designs/d-1", "")],
        reason: "CHG-7".to_owned(),
        tracking_id: "wire-1".to_owned(),
        ..SelfEnqueueRequest::default()
    })
    .await
    .expect("SelfEnqueue");

    // First the injected store parent; it is done before the other makes its like, or the two would be one row.
    let (generation, injected) = single(dequeue(&platform.doors).await);
    assert_eq!(injected.urn, Some(dto_change_notification::Urn::ParentId("t/acme/s/store-1/designs/d-1".to_owned())));
    cqs.complete(CompleteRequest {
        queue_name: SERVICE.to_string(),
        lease_generation: generation,
        outcomes: vec![ItemOutcome {
            id: injected.id,
            outcome: OutcomeKind::Unchanged.into(),
            ..ItemOutcome::default()
        }],
    })
    .await
    .expect("Complete");

    // Then the tenant's parent, split into the very same store parent.
    let (generation, tenant_level) = single(dequeue(&platform.doors).await);
    assert_eq!(tenant_level.urn, Some(dto_change_notification::Urn::ParentId("t/acme/designs/d-1".to_owned())));
    cqs.re_enqueue(ReEnqueueRequest {
        queue_name: SERVICE.to_string(),
        lease_generation: generation,
        notification_id: tenant_level.id,
        items: vec![store_parent],
        ..ReEnqueueRequest::default()
    })
    .await
    .expect("ReEnqueue");
    let (_, re_enqueued) = single(dequeue(&platform.doors).await);

    assert_ne!(injected.id, re_enqueued.id);
    let apart_from_id =
        |notification: &DtoChangeNotification| DtoChangeNotification { id: 0, ..notification.clone() }.encode_to_vec();
    assert_eq!(apart_from_id(&injected), apart_from_id(&re_enqueued), "{injected:#?}\n{re_enqueued:#?}");
    assert_eq!(injected.tracking_id, "wire-1");
    platform.close().await;
}
