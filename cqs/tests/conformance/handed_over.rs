//! Rows that were handed over and wait for a confirmation are counted, each once, until they are done, given up or renewed.

use crate::each_port;

each_port!(
    what_is_handed_over_counts_once_until_it_is_done,
    what_ends_being_handed_over_is_counted_off,
    a_defer_a_retry_and_a_lapse_leave_it_as_it_was,
    a_cancelled_operation_tells_what_was_handed_over,
);

mod scenario_impl {
    use cqs::model::Counts;
    use domain::Outcome;
    use proto::cqs::v1::{Cancel, control_operation_request::Action};

    use crate::{
        failures_world::{Wanted, retry_of},
        world::*,
    };

    fn follow(world: &World, handed_over: bool) -> Outcome {
        Outcome::Follow { until: world.now().plus_ms(SECOND), cause: "on its way".to_owned(), handed_over }
    }

    /// An operation with so many labels, all of them leased.
    async fn leased(world: &mut World, labels: usize) -> Leased {
        world.inject(refresh("op-1")).await.unwrap();
        let parents = world.dequeue(ECC, 10).await.unwrap();
        world.split(into(&parents, links(0..labels))).await.unwrap();
        world.dequeue(ECC, 10).await.unwrap()
    }

    async fn labels(world: &World, tracking_id: &str) -> Counts {
        let progress = world.progress(tracking_id).await.unwrap();
        progress.assert_balanced();
        progress.of(ECC).labels
    }

    pub async fn what_is_handed_over_counts_once_until_it_is_done(mut world: World) {
        let mut rows = leased(&mut world, 4).await;
        // Looked after again and again.
        for _ in 0..3 {
            let ids = rows.ids();
            let (two, others) = ids.split_at(2);
            let outcomes = two.iter().map(|id| (*id, follow(&world, true)));
            let outcomes = outcomes.chain(others.iter().map(|id| (*id, follow(&world, false)))).collect();
            world.complete(&rows.lease, outcomes).await.unwrap();
            let expected = Counts { enqueued: 4, waiting: 4, handed_over: 2, ..Counts::default() };
            assert_eq!(labels(&world, "op-1").await, expected);
            world.store.maintain(world.now()).await.unwrap();
            world.clock.advance_ms(SECOND);
            rows = world.dequeue(ECC, 10).await.unwrap();
            rows.rows.sort_by_key(|row| row.id);
            let expected = Counts { enqueued: 4, leased: 4, handed_over: 2, ..Counts::default() };
            assert_eq!(labels(&world, "op-1").await, expected, "while it is looked after, too");
        }
        let ids = rows.ids();
        world.complete(&rows.lease, vec![(ids[0], Outcome::Done), (ids[2], Outcome::Unchanged)]).await.unwrap();
        let expected = Counts { enqueued: 4, done: 2, unchanged: 1, leased: 2, handed_over: 1, ..Counts::default() };
        assert_eq!(labels(&world, "op-1").await, expected);
        world.complete(&rows.lease, vec![(ids[1], Outcome::Done), (ids[3], Outcome::Done)]).await.unwrap();
        let progress = world.progress("op-1").await.unwrap();
        assert_eq!((progress.of(ECC).labels.handed_over, progress.finished_at.is_some()), (0, true));
    }

