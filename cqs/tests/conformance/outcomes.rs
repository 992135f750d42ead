//! What becomes of leased rows.

use crate::each_port;

each_port!(
    the_eighth_attempt_is_the_last,
    a_deferred_row_waits_until_its_time,
    a_returning_row_merges_and_is_counted,
    failed_rows_are_grouped_by_cause,
);

mod scenario_impl {
    use domain::{Outcome, limits};

    use crate::world::*;

    pub async fn the_eighth_attempt_is_the_last(mut world: World) {
        world.write(&["t/T/s/S/ecclinks/E1"], START).await;
        for attempt in 0..limits::ATTEMPTS_MAX {
            let leased = world.dequeue(ECC, 10).await.unwrap();
            assert_eq!(leased.rows[0].attempts, attempt);
            let dead = world.complete(&leased.lease, vec![(leased.ids()[0], retry())]).await.unwrap();
            assert_eq!(dead, i32::from(attempt == limits::ATTEMPTS_MAX - 1));
            assert!(world.dequeue(ECC, 10).await.is_none(), "backing off");
            // The longest backoff.
            world.clock.advance_ms(5 * MINUTE);
        }
        assert!(world.dequeue(ECC, 10).await.is_none());
    }

    pub async fn a_deferred_row_waits_until_its_time(mut world: World) {
        world.write(&["t/T/s/S/ecclinks/E1", "t/T/s/S/ecclinks/E2"], START).await;
        let leased = world.dequeue(ECC, 10).await.unwrap();
        let defer = |until| Outcome::Defer { until, cause: "access point offline".to_owned() };
        let [one, two] = leased.ids()[..] else { panic!("two rows") };
        let far = START.plus_ms(90 * 24 * 60 * MINUTE);
        world.complete(&leased.lease, vec![(one, defer(START.plus_ms(MINUTE))), (two, defer(far))]).await.unwrap();
        world.clock.advance_ms(MINUTE - 1);
        assert!(world.dequeue(ECC, 10).await.is_none());
        world.clock.advance_ms(1);
        let due = world.dequeue(ECC, 10).await.unwrap();
        assert_eq!((due.ids(), due.rows[0].attempts), (vec![one], 0));
        world.complete_all(&due, &Outcome::Done).await;
        // Clamped to 30 days.
        world.clock.advance_ms(30 * 24 * 60 * MINUTE);
        assert_eq!(world.dequeue(ECC, 10).await.unwrap().ids(), [two]);
    }

    pub async fn a_returning_row_merges_and_is_counted(mut world: World) {
        world.inject(refresh("op-1")).await.unwrap();
        let parents = world.dequeue(ECC, 10).await.unwrap();
        let lane = world.lease_check(&parents.lease).await.unwrap().lane;
        world.split(into(&parents, links(1..2))).await.unwrap();
        let leased = world.dequeue(ECC, 10).await.unwrap();
        let mut again = told("t/T/s/S/ecclinks/E1", START);
        again.lane = Some(lane);
        world.announce(vec![again]).await.unwrap();
        let before = world.progress("op-1").await.unwrap().of(ECC).labels;
        assert_eq!((before.enqueued, before.waiting, before.leased), (2, 1, 1));

        world.complete_all(&leased, &retry()).await;
        let after = world.progress("op-1").await.unwrap().of(ECC).labels;
        assert_eq!((after.enqueued, after.coalesced, after.waiting, after.leased), (2, 1, 1, 0));
        // The newer change keeps its own state: it is due now, without an attempt.
        let row = world.dequeue(ECC, 10).await.unwrap();
        assert_eq!((row.rows.len(), row.rows[0].attempts), (1, 0));
        world.complete_all(&row, &Outcome::Done).await;
        let progress = world.progress("op-1").await.unwrap();
        assert!(progress.finished_at.is_some());
        progress.assert_balanced();
    }

    pub async fn failed_rows_are_grouped_by_cause(mut world: World) {
        world.inject(refresh("op-1")).await.unwrap();
        let parents = world.dequeue(ECC, 10).await.unwrap();
        world.split(into(&parents, links(0..5))).await.unwrap();
        let leased = world.dequeue(ECC, 10).await.unwrap();
        let outcomes = leased.ids().into_iter().enumerate();
        let outcomes = outcomes.map(|(n, id)| (id, failed(if n < 2 { "no price" } else { "no font" }))).collect();
        assert_eq!(world.complete(&leased.lease, outcomes).await, Ok(5));
        let progress = world.progress("op-1").await.unwrap();
        let groups: Vec<_> = progress.failures.iter().map(|group| (group.cause.as_str(), group.count)).collect();
        assert_eq!(groups, [("no font", 3), ("no price", 2)]);
        assert_eq!(progress.of(ECC).labels.failed, 5);
        assert!(progress.finished_at.is_some());
    }
}
