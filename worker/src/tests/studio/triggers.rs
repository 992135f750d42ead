//! Triggers of the Studio renderer: dry runs, parents, refusals.

use std::collections::BTreeMap;

use domain::{AliasName, DtoType, ServiceName, SplitItem, Target};
use proto::{
    refusal_from_status,
    studio_renderer::v1::{
        StoreLabels, TriggerDesignRefreshRequest, TriggerDesignRefreshResponse, TriggerStudioStoreRerenderRequest,
    },
};
use tonic::Code;

use super::{STORES, STUDIO, three_stores};
use crate::tests::world::World;

impl World {
    async fn dry(&self, request: TriggerDesignRefreshRequest) -> TriggerDesignRefreshResponse {
        let request = TriggerDesignRefreshRequest { dry_run: true, ..request };
        let answer = self.studio_triggers(ServiceName::OperatorGateway).trigger_design_refresh(request).await;
        answer.unwrap().into_inner()
    }
}

#[tokio::test]
async fn a_dry_run_counts_by_store_exactly_what_the_run_does() {
    let world = World::new();
    let (worker, noted) = world.work_noting().await;
    three_stores(&world).await;
    noted.taken();
    let counted = world.dry(World::design_refresh("D", "CHG-1")).await;
    let expected = STORES.map(|(store, labels)| StoreLabels { store_id: store.into(), labels });
    assert_eq!(counted.stores, expected);
    assert_eq!((counted.labels, counted.items_enqueued, counted.next_page_token.as_str()), (9, 0, ""));
    assert_eq!(counted.sample_label_ids, ["D0", "D1", "D2"], "of the first store");
    assert!(noted.taken().is_empty() && world.operation("CHG-1").await.is_none());

    let mut paged = Vec::new();
    let mut page = TriggerDesignRefreshRequest { page_size: 2, ..World::design_refresh("D", "CHG-1") };
    loop {
        let answer = world.dry(page.clone()).await;
        assert_eq!(answer.labels, 9, "the total is not the page's");
        paged.extend(answer.stores);
        if answer.next_page_token.is_empty() {
            break;
        }
        page.page_token = answer.next_page_token;
    }
    assert_eq!(paged, expected);

    let operation = world.design_refreshed("D", "CHG-1").await;
    assert_eq!(operation.items_enqueued, 1, "one parent, whatever the size");
    let queue = operation.queues.iter().find(|queue| queue.queue_name == STUDIO.as_str()).unwrap();
    assert_eq!((queue.parents_enqueued, queue.parents_done), (4, 4), "the design's and one for each store");
    let mut ran = BTreeMap::<String, i64>::new();
    for note in noted.taken().iter().filter(|note| !note.target.is_parent()) {
        *ran.entry(note.target.urn().store().unwrap().to_string()).or_default() += 1;
    }
    let counted: BTreeMap<String, i64> =
        counted.stores.into_iter().map(|store| (store.store_id, store.labels)).collect();
    assert_eq!(ran, counted);
    worker.stop().await;
}

#[tokio::test]
async fn a_designs_store_parents_carry_its_alias() {
    let world = World::new();
    let (worker, noted) = world.work_noting().await;
    three_stores(&world).await;
    noted.taken();
    world.design_refreshed("D", "CHG-1").await;
    let parents: Vec<SplitItem> = noted.taken().into_iter().filter(|note| note.target.is_parent()).collect();
    let parent = |urn: &str, alias| SplitItem {
        dto_type: DtoType::StudioLink,
        target: Target::Parent(urn.parse().unwrap()),
        alias,
    };
    let mut expected = vec![parent("t/T/designs/D", None)];
    expected.extend(STORES.map(|(store, _)| parent(&format!("t/T/s/{store}/designs/D"), Some(AliasName::ByDesign))));
    expected.sort();
    assert_eq!(parents, expected);
    worker.stop().await;
}

#[tokio::test]
async fn the_new_triggers_refuse_as_the_first_does() {
    let world = World::new();
    let worker = world.work().await;
    three_stores(&world).await;
    let mut studio = world.studio_triggers(ServiceName::OperatorGateway);
    studio.trigger_design_refresh(World::design_refresh("E", "taken")).await.unwrap();
    world.finished("taken").await;
    let replayed = studio.trigger_design_refresh(World::design_refresh("E", "taken")).await.unwrap().into_inner();
    assert!(replayed.replayed);
    for (request, code, field) in [
        (World::design_refresh("absent", "r-1"), Code::NotFound, "design_id"),
        (World::design_refresh("a/b", "r-2"), Code::InvalidArgument, "design_id"),
        (World::design_refresh("D", "taken"), Code::AlreadyExists, "design_id"),
        (
            TriggerDesignRefreshRequest {
                dry_run: true,
                page_token: "a/b".into(),
                ..World::design_refresh("D", "r-3")
            },
            Code::InvalidArgument,
            "page_token",
        ),
    ] {
        let status = studio.trigger_design_refresh(request).await.unwrap_err();
        assert_eq!((status.code(), refusal_from_status(&status).field.as_str()), (code, field));
    }
    let store = |store_id: &str, tracking_id: &str| TriggerStudioStoreRerenderRequest {
        tenant_id: "T".into(),
        store_id: store_id.into(),
        reason: "r".into(),
        tracking_id: tracking_id.into(),
        operator_subject: "ops@example".into(),
        ..TriggerStudioStoreRerenderRequest::default()
    };
    let unknown = studio.trigger_studio_store_rerender(store("nowhere", "r-4")).await.unwrap_err();
    assert_eq!((unknown.code(), refusal_from_status(&unknown).field.as_str()), (Code::NotFound, "store_id"));
    let taken = studio.trigger_studio_store_rerender(store("S", "taken")).await.unwrap_err();
    assert_eq!((taken.code(), refusal_from_status(&taken).field.as_str()), (Code::AlreadyExists, "tracking_id"));
    for service in [STUDIO, ServiceName::EccImageRender, ServiceName::RecordImport] {
        let status =
            world.studio_triggers(service).trigger_design_refresh(World::design_refresh("D", "r-5")).await.unwrap_err();
        assert_eq!(status.code(), Code::PermissionDenied, "{service}");
    }
    for id in ["r-1", "r-2", "r-3", "r-4", "r-5"] {
        assert!(world.operation(id).await.is_none(), "{id}");
        assert!(!world.audit(id).await.is_empty(), "{id}");
    }
    worker.stop().await;
}
