//! Histories of labels. Each case holds of every face of the store.

use domain::{LeaseRef, Notification};
use prost::{Message as _, bytes::Bytes};
use proto::records::v1::{DeliveryState, EslImage, Evidence, StoreEslStatus};

use super::world::{EXPORTER, MERGER, World, delete, image, link, put};
use crate::history::{HistoryAsk, HistoryCause, HistoryEntry, HistoryEvent, KEPT_MAX};

const PICTURE: &str = "t/T/s/S/eslimages/E";
const STATUS: &str = "t/T/s/S/eslstatuses/E";
const SOURCE: &str = "t/T/s/S/ecceslimages/E";

type Leased = (LeaseRef, Vec<Notification>);

fn merged(byte: u8) -> Bytes {
    EslImage { source: 1, digest: vec![byte; 32].into(), width: 8, height: 4, palette: 1 }.encode_to_vec().into()
}

fn status(state: DeliveryState, confirmed: Option<u8>) -> Bytes {
    let confirmed_digest = confirmed.map(|byte| vec![byte; 32]).unwrap_or_default().into();
    let evidence = if confirmed.is_some() { Evidence::Displayed } else { Evidence::Unspecified };
    StoreEslStatus { state: state.into(), confirmed_digest, evidence: evidence.into(), ..StoreEslStatus::default() }
        .encode_to_vec()
        .into()
}

impl World {
    /// Makes every queue, and leads the label through the renderer: the merger's lease.
    async fn at_the_merger(&self, byte: u8) -> Leased {
        self.renderers_queue().await;
        self.mergers_queue().await;
        self.exporters_queue().await;
        self.import(vec![put("t/T/s/S/ecclinks/E", link("I", "M"))]).await.unwrap();
        let (lease, notifications) = self.lease().await.expect("the link is announced");
        self.leased(&lease, vec![put(SOURCE, image(byte))]).await.unwrap();
        self.complete(&lease, &notifications).await;
        self.lease_of(MERGER).await.expect("the picture is announced")
    }

    async fn merge(&self, lease: &LeaseRef, byte: u8, tracking_id: Option<&str>) {
        let change = put(PICTURE, merged(byte));
        let change = match tracking_id {
            Some(id) => change.tracked(id),
            None => change,
        };
        self.leased_by(MERGER, lease, vec![change]).await.unwrap();
    }

    async fn history(&self, label: &str, (before, limit): (Option<i64>, usize)) -> crate::model::Page<HistoryEntry> {
        let [tenant, store, label] = ["T", "S", label];
        let ask = HistoryAsk {
            tenant: tenant.parse().unwrap(),
            store: store.parse().unwrap(),
            label: label.parse().unwrap(),
            before,
            limit,
        };
        self.store.history_list(ask).await.unwrap()
    }

    /// The newest entries of label E.
    async fn newest(&self) -> Vec<HistoryEntry> {
        self.history("E", (None, 100)).await.entries
    }
}

type Seen = (HistoryEvent, Option<u8>, Option<u8>);

/// What happened, and the first byte of each digest.
fn seen(entries: &[HistoryEntry]) -> Vec<Seen> {
    let first = |digest: Option<[u8; 32]>| digest.map(|digest| digest[0]);
    entries.iter().map(|entry| (entry.event, first(entry.old_digest), first(entry.new_digest))).collect()
}

