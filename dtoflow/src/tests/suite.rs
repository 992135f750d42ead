//! The cases. Each holds of every face of the store.

use domain::{AliasName, DtoType, ErrorCode, Timestamp};

pub(super) use super::history::{
    a_history_is_paged_and_cut_to_its_newest_entries, another_picture_is_told_with_who_and_why,
    ends_of_deliveries_are_told, old_entries_are_forgotten_in_bounded_rounds,
};
use super::world::{MERGER, World, delete, design, image, link, link_urn, model, put, refused, studio_link};
use crate::model::{AliasCursor, AliasLook, ReadBatch, ReadKey, StoreListAsk, WriteResult, WriteStatus};

const LINK: &str = "t/T/s/S/ecclinks/E";
const BY_MODEL: (DtoType, AliasName) = (DtoType::EccLink, AliasName::ByEccModel);

fn written(version: i64) -> WriteResult {
    WriteResult { status: WriteStatus::Written, version }
}

fn unchanged(version: i64) -> WriteResult {
    WriteResult { status: WriteStatus::Unchanged, version }
}

fn input_changed(version: i64) -> WriteResult {
    WriteResult { status: WriteStatus::InputChanged, version }
}

pub(super) async fn versions_only_grow_also_across_deletes(world: &World) {
    let one = |change| async { world.import(vec![change]).await.unwrap()[0] };
    assert_eq!(one(put(LINK, link("I", "M"))).await, written(1));
    assert_eq!(one(put(LINK, link("I", "M"))).await, unchanged(1));
    assert_eq!(one(put(LINK, link("I", "N"))).await, written(2));
    assert_eq!(one(delete(LINK)).await, written(3));
    assert_eq!(world.get(LINK).await, None);
    assert_eq!(one(delete(LINK)).await, unchanged(3));
    assert_eq!(one(delete("t/T/s/S/ecclinks/never")).await, unchanged(0));
    assert_eq!(one(put(LINK, link("I", "N"))).await, written(4), "the old bytes are a new version after a delete");
    assert_eq!(world.get(LINK).await.unwrap().version, 4);
}

pub(super) async fn a_payload_comes_only_where_it_is_newer(world: &World) {
    world.import(vec![put(LINK, link("I", "M")).tracked("load-1")]).await.unwrap();
    let first = world.get(LINK).await.unwrap();
    assert_eq!(first.payload, Some(link("I", "M")));
    assert_eq!(first.updated_at, world.now());
    assert_eq!(first.written_by.to_string(), "svc:record-import");
    assert_eq!(first.tracking_id.as_ref().map(ToString::to_string).as_deref(), Some("load-1"));
    assert_eq!(world.get_newer(LINK, 1).await.unwrap().payload, None);
    world.clock.advance_ms(5);
    world.import(vec![put(LINK, link("I", "N"))]).await.unwrap();
    let second = world.get_newer(LINK, 1).await.unwrap();
    assert_eq!((second.version, second.payload, second.tracking_id), (2, Some(link("I", "N")), None));
    assert_eq!(second.updated_at, first.updated_at.plus_ms(5));
}

pub(super) async fn a_write_announces_and_an_unchanged_one_does_not(world: &World) {
    world.renderers_queue().await;
    world
        .import(vec![put(LINK, link("I", "M")).tracked("load-1"), put("t/T/s/S/eccmodels/M", model("{}"))])
        .await
        .unwrap();
    let (lease, notifications) = world.lease().await.expect("the link is announced");
    assert_eq!(notifications.len(), 1, "models are not subscribed to");
    assert_eq!(notifications[0].item.target.urn().to_string(), LINK);
    assert_eq!(notifications[0].tracking_id.as_ref().map(ToString::to_string).as_deref(), Some("load-1"));
    assert_eq!(notifications[0].sla, world.now());
    world.complete(&lease, &notifications).await;

    assert_eq!(world.import(vec![put(LINK, link("I", "M"))]).await.unwrap(), [unchanged(1)]);
    assert!(world.lease().await.is_none(), "the same bytes are no news");
    world.import(vec![delete(LINK)]).await.unwrap();
    assert_eq!(world.drain().await, [LINK], "a delete is");
    world.import(vec![delete(LINK)]).await.unwrap();
    assert!(world.lease().await.is_none());
}

