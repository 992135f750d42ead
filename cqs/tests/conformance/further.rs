//! Further rows for a lease that holds a store.

use crate::each_port;

each_port!(
    further_rows_join_a_lease_of_their_store_under_its_generation,
    whoever_waits_for_the_store_in_another_lane_is_given_way,
    bulk_work_gives_way_to_a_change_of_another_store,
    nothing_joins_in_a_lane_that_was_stopped,
    what_must_be_leased_alone_joins_nothing,
    only_a_live_lease_of_a_store_is_joined,
);

mod scenario_impl {
    use domain::{ErrorCode, Outcome, ServiceName};
    use proto::cqs::v1::{Cancel, Pause, Resume, SetLimits, control_operation_request::Action};

    use crate::world::*;

    const IMAGES: [&str; 4] =
        ["t/T/s/S/eslimages/E1", "t/T/s/S/eslimages/E2", "t/T/s/S/eslimages/E3", "t/T/s/S/eslimages/E4"];

    fn done(ids: &[i64]) -> Vec<(i64, Outcome)> {
        ids.iter().map(|id| (*id, Outcome::Done)).collect()
    }

    /// A re-export of store S under way: its four labels wait in its lane.
    async fn re_export(world: &mut World, tracking_id: &str) {
        let items = vec![parent("eslimage.v1 t/T/s/S by_store")];
        let service = ServiceName::HardwareExporter;
        let queue = EXPORTER.parse().unwrap();
        world.inject(cqs::store::InjectAsk { service, queue, items, ..refresh(tracking_id) }).await.unwrap();
        let parents = world.dequeue(EXPORTER, 10).await.unwrap();
        world.split(into(&parents, IMAGES.iter().map(|urn| record(urn)).collect())).await.unwrap();
    }

    pub async fn further_rows_join_a_lease_of_their_store_under_its_generation(mut world: World) {
        world.write(&IMAGES, START).await;
        world.write(&["t/T/s/B/eslimages/E1"], START.plus_ms(1)).await;
        let first = world.dequeue(EXPORTER, 2).await.unwrap();
        assert_eq!(first.urns(), IMAGES[..2]);
        let (more, give_way) = world.further(&first.lease, 1).await.unwrap();
        assert_eq!((more.urns(), &more.lease, give_way), (vec![IMAGES[2].to_owned()], &first.lease, false));
        // What the first rows come to is none of the further ones' business, and the store stays held.
        assert_eq!(world.complete(&first.lease, done(&first.ids())).await, Ok(0));
        let other = world.dequeue(EXPORTER, 10).await.unwrap();
        assert_eq!(other.urns(), ["t/T/s/B/eslimages/E1"]);
        world.complete_all(&other, &Outcome::Done).await;
        assert!(world.dequeue(EXPORTER, 10).await.is_none(), "the last one is only for the holder");
        // What was put off joins again when it is due.
        let until = START.plus_ms(SECOND);
        let later = vec![(more.ids()[0], Outcome::Defer { until, cause: "busy".to_owned() })];
        let (last, _) = world.further(&first.lease, 10).await.unwrap();
        assert_eq!(last.urns(), IMAGES[3..]);
        assert_eq!(world.complete(&first.lease, later).await, Ok(0));
        assert_eq!(world.further(&first.lease, 10).await.unwrap().0.ids(), [0; 0]);
        world.clock.advance_ms(SECOND);
        let (again, give_way) = world.further(&first.lease, 10).await.unwrap();
        assert_eq!((again.urns(), give_way), (vec![IMAGES[2].to_owned()], false));
        assert_eq!(world.complete(&first.lease, done(&[last.ids(), again.ids()].concat())).await, Ok(0));
        // With its last row the lease is over, and the store is free.
        assert_eq!(world.further(&first.lease, 10).await.unwrap_err().code, ErrorCode::StaleLease);
        world.write(&IMAGES[..1], START).await;
        assert_eq!(world.dequeue(EXPORTER, 10).await.unwrap().urns(), IMAGES[..1]);
    }

    pub async fn whoever_waits_for_the_store_in_another_lane_is_given_way(mut world: World) {
        re_export(&mut world, "op-1").await;
        let bulk = world.dequeue(EXPORTER, 1).await.unwrap();
        let (more, give_way) = world.further(&bulk.lease, 1).await.unwrap();
        assert_eq!((more.rows.len(), give_way), (1, false));
        world.write(&["t/T/s/S/eslimages/E9"], START).await;
        let (none, give_way) = world.further(&bulk.lease, 1).await.unwrap();
        assert_eq!((none.rows.len(), give_way), (0, true));
        assert_eq!(world.complete(&bulk.lease, done(&[bulk.ids(), more.ids()].concat())).await, Ok(0));
        let ordinary = world.dequeue(EXPORTER, 10).await.unwrap();
        assert_eq!(ordinary.urns(), ["t/T/s/S/eslimages/E9"]);
        // The other way round as well, unless that operation is stopped.
        assert!(world.further(&ordinary.lease, 1).await.unwrap().1);
        world.control("op-1", Action::Pause(Pause::default())).await.unwrap();
        assert!(!world.further(&ordinary.lease, 1).await.unwrap().1);
        world.control("op-1", Action::Resume(Resume::default())).await.unwrap();
        assert!(world.further(&ordinary.lease, 1).await.unwrap().1);
        let labels = world.progress("op-1").await.unwrap().of(EXPORTER).labels;
        assert_eq!((labels.done, labels.waiting, labels.leased), (2, 2, 0));
    }

