//! Leases: generations, lapses, restarts.

use crate::each_port;

each_port!(
    a_stale_lease_changes_nothing,
    complete_is_all_or_nothing,
    a_lease_can_be_extended_while_it_lives,
    a_lapsed_row_is_leased_alone_and_dies_after_three,
    a_holder_that_lives_is_late_and_nothing_is_held_against_its_rows,
    a_restart_ends_all_leases,
    a_start_gives_no_generation_that_a_lost_database_gave,
    lease_check_tells_the_lane,
    a_store_is_held_by_one_lease,
);

mod scenario_impl {
    use domain::{ErrorCode, LaneKind, LeaseRef, Outcome};

    use crate::world::*;

    const LINKS: [&str; 3] = ["t/T/s/S/ecclinks/E1", "t/T/s/S/ecclinks/E2", "t/T/s/S/ecclinks/E3"];

    pub async fn a_stale_lease_changes_nothing(mut world: World) {
        world.write(&LINKS, START).await;
        let leased = world.dequeue(ECC, 10).await.unwrap();
        world.clock.advance_ms(LEASE_MS);
        let done: Vec<_> = leased.ids().into_iter().map(|id| (id, Outcome::Done)).collect();
        assert_eq!(world.complete(&leased.lease, done.clone()).await.unwrap_err().code, ErrorCode::StaleLease);
        assert_eq!(world.split(into(&leased, links(7..8))).await.unwrap_err().code, ErrorCode::StaleLease);
        assert_eq!(world.lease_check(&leased.lease).await.unwrap_err().code, ErrorCode::StaleLease);

        let again = world.dequeue(ECC, 10).await.unwrap();
        assert_eq!(again.ids(), leased.ids()[..1], "swept, waiting, leased alone");
        assert_eq!(world.complete(&leased.lease, done).await.unwrap_err().code, ErrorCode::StaleLease);
        assert_eq!(world.extend(&leased.lease, LEASE_MS).await.unwrap_err().code, ErrorCode::StaleLease);
        // Of another queue, it is as stale as one that never was.
        let elsewhere = LeaseRef { queue: MERGER.parse().unwrap(), generation: again.lease.generation };
        let outcomes = vec![(again.ids()[0], Outcome::Done)];
        assert_eq!(world.complete(&elsewhere, outcomes).await.unwrap_err().code, ErrorCode::StaleLease);
    }

    pub async fn complete_is_all_or_nothing(mut world: World) {
        world.write(&LINKS, START).await;
        let leased = world.dequeue(ECC, 2).await.unwrap();
        let [one, two] = leased.ids()[..] else { panic!("two rows") };
        let foreign = vec![(one, Outcome::Done), (two + 1, Outcome::Done)];
        assert_eq!(world.complete(&leased.lease, foreign).await.unwrap_err().code, ErrorCode::StaleLease);
        let twice = vec![(one, Outcome::Done), (one, Outcome::Done)];
        assert_eq!(world.complete(&leased.lease, twice).await.unwrap_err().field, "outcomes[1].id");
        assert_eq!(world.complete(&leased.lease, vec![(one, Outcome::Done)]).await, Ok(0));
        assert_eq!(
            world.complete(&leased.lease, vec![(one, Outcome::Done)]).await.unwrap_err().code,
            ErrorCode::StaleLease
        );
        assert_eq!(world.complete(&leased.lease, vec![(two, Outcome::Done)]).await, Ok(0));
        assert_eq!(world.extend(&leased.lease, LEASE_MS).await.unwrap_err().code, ErrorCode::StaleLease);
    }

    pub async fn a_lease_can_be_extended_while_it_lives(mut world: World) {
        world.write(&LINKS, START).await;
        let leased = world.dequeue(ECC, 10).await.unwrap();
        world.clock.advance_ms(LEASE_MS - 1);
        world.extend(&leased.lease, LEASE_MS).await.unwrap();
        world.clock.advance_ms(LEASE_MS - 1);
        assert!(world.dequeue(ECC, 10).await.is_none());
        world.complete_all(&leased, &Outcome::Done).await;
        world.clock.advance_ms(LEASE_MS);
        assert!(world.dequeue(ECC, 10).await.is_none());
    }