pub(super) async fn an_unchanged_write_announces_what_was_never_delivered(world: &World) {
    world.renderers_queue().await;
    world.import(vec![put(LINK, link("I", "M")), put("t/T/s/S/ecclinks/F", link("I", "M"))]).await.unwrap();
    world.drain().await;
    world.operation("op-1", &["E"]).await;
    world.import(vec![put(LINK, link("I", "M")), put("t/T/s/S/ecclinks/F", link("I", "M"))]).await.unwrap();
    let mut drained = world.drain().await;
    drained.sort();
    assert_eq!(drained, [LINK, LINK], "once in the operation's lane, once in the ordinary one; F was delivered");
}

pub(super) async fn stale_inputs_write_nothing(world: &World) {
    const MODEL: &str = "t/T/s/S/eccmodels/M";
    world.renderers_queue().await;
    world.import(vec![put(MODEL, model("{}"))]).await.unwrap();
    let from = |version, absent| put(LINK, link("I", "M")).of_input(MODEL, version).of_input(absent, 0);
    let absent = "t/T/s/S/items/I";
    assert_eq!(world.import(vec![from(0, absent)]).await.unwrap(), [input_changed(0)]);
    assert_eq!(world.import(vec![from(2, absent)]).await.unwrap(), [input_changed(0)]);
    assert_eq!(world.import(vec![from(1, MODEL)]).await.unwrap(), [input_changed(0)], "not absent");
    assert_eq!(world.get(LINK).await, None);
    assert!(world.lease().await.is_none());

    let other = put("t/T/s/S/ecclinks/F", link("I", "M"));
    let results = world.import(vec![from(1, absent), of_stale(other, MODEL)]).await.unwrap();
    assert_eq!(results, [written(1), input_changed(0)], "each by itself");
    assert_eq!(world.drain().await, [LINK]);

    world.import(vec![delete(MODEL)]).await.unwrap();
    assert_eq!(world.import(vec![delete(LINK).of_input(MODEL, 1)]).await.unwrap(), [input_changed(1)]);
    assert_eq!(world.import(vec![delete(LINK).of_input(MODEL, 0)]).await.unwrap(), [written(2)], "deleted is absent");
}

fn of_stale(change: crate::model::Change, urn: &str) -> crate::model::Change {
    change.of_input(urn, 7)
}

pub(super) async fn aliases_follow_their_records(world: &World) {
    const M: &str = "t/T/s/S/eccmodels/M";
    const N: &str = "t/T/s/S/eccmodels/N";
    let urn = |label: &str| format!("t/T/s/S/ecclinks/{label}");
    world
        .import(vec![
            put(&urn("A"), link("I", "M")),
            put(&urn("B"), link("I", "M")),
            put(&urn("C"), link("J", "N")),
            put("t/T/s/R/ecclinks/A", link("I", "M")),
        ])
        .await
        .unwrap();
    assert_eq!(world.counts(BY_MODEL.0, BY_MODEL.1, &[M, N, "t/T/s/R/eccmodels/M"]).await, [2, 1, 1]);
    world.import(vec![put(&urn("B"), link("I", "N"))]).await.unwrap();
    world.import(vec![delete(&urn("C"))]).await.unwrap();
    assert_eq!(world.counts(BY_MODEL.0, BY_MODEL.1, &[M, N, "t/T/s/S/eccmodels/none"]).await, [1, 1, 0]);
    let listed = world.list(BY_MODEL, &[M, N], 10).await;
    assert_eq!(listed, [(0, "A".to_owned()), (1, "B".to_owned())]);
    let by_item = (DtoType::EccLink, AliasName::ByItem);
    assert_eq!(world.counts(by_item.0, by_item.1, &["t/T/s/S/items/I", "t/T/s/S/items/J"]).await, [2, 0]);
    assert_eq!(world.counts(DtoType::EccLink, AliasName::ByStoreEsl, &["t/T/s/S/esls/B"]).await, [1]);
    assert_eq!(world.counts(DtoType::EccLink, AliasName::ByStore, &["t/T/s/S", "t/T/s/R", "t/T"]).await, [2, 1, 3]);
    assert_eq!(world.counts(DtoType::StudioLink, AliasName::ByStore, &["t/T"]).await, [0]);
}