    pub async fn bulk_work_gives_way_to_a_change_of_another_store(mut world: World) {
        re_export(&mut world, "op-1").await;
        let bulk = world.dequeue(EXPORTER, 1).await.unwrap();
        world.write(&["t/T/s/B/eslimages/E9"], START).await;
        let (none, give_way) = world.further(&bulk.lease, 1).await.unwrap();
        assert_eq!((none.rows.len(), give_way), (0, true), "whoever would lease it may have no loop free but this");
        let change = world.dequeue(EXPORTER, 10).await.unwrap();
        assert_eq!(change.urns(), ["t/T/s/B/eslimages/E9"]);
        let (more, give_way) = world.further(&bulk.lease, 1).await.unwrap();
        assert_eq!((more.rows.len(), give_way), (1, false), "it is in hand");
        // Changes give way to none of their kind but those of their own store.
        world.write(&["t/T/s/B/eslimages/E8", "t/T/s/C/eslimages/E9"], START).await;
        let (more, give_way) = world.further(&change.lease, 1).await.unwrap();
        assert_eq!((more.urns(), give_way), (vec!["t/T/s/B/eslimages/E8".to_owned()], false));
    }

    pub async fn nothing_joins_in_a_lane_that_was_stopped(mut world: World) {
        re_export(&mut world, "op-1").await;
        let leased = world.dequeue(EXPORTER, 1).await.unwrap();
        world.control("op-1", Action::Pause(Pause::default())).await.unwrap();
        let (none, give_way) = world.further(&leased.lease, 1).await.unwrap();
        assert_eq!((none.rows.len(), give_way), (0, true));
        world.control("op-1", Action::Resume(Resume::default())).await.unwrap();
        let (more, give_way) = world.further(&leased.lease, 1).await.unwrap();
        assert_eq!((more.rows.len(), give_way), (1, false));
        // A limit counts leases one by one.
        let limits = SetLimits { throttle_per_s: Some(1), ..SetLimits::default() };
        world.control("op-1", Action::SetLimits(limits)).await.unwrap();
        let (none, give_way) = world.further(&leased.lease, 1).await.unwrap();
        assert_eq!((none.rows.len(), give_way), (0, false));
        world.control("op-1", Action::Cancel(Cancel::default())).await.unwrap();
        let (none, give_way) = world.further(&leased.lease, 1).await.unwrap();
        assert_eq!((none.rows.len(), give_way), (0, true));
    }

    pub async fn what_must_be_leased_alone_joins_nothing(mut world: World) {
        world.write(&IMAGES[..2], START).await;
        world.dequeue(EXPORTER, 2).await.unwrap();
        world.clock.advance_ms(LEASE_MS);
        let suspect = world.dequeue(EXPORTER, 2).await.unwrap();
        assert_eq!(suspect.rows.len(), 1);
        let (none, give_way) = world.further(&suspect.lease, 2).await.unwrap();
        assert_eq!((none.rows.len(), give_way), (0, true), "the other one lapsed, too");
        world.complete_all(&suspect, &Outcome::Done).await;
        let other = world.dequeue(EXPORTER, 2).await.unwrap();
        world.complete_all(&other, &Outcome::Done).await;

        re_export(&mut world, "op-1").await;
        let labels = world.dequeue(EXPORTER, 1).await.unwrap();
        let items = vec![parent("eslimage.v1 t/T/s/S by_store")];
        let (service, queue) = (ServiceName::HardwareExporter, EXPORTER.parse().unwrap());
        world.inject(cqs::store::InjectAsk { service, queue, items, ..refresh("op-2") }).await.unwrap();
        let (none, give_way) = world.further(&labels.lease, 2).await.unwrap();
        assert_eq!((none.rows.len(), give_way), (0, true), "a parent waits for the store");
    }

    pub async fn only_a_live_lease_of_a_store_is_joined(mut world: World) {
        world.write(&["t/T/s/S/ecclinks/E1", "t/T/s/S/ecclinks/E2"], START).await;
        let links = world.dequeue(ECC, 1).await.unwrap();
        assert_eq!(world.further(&links.lease, 1).await.unwrap_err().field, "lease_generation");
        world.write(&IMAGES, START).await;
        let leased = world.dequeue(EXPORTER, 1).await.unwrap();
        world.clock.advance_ms(LEASE_MS - 1);
        world.extend(&leased.lease, LEASE_MS).await.unwrap();
        world.clock.advance_ms(LEASE_MS - 1);
        let (more, _) = world.further(&leased.lease, 1).await.unwrap();
        assert_eq!(more.rows.len(), 1);
        world.clock.advance_ms(1);
        assert_eq!(world.further(&leased.lease, 1).await.unwrap_err().code, ErrorCode::StaleLease);
        let swept = world.dequeue(EXPORTER, 10).await.unwrap();
        assert_eq!(swept.urns(), IMAGES[..1], "both that were leased lapsed, and are leased one by one");
    }
}