    pub async fn a_lapsed_row_is_leased_alone_and_dies_after_three(mut world: World) {
        world.inject(refresh("op-1")).await.unwrap();
        let parents = world.dequeue(ECC, 10).await.unwrap();
        world.split(into(&parents, links(0..3))).await.unwrap();
        assert_eq!(world.dequeue(ECC, 10).await.unwrap().rows.len(), 3);
        world.clock.advance_ms(LEASE_MS);
        let first = world.dequeue(ECC, 10).await.unwrap();
        assert_eq!(first.rows.len(), 1);
        assert_eq!(first.rows[0].attempts, 0, "a lapse is no attempt");
        let second = world.dequeue(ECC, 10).await.unwrap();
        world.complete_all(&second, &Outcome::Done).await;
        let third = world.dequeue(ECC, 10).await.unwrap();
        world.complete_all(&third, &Outcome::Done).await;
        for _ in 0..2 {
            world.clock.advance_ms(LEASE_MS);
            assert_eq!(world.dequeue(ECC, 10).await.unwrap().ids(), first.ids());
        }
        world.clock.advance_ms(LEASE_MS);
        assert!(world.dequeue(ECC, 10).await.is_none());
        let progress = world.progress("op-1").await.unwrap();
        let labels = progress.of(ECC).labels;
        assert_eq!((labels.done, labels.failed, labels.open()), (2, 1, 0));
        assert_eq!(progress.failures[0].count, 1);
        assert!(progress.failures[0].cause.contains("lapsed"));
        assert!(progress.finished_at.is_some());
    }

    /// Whoever was only slow asks for more time too late: before or after somebody else noticed the lapse.
    pub async fn a_holder_that_lives_is_late_and_nothing_is_held_against_its_rows(mut world: World) {
        world.inject(refresh("op-1")).await.unwrap();
        let parents = world.dequeue(ECC, 10).await.unwrap();
        world.split(into(&parents, links(0..3))).await.unwrap();
        let mut leased = world.dequeue(ECC, 10).await.unwrap();
        assert_eq!(leased.rows.len(), 3);
        let ids = leased.ids();
        let late = async |world: &World, leased: &Leased| {
            let refused = world.extend(&leased.lease, LEASE_MS).await.unwrap_err();
            assert_eq!(refused.code, ErrorCode::StaleLease, "late is late");
        };
        // It comes first: the rows go back as they were.
        for _ in 0..5 {
            world.clock.advance_ms(LEASE_MS);
            late(&world, &leased).await;
            leased = world.dequeue(ECC, 10).await.unwrap();
            assert_eq!(leased.ids(), ids);
        }
        // Somebody else comes first, and has a row in hand when it does.
        for _ in 0..5 {
            world.clock.advance_ms(LEASE_MS);
            let other = world.dequeue(ECC, 10).await.unwrap();
            assert_eq!(other.ids(), ids[..1], "a suspect so far");
            late(&world, &leased).await;
            leased = other;
            world.clock.advance_ms(LEASE_MS);
            late(&world, &leased).await;
            leased = world.dequeue(ECC, 10).await.unwrap();
            assert_eq!(leased.ids(), ids);
        }
        // Alone, as often.
        world.clock.advance_ms(LEASE_MS);
        let mut alone = world.dequeue(ECC, 10).await.unwrap();
        assert_eq!(alone.ids(), ids[..1]);
        for _ in 0..5 {
            world.clock.advance_ms(LEASE_MS);
            let next = world.dequeue(ECC, 10).await.unwrap();
            assert_eq!(next.ids(), ids[..1]);
            late(&world, &alone).await;
            alone = next;
        }
        // Told twice it counts once; and whoever dies of a row says nothing.
        late(&world, &leased).await;
        late(&world, &leased).await;
        for _ in 0..3 {
            world.clock.advance_ms(LEASE_MS);
            assert_eq!(world.dequeue(ECC, 1).await.unwrap().ids(), ids[..1]);
        }
        world.clock.advance_ms(LEASE_MS);
        assert_eq!(world.dequeue(ECC, 1).await.unwrap().ids(), ids[1..2], "the first is dead");
        let labels = world.progress("op-1").await.unwrap().of(ECC).labels;
        assert_eq!((labels.failed, labels.open()), (1, 2));
        world.progress("op-1").await.unwrap().assert_balanced();
    }