pub(super) async fn another_picture_is_told_with_who_and_why(world: &World) {
    let (lease, notifications) = world.at_the_merger(1).await;
    world.merge(&lease, 1, Some("load-1")).await;
    world.clock.advance_ms(5);
    world.merge(&lease, 1, Some("load-2")).await;
    world.complete(&lease, &notifications).await;

    world.operation("op-1", &["E"]).await;
    let (lease, notifications) = world.lease().await.expect("the label's link waits");
    world.leased(&lease, vec![put(SOURCE, image(2)).tracked("op-1")]).await.unwrap();
    world.complete(&lease, &notifications).await;
    let (lease, notifications) = world.lease_of(MERGER).await.expect("the new picture is announced");
    world.merge(&lease, 2, Some("op-1")).await;
    let told = world.newest().await;
    assert_eq!(
        seen(&told),
        [(HistoryEvent::Picture, Some(1), Some(2)), (HistoryEvent::Picture, None, Some(1))],
        "newest first; the same picture is no entry"
    );
    let by = |entry: &HistoryEntry| (entry.cause, entry.tracking_id.as_ref().map(ToString::to_string));
    assert_eq!(by(&told[0]), (HistoryCause::Operation, Some("op-1".to_owned())));
    assert_eq!(by(&told[1]), (HistoryCause::Change, Some("load-1".to_owned())));
    assert_eq!((told[0].at, told[1].at), (world.now(), world.now().plus_ms(-5)));
    assert_eq!(told[0].written_by.to_string(), "svc:esl-image-merger");

    world.leased_by(MERGER, &lease, vec![delete(PICTURE).tracked("op-1")]).await.unwrap();
    assert_eq!(seen(&world.newest().await)[0], (HistoryEvent::Removed, Some(2), None));
    world.complete(&lease, &notifications).await;
    assert!(world.history("F", (None, 100)).await.entries.is_empty(), "another label's is another one");
}

pub(super) async fn ends_of_deliveries_are_told(world: &World) {
    let (lease, notifications) = world.at_the_merger(1).await;
    world.merge(&lease, 1, None).await;
    world.complete(&lease, &notifications).await;
    let (lease, _) = world.lease_of(EXPORTER).await.expect("the merged picture is announced");
    for (state, confirmed) in [
        (DeliveryState::Sent, None),
        (DeliveryState::Queued, None),
        (DeliveryState::Confirmed, Some(1)),
        (DeliveryState::Lost, None),
        (DeliveryState::Failed, None),
    ] {
        world.leased_by(EXPORTER, &lease, vec![put(STATUS, status(state, confirmed))]).await.unwrap();
    }
    let told = world.newest().await;
    assert_eq!(
        seen(&told),
        [
            (HistoryEvent::Failed, None, None),
            (HistoryEvent::Lost, Some(1), None),
            (HistoryEvent::Confirmed, None, Some(1)),
            (HistoryEvent::Picture, None, Some(1)),
        ]
    );
    assert_eq!((told[2].evidence, told[3].evidence), (Evidence::Displayed, Evidence::Unspecified));
    assert_eq!(told[2].written_by.to_string(), "svc:hardware-exporter");
}

pub(super) async fn a_history_is_paged_and_cut_to_its_newest_entries(world: &World) {
    /// More than are kept, and not where it is cut.
    const CHANGES: u8 = 140;
    let (lease, _) = world.at_the_merger(1).await;
    for byte in 1..=CHANGES {
        world.merge(&lease, byte, None).await;
    }
    let (mut told, mut before) = (Vec::new(), None);
    loop {
        let page = world.history("E", (before, 30)).await;
        before = page.entries.last().map(|last| last.position);
        told.extend(seen(&page.entries));
        if !page.more {
            break;
        }
        assert_eq!(page.entries.len(), 30);
    }
    let kept = told.len();
    assert!((KEPT_MAX..usize::from(CHANGES)).contains(&kept), "{kept}");
    let newest: Vec<Seen> =
        (1..=CHANGES).rev().take(kept).map(|byte| (HistoryEvent::Picture, byte.checked_sub(1), Some(byte))).collect();
    assert_eq!(told, newest, "the newest, without a hole");
}

pub(super) async fn old_entries_are_forgotten_in_bounded_rounds(world: &World) {
    let (lease, _) = world.at_the_merger(1).await;
    for byte in 1..=5 {
        world.merge(&lease, byte, None).await;
        world.clock.advance_ms(1_000);
    }
    let third = world.now().plus_ms(-2_500);
    assert_eq!(world.store.history_prune(third, 2).await.unwrap(), 2);
    assert_eq!(world.store.history_prune(third, 2).await.unwrap(), 1);
    assert_eq!(world.store.history_prune(third, 2).await.unwrap(), 0);
    let kept: Vec<Option<u8>> = seen(&world.newest().await).into_iter().map(|(_, _, byte)| byte).collect();
    assert_eq!(kept, [Some(5), Some(4)]);
}