pub(super) async fn a_listing_runs_over_parents_and_stays_stable(world: &World) {
    let urn = |label: String| format!("t/T/s/S/ecclinks/{label}");
    let mut changes = Vec::new();
    for (model, labels) in [("M0", 3), ("M1", 0), ("M2", 7), ("M3", 1), ("M4", 2)] {
        for label in 0..labels {
            changes.push(put(&urn(format!("{model}-{label}")), link("I", model)));
        }
    }
    world.import(changes).await.unwrap();
    let parents: Vec<String> = [4, 0, 1, 2, 3].iter().map(|n| format!("t/T/s/S/eccmodels/M{n}")).collect();
    let parents: Vec<&str> = parents.iter().map(String::as_str).collect();
    let whole = world.list(BY_MODEL, &parents, 100).await;
    let expected: Vec<(usize, String)> = [(0, 4, 2), (1, 0, 3), (3, 2, 7), (4, 3, 1)]
        .iter()
        .flat_map(|(parent, model, labels)| (0..*labels).map(move |label| (*parent, format!("M{model}-{label}"))))
        .collect();
    assert_eq!(whole, expected);
    for limit in 1..=14 {
        assert_eq!(world.list(BY_MODEL, &parents, limit).await, whole, "in pages of {limit}");
    }

    let first = world.page(BY_MODEL, &parents, (None, 7)).await;
    let last = first.entries.last().unwrap();
    assert_eq!((last.parent, last.id.as_str(), first.more), (3, "M2-1", true));
    let gone = ["M4-0", "M2-1", "M2-2"].map(|label| delete(&urn(label.to_owned())));
    world.import(gone.into()).await.unwrap();
    let come = ["M2-0a", "M2-3a"].map(|label| put(&urn(label.to_owned()), link("I", "M2")));
    world.import(come.into()).await.unwrap();
    let after = AliasCursor { parent: last.parent, id: last.id.clone() };
    let second = world.page(BY_MODEL, &parents, (Some(after), 100)).await;
    let ids: Vec<&str> = second.entries.iter().map(|found| found.id.as_str()).collect();
    assert_eq!(ids, ["M2-3", "M2-3a", "M2-4", "M2-5", "M2-6", "M3-0"], "neither twice nor left out");
    assert!(!second.more);
}

pub(super) async fn stores_of_a_tenants_parent_are_listed_with_counts(world: &World) {
    let mut changes = Vec::new();
    for (store, labels) in [("S1", 2), ("S2", 1), ("S3", 3)] {
        for label in 0..labels {
            changes.push(put(&format!("t/T/s/{store}/studiolinks/E{label}"), studio_link("I", "D")));
        }
    }
    changes.push(put("t/T/s/S4/studiolinks/E", studio_link("I", "other")));
    world.import(changes).await.unwrap();
    let look = |alias| AliasLook { tenant: "T".parse().unwrap(), dto_type: DtoType::StudioLink, alias };
    let stores = |alias, base: &str, after: Option<&str>, limit| {
        let after = after.map(|store| store.parse().unwrap());
        world.store.alias_stores(StoreListAsk { look: look(alias), base: base.to_owned(), after, limit })
    };
    let plain = |page: crate::model::Page<crate::model::StoreCount>| -> (Vec<(String, i64)>, bool) {
        (page.entries.into_iter().map(|entry| (entry.store.to_string(), entry.count)).collect(), page.more)
    };
    let first = plain(stores(AliasName::ByDesign, "designs/D", None, 2).await.unwrap());
    assert_eq!(first, (vec![("S1".to_owned(), 2), ("S2".to_owned(), 1)], true));
    world.import(vec![delete("t/T/s/S2/studiolinks/E0")]).await.unwrap();
    let second = plain(stores(AliasName::ByDesign, "designs/D", Some("S2"), 2).await.unwrap());
    assert_eq!(second, (vec![("S3".to_owned(), 3)], false));
    let whole = plain(stores(AliasName::ByDesign, "designs/D", None, 9).await.unwrap());
    assert_eq!(whole.0, [("S1".to_owned(), 2), ("S3".to_owned(), 3)], "a store without links is not listed");
    let every = plain(stores(AliasName::ByStore, "", None, 9).await.unwrap());
    assert_eq!(every.0.len(), 3);
    let counts = world.counts(DtoType::StudioLink, AliasName::ByDesign, &["t/T/designs/D", "t/T/s/S3/designs/D"]);
    assert_eq!(counts.await, [5, 3]);
}