    /// As after a backup was restored, or the database lost: a worker, or a label's folder, may know generations that the
    /// store does not. They were all given before this start, so none of them is given again.
    pub async fn a_start_gives_no_generation_that_a_lost_database_gave(mut world: World) {
        world.write(&LINKS, START).await;
        for _ in 0..2 {
            world.clock.advance_ms(60_000);
            let started_at = world.now().as_ms();
            world.restart().await;
            let lease = world.dequeue(ECC, 1).await.unwrap().lease;
            assert!(lease.generation > started_at, "{} at {started_at}", lease.generation);
        }
    }

    pub async fn a_restart_ends_all_leases(mut world: World) {
        world.write(&LINKS, START).await;
        let leased = world.dequeue(ECC, 10).await.unwrap();
        world.restart().await;
        assert_eq!(world.extend(&leased.lease, LEASE_MS).await.unwrap_err().code, ErrorCode::StaleLease);
        // Once it is nobody's fault: they are leased together again. Twice makes suspects, leased alone.
        let again = world.dequeue(ECC, 10).await.unwrap();
        assert_eq!(again.ids(), leased.ids());
        world.restart().await;
        let mut seen = Vec::new();
        while let Some(again) = world.dequeue(ECC, 10).await {
            assert_eq!(again.ids().len(), 1);
            assert!(again.lease.generation > leased.lease.generation, "generations only grow, across restarts too");
            world.complete_all(&again, &Outcome::Done).await;
            seen.extend(again.ids());
        }
        assert_eq!(seen, leased.ids());
        world.write(&LINKS, START).await;
        let fresh = world.dequeue(ECC, 10).await.unwrap();
        assert!(fresh.ids()[0] > leased.ids()[2], "row ids only grow");
    }

    pub async fn lease_check_tells_the_lane(mut world: World) {
        world.write(&LINKS, START).await;
        let ordinary = world.dequeue(ECC, 10).await.unwrap();
        let lane = world.lease_check(&ordinary.lease).await.unwrap();
        assert_eq!((lane.kind, lane.tenant.as_str(), lane.tracking_id), (LaneKind::Ordinary, "T", None));
        world.inject(refresh("op-1")).await.unwrap();
        let parents = world.dequeue(ECC, 10).await.unwrap();
        let lane = world.lease_check(&parents.lease).await.unwrap();
        assert_eq!(lane.kind, LaneKind::Operation);
        assert_eq!(lane.tracking_id.unwrap().as_str(), "op-1");
        assert!(world.is_operation("T", "op-1").await);
        assert!(!world.is_operation("U", "op-1").await);
        assert!(!world.is_operation("T", "op-2").await);

        // A record of another tenant cannot be announced in the lane.
        let mut foreign = told("t/U/s/S/ecclinks/E1", START);
        foreign.lane = Some(lane.lane);
        assert_eq!(world.announce(vec![foreign]).await.unwrap_err().code, ErrorCode::PermissionDenied);
    }

    pub async fn a_store_is_held_by_one_lease(mut world: World) {
        world.write(&["t/T/s/A/eslimages/E1", "t/T/s/A/eslimages/E2", "t/T/s/B/eslimages/E1"], START).await;
        let a = world.dequeue(EXPORTER, 1).await.unwrap();
        assert_eq!(a.urns(), ["t/T/s/A/eslimages/E1"]);
        let b = world.dequeue(EXPORTER, 10).await.unwrap();
        assert_eq!(b.urns(), ["t/T/s/B/eslimages/E1"], "store A is held");
        world.write(&["t/T/s/A/eslimages/E3"], START).await;
        assert!(world.dequeue(EXPORTER, 10).await.is_none());
        world.complete_all(&a, &Outcome::Done).await;
        assert_eq!(world.dequeue(EXPORTER, 10).await.unwrap().urns(), ["t/T/s/A/eslimages/E2", "t/T/s/A/eslimages/E3"]);
        world.clock.advance_ms(LEASE_MS);
        // Both lapsed: both stores are free again, their rows one by one.
        let again = world.dequeue(EXPORTER, 10).await.unwrap();
        let other = world.dequeue(EXPORTER, 10).await.unwrap();
        assert_eq!((again.urns().len(), other.urns().len()), (1, 1));
        assert!(world.dequeue(EXPORTER, 10).await.is_none());
    }
}