    pub async fn what_ends_being_handed_over_is_counted_off(mut world: World) {
        let rows = leased(&mut world, 3).await;
        let lane = world.lease_check(&rows.lease).await.unwrap().lane;
        world.complete_all(&rows, &follow(&world, true)).await;
        // A newer change of a record renews its row, whether that waits or is leased meanwhile.
        let again = |label: usize| {
            let mut again = told(&format!("t/T/s/S/ecclinks/E{label}"), START);
            again.lane = Some(lane);
            again
        };
        world.announce(vec![again(0)]).await.unwrap();
        let expected = Counts { enqueued: 4, coalesced: 1, waiting: 3, handed_over: 2, ..Counts::default() };
        assert_eq!(labels(&world, "op-1").await, expected);
        world.clock.advance_ms(SECOND);
        let mut rows = world.dequeue(ECC, 10).await.unwrap();
        rows.rows.sort_by_key(|row| row.id);
        world.announce(vec![again(1)]).await.unwrap();
        world.complete(&rows.lease, vec![(rows.ids()[1], follow(&world, true))]).await.unwrap();
        let expected = Counts { enqueued: 5, coalesced: 2, leased: 2, waiting: 1, handed_over: 1, ..Counts::default() };
        assert_eq!(labels(&world, "op-1").await, expected, "the newer change was not handed over");
        // A failure ends it, and a retry begins anew; so does the word that it was lost.
        world.complete(&rows.lease, vec![(rows.ids()[0], follow(&world, true))]).await.unwrap();
        assert_eq!(labels(&world, "op-1").await.handed_over, 2);
        world.complete(&rows.lease, vec![(rows.ids()[2], failed("not confirmed"))]).await.unwrap();
        assert_eq!(labels(&world, "op-1").await.handed_over, 1);
        world.clock.advance_ms(SECOND);
        let rows = world.dequeue(ECC, 10).await.unwrap();
        world.complete_all(&rows, &follow(&world, false)).await;
        assert_eq!(labels(&world, "op-1").await.handed_over, 0);
        let wanted = Wanted { of: "op-1", queue: "", cause: "" };
        world.retry(retry_of(wanted, "retry-1")).await.unwrap();
        assert_eq!(labels(&world, "retry-1").await, Counts { enqueued: 1, waiting: 1, ..Counts::default() });
    }

    pub async fn a_defer_a_retry_and_a_lapse_leave_it_as_it_was(mut world: World) {
        let mut rows = leased(&mut world, 2).await;
        let [one, two] = rows.ids()[..] else { panic!("two labels") };
        world.complete(&rows.lease, vec![(one, follow(&world, true)), (two, follow(&world, false))]).await.unwrap();
        let later = Outcome::Defer { until: world.now(), cause: "the platform was away".to_owned() };
        for outcome in [Some(later), Some(retry()), None] {
            world.clock.advance_ms(5 * MINUTE);
            rows = world.dequeue(ECC, 10).await.unwrap();
            match outcome {
                Some(outcome) => world.complete_all(&rows, &outcome).await,
                None => world.restart().await,
            }
            let expected = Counts { enqueued: 2, waiting: 2, handed_over: 1, ..Counts::default() };
            assert_eq!(labels(&world, "op-1").await, expected);
        }
        // A parent is never handed over.
        world.inject(refresh("op-2")).await.unwrap();
        world.control("op-1", Action::Cancel(Cancel {})).await.unwrap();
        let parent = world.dequeue(ECC, 10).await.unwrap();
        world.complete_all(&parent, &follow(&world, true)).await;
        assert_eq!(world.progress("op-2").await.unwrap().of(ECC).parents.handed_over, 0);
    }

    pub async fn a_cancelled_operation_tells_what_was_handed_over(mut world: World) {
        let rows = leased(&mut world, 5).await;
        let ids = rows.ids();
        let outcomes = (0..4).map(|n| (ids[n], follow(&world, n < 3))).collect();
        world.complete(&rows.lease, outcomes).await.unwrap();
        world.clock.advance_ms(SECOND);
        // Two of the three are looked after when it is cancelled.
        let mut looked_after = world.dequeue(ECC, 2).await.unwrap();
        looked_after.rows.sort_by_key(|row| row.id);
        assert_eq!(looked_after.ids(), ids[..2]);
        let receipt = world.control("op-1", Action::Cancel(Cancel {})).await.unwrap().receipt.unwrap();
        assert_eq!((receipt.not_started, receipt.handed_over, receipt.in_flight), (1, 1, 3));
        let expected = Counts { enqueued: 5, cancelled: 2, leased: 3, handed_over: 3, ..Counts::default() };
        assert_eq!(labels(&world, "op-1").await, expected);
        // One is confirmed, one comes back unconfirmed; the last was never handed over.
        let outcomes = vec![(ids[0], Outcome::Done), (ids[1], follow(&world, true))];
        world.complete(&looked_after.lease, outcomes).await.unwrap();
        world.complete(&rows.lease, vec![(ids[4], follow(&world, false))]).await.unwrap();
        while world.store.clear(world.now()).await.unwrap() {}
        let expected = Counts { enqueued: 5, done: 1, cancelled: 4, handed_over: 2, ..Counts::default() };
        assert_eq!(labels(&world, "op-1").await, expected);
        let receipt = world.control("op-1", Action::Cancel(Cancel {})).await.unwrap().receipt.unwrap();
        assert_eq!((receipt.not_started, receipt.handed_over, receipt.in_flight), (2, 2, 0));
    }
}