pub(super) async fn tenant_scoped_records_are_found_under_their_tenant(world: &World) {
    world.import(vec![put("t/T/designs/D1", design("<svg/>")), put("t/T/designs/D2", design("<svg/>"))]).await.unwrap();
    world.import(vec![put("t/U/designs/D3", design("<svg/>"))]).await.unwrap();
    let listed = world.list((DtoType::Design, AliasName::ByTenant), &["t/T"], 1).await;
    assert_eq!(listed, [(0, "D1".to_owned()), (0, "D2".to_owned())]);
    assert_eq!(world.counts(DtoType::Design, AliasName::ByTenant, &["t/T"]).await, [2]);
}

pub(super) async fn a_write_under_a_lease_takes_its_lane(world: &World) {
    const IMAGE: &str = "t/T/s/S/ecceslimages/E";
    world.renderers_queue().await;
    world.mergers_queue().await;
    world.operation("op-1", &["E"]).await;
    let (lease, notifications) = world.lease().await.unwrap();
    let operations_lane = notifications[0].lane;
    assert_eq!(world.leased(&lease, vec![put(IMAGE, image(1)).tracked("op-1")]).await.unwrap(), [written(1)]);
    let stored = world.get(IMAGE).await.unwrap();
    assert_eq!(stored.written_by.to_string(), "svc:ecc-image-render-service");
    assert_eq!(stored.tracking_id.unwrap().to_string(), "op-1");
    world.complete(&lease, &notifications).await;
    let (merging, notifications) = world.lease_of(MERGER).await.expect("the picture is announced");
    assert_eq!(notifications[0].item.target.urn().to_string(), IMAGE);
    assert_eq!(notifications[0].lane, operations_lane, "the picture follows in the operation's lane");
    world.complete(&merging, &notifications).await;

    world.import(vec![put(LINK, link("I", "M")).tracked("load-1")]).await.unwrap();
    let (lease, notifications) = world.lease().await.unwrap();
    world.leased(&lease, vec![put(IMAGE, image(2)).tracked("load-1")]).await.unwrap();
    let (_, pictures) = world.lease_of(MERGER).await.unwrap();
    assert_eq!(pictures[0].lane, notifications[0].lane);
    assert_ne!(pictures[0].lane, operations_lane, "an ordinary change stays among the ordinary ones");
}

pub(super) async fn a_write_under_an_ended_lease_changes_nothing(world: &World) {
    world.renderers_queue().await;
    world.import(vec![put(LINK, link("I", "M"))]).await.unwrap();
    let (lease, notifications) = world.lease().await.unwrap();
    let change = || put("t/T/s/S/ecceslimages/E", image(1));
    let foreign = put("t/U/s/S/ecceslimages/E", image(1));
    let refusal = refused(world.leased(&lease, vec![foreign]).await);
    assert_eq!((refusal.code, refusal.field.as_str()), (ErrorCode::PermissionDenied, "lease"));
    world.complete(&lease, &notifications).await;
    assert_eq!(refused(world.leased(&lease, vec![change()]).await).code, ErrorCode::StaleLease);
    world.import(vec![put(LINK, link("I", "N"))]).await.unwrap();
    let (lease, _) = world.lease().await.unwrap();
    world.clock.advance_ms(60_001);
    assert_eq!(refused(world.leased(&lease, vec![change()]).await).code, ErrorCode::StaleLease, "it lapsed");
    assert_eq!(world.get("t/T/s/S/ecceslimages/E").await, None);
}

