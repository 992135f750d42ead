//! Handled rows are counted by the evidence that confirmed them, and failed ones by whether they had been handed over.

use crate::each_port;

each_port!(
    what_is_confirmed_is_counted_by_its_evidence,
    a_parent_is_confirmed_by_nothing,
    failures_tell_whether_they_had_been_handed_over,
    a_cancelled_retry_gives_back_what_had_been_handed_over,
);

mod scenario_impl {
    use cqs::model::{ByEvidence, Counts};
    use domain::{Evidence, Outcome};
    use proto::cqs::v1::{Cancel, control_operation_request::Action};

    use crate::{
        failures_world::{Wanted, retry_of},
        world::*,
    };

    const OF: Wanted = Wanted { of: "op-1", queue: "", cause: "" };

    fn confirmed(changed: bool, evidence: Evidence) -> Outcome {
        Outcome::Confirmed { changed, evidence }
    }

    fn follow(world: &World) -> Outcome {
        Outcome::Follow { until: world.now().plus_ms(SECOND), cause: "on its way".to_owned(), handed_over: true }
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

    /// The failure of each of these labels, the first two of which are handed over before.
    async fn two_of_three_fail_when_handed_over(world: &mut World) {
        let rows = leased(world, 3).await;
        let ids = rows.ids();
        let outcomes = vec![(ids[0], follow(world)), (ids[1], follow(world)), (ids[2], failed("no access point"))];
        world.complete(&rows.lease, outcomes).await.unwrap();
        world.clock.advance_ms(SECOND);
        let rows = world.dequeue(ECC, 10).await.unwrap();
        world.complete_all(&rows, &failed("not confirmed")).await;
    }

    pub async fn what_is_confirmed_is_counted_by_its_evidence(mut world: World) {
        let rows = leased(&mut world, 7).await;
        let ids = rows.ids();
        world.complete(&rows.lease, vec![(ids[0], follow(&world)), (ids[1], follow(&world))]).await.unwrap();
        let outcomes = vec![
            (ids[2], confirmed(true, Evidence::Written)),
            (ids[3], confirmed(false, Evidence::Displayed)),
            (ids[4], Outcome::Done),
            (ids[5], Outcome::Unchanged),
        ];
        world.complete(&rows.lease, outcomes).await.unwrap();
        let by = ByEvidence { written: 1, transferred: 0, displayed: 1 };
        let expected = Counts {
            enqueued: 7,
            done: 4,
            unchanged: 2,
            waiting: 2,
            leased: 1,
            handed_over: 2,
            confirmed_by: by,
            ..Counts::default()
        };
        assert_eq!(labels(&world, "op-1").await, expected);
        world.complete(&rows.lease, vec![(ids[6], confirmed(true, Evidence::Transferred))]).await.unwrap();
        world.clock.advance_ms(SECOND);
        let rows = world.dequeue(ECC, 10).await.unwrap();
        world.complete_all(&rows, &confirmed(true, Evidence::Displayed)).await;
        let by = ByEvidence { written: 1, transferred: 1, displayed: 3 };
        let expected = Counts { enqueued: 7, done: 7, unchanged: 2, confirmed_by: by, ..Counts::default() };
        assert_eq!(labels(&world, "op-1").await, expected);
        // Folded, they are the same.
        world.store.maintain(world.now()).await.unwrap();
        assert_eq!(labels(&world, "op-1").await, expected);
        assert!(world.progress("op-1").await.unwrap().finished_at.is_some());
    }

    pub async fn a_parent_is_confirmed_by_nothing(mut world: World) {
        world.inject(refresh("op-1")).await.unwrap();
        let parents = world.dequeue(ECC, 10).await.unwrap();
        world.complete_all(&parents, &confirmed(true, Evidence::Displayed)).await;
        let counts = world.progress("op-1").await.unwrap().of(ECC);
        assert_eq!((counts.parents.done, counts.labels), (1, Counts::default()));
        // An ordinary change has no operation that would count it.
        world.announce(vec![told("t/T/s/S/ecclinks/E0", START)]).await.unwrap();
        let rows = world.dequeue(ECC, 10).await.unwrap();
        world.complete_all(&rows, &confirmed(true, Evidence::Written)).await;
        assert_eq!(world.progress("op-1").await.unwrap().of(ECC), counts);
    }

    pub async fn failures_tell_whether_they_had_been_handed_over(mut world: World) {
        two_of_three_fail_when_handed_over(&mut world).await;
        let expected = Counts { enqueued: 3, failed: 3, failed_handed_over: 2, ..Counts::default() };
        assert_eq!(labels(&world, "op-1").await, expected);
        world.store.maintain(world.now()).await.unwrap();
        assert_eq!(labels(&world, "op-1").await, expected);
        let groups = world.progress("op-1").await.unwrap().failures;
        let groups: Vec<_> =
            groups.iter().map(|group| (group.cause.as_str(), group.count, group.handed_over)).collect();
        assert_eq!(groups, [("not confirmed", 2, 2), ("no access point", 1, 0)]);
        let listed = world.failures(OF, 10).await;
        let mut listed: Vec<_> = listed.iter().map(|one| (one.cause.as_str(), one.handed_over)).collect();
        listed.sort_unstable();
        assert_eq!(listed, [("no access point", false), ("not confirmed", true), ("not confirmed", true)]);
        // A retry says how many of them it took, and begins anew.
        world.retry(retry_of(Wanted { cause: "not confirmed", ..OF }, "retry-1")).await.unwrap();
        let counts = world.progress("op-1").await.unwrap().of(ECC);
        assert_eq!((counts.labels, counts.labels_retried, counts.retried_handed_over), (expected, 2, 2));
        let again = Counts { enqueued: 2, waiting: 2, ..Counts::default() };
        assert_eq!(labels(&world, "retry-1").await, again);
        let rows = world.dequeue(ECC, 10).await.unwrap();
        world.complete_all(&rows, &failed("no access point")).await;
        let expected = Counts { enqueued: 2, failed: 2, ..Counts::default() };
        assert_eq!(labels(&world, "retry-1").await, expected, "nobody took them this time");
    }

    pub async fn a_cancelled_retry_gives_back_what_had_been_handed_over(mut world: World) {
        two_of_three_fail_when_handed_over(&mut world).await;
        world.retry(retry_of(OF, "retry-1")).await.unwrap();
        let counts = world.progress("op-1").await.unwrap().of(ECC);
        assert_eq!((counts.labels_retried, counts.retried_handed_over), (3, 2));
        world.control("retry-1", Action::Cancel(Cancel {})).await.unwrap();
        while world.store.clear(world.now()).await.unwrap() {}
        let counts = world.progress("op-1").await.unwrap().of(ECC);
        assert_eq!((counts.labels_retried, counts.retried_handed_over), (0, 0));
        assert_eq!((counts.labels.failed, counts.labels.failed_handed_over), (3, 2));
    }
}