pub(super) async fn an_operations_tracking_id_needs_its_lease(world: &World) {
    world.renderers_queue().await;
    world.operation("op-1", &["E"]).await;
    let refusal = refused(
        world.import(vec![put(LINK, link("I", "M")), put("t/T/s/S/ecclinks/F", link("I", "M")).tracked("op-1")]).await,
    );
    assert_eq!((refusal.code, refusal.field.as_str()), (ErrorCode::PermissionDenied, "items[1].tracking_id"));
    let refusal = refused(world.touch(DtoType::EccLink, &[LINK], "op-1").await);
    assert_eq!((refusal.code, refusal.field.as_str()), (ErrorCode::PermissionDenied, "tracking_id"));
    let (lease, _) = world.lease().await.unwrap();
    for change in [put("t/T/s/S/ecceslimages/E", image(1)).tracked("own"), put("t/T/s/S/ecceslimages/E", image(1))] {
        let refusal = refused(world.leased(&lease, vec![change]).await);
        assert_eq!((refusal.code, refusal.field.as_str()), (ErrorCode::PermissionDenied, "items[0].tracking_id"));
    }
    assert_eq!(world.get(LINK).await, None);
    let other = put("t/U/s/S/ecclinks/E", link("I", "M")).tracked("op-1");
    assert_eq!(world.import(vec![other]).await.unwrap(), [written(1)], "an id is an operation's of its tenant only");
}

pub(super) async fn a_touch_announces_once_and_keeps_the_version(world: &World) {
    world.renderers_queue().await;
    world.import(vec![put(LINK, link("I", "M")).tracked("load-1")]).await.unwrap();
    world.drain().await;
    let before = world.get(LINK).await.unwrap();
    world.clock.advance_ms(1_000);
    let touched = world.touch(DtoType::EccLink, &["t/T/s/S/ecclinks/none", LINK], "touch-1").await.unwrap();
    assert_eq!(touched, [false, true]);
    let after = world.get(LINK).await.unwrap();
    let expected: Timestamp = before.updated_at.plus_ms(1_000);
    assert_eq!(after, crate::model::Stored { updated_at: expected, ..before }, "all but the time is as it was");
    let (lease, notifications) = world.lease().await.unwrap();
    assert_eq!(notifications.len(), 1);
    assert_eq!(notifications[0].item.target.urn(), &link_urn("E"));
    assert!(!notifications[0].item.target.is_parent());
    assert_eq!(notifications[0].tracking_id.as_ref().unwrap().to_string(), "touch-1");
    world.complete(&lease, &notifications).await;
    world.import(vec![delete(LINK)]).await.unwrap();
    world.drain().await;
    assert_eq!(world.touch(DtoType::EccLink, &[LINK], "touch-2").await.unwrap(), [false], "deleted is absent");
    assert!(world.lease().await.is_none());
}

pub(super) async fn nothing_of_a_refused_call_is_written(world: &World) {
    world.renderers_queue().await;
    world.operation("op-1", &["E"]).await;
    world.drain().await;
    let changes = vec![put(LINK, link("I", "M")), put("t/T/s/S/ecclinks/F", link("I", "M")).tracked("op-1")];
    refused(world.import(changes).await);
    assert_eq!(world.get(LINK).await, None);
    assert_eq!(world.counts(BY_MODEL.0, BY_MODEL.1, &["t/T/s/S/eccmodels/M"]).await, [0]);
    assert!(world.lease().await.is_none());
}

pub(super) async fn a_read_of_more_than_a_message_carries_is_refused(world: &World) {
    let urns: Vec<String> = (0..200).map(|n| format!("t/T/s/S/eccmodels/M{n}")).collect();
    let layout = "x".repeat(256 * 1024);
    for urns in urns.chunks(100) {
        world.import(urns.iter().map(|urn| put(urn, model(&layout))).collect()).await.unwrap();
    }
    let read = |urns: &[String], known_version| {
        let keys = urns.iter().map(|urn| ReadKey { urn: urn.parse().unwrap(), known_version }).collect();
        world.store.record_read(ReadBatch { tenant: "T".parse().unwrap(), keys })
    };
    let refusal = refused(read(&urns, 0).await);
    assert_eq!((refusal.code, refusal.field.as_str()), (ErrorCode::PayloadTooLarge, "keys"));
    assert_eq!(read(&urns[..150], 0).await.unwrap().iter().flatten().count(), 150);
    assert_eq!(read(&urns, 1).await.unwrap().iter().flatten().count(), 200, "known ones carry no payload");
}
