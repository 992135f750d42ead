//! Failures are retried under an operation of their own.

use crate::each_port;

each_port!(
    a_retry_handles_exactly_what_failed_in_every_queue,
    a_retry_of_one_cause_leaves_the_others,
    a_failure_is_retried_once,
    the_same_retry_is_replayed_and_another_one_refused,
    a_retry_of_many_comes_in_rounds_and_is_not_finished_before,
    a_retry_of_a_parent_goes_on_at_its_cursor,
    what_a_cancelled_retry_did_not_come_to_is_open_again,
    an_operation_is_counted_with_its_retries_wherever_it_is_read,
);

mod scenario_impl {
    use cqs::model::{AuditOutcome, Counts, OperationReport, State};
    use cqs::store::SplitAsk;
    use domain::{ErrorCode, Outcome};
    use proto::cqs::v1::{Cancel, control_operation_request::Action};

    use crate::{
        failures_world::{Wanted, retry_of},
        world::*,
    };

    const OF: Wanted = Wanted { of: "op-1", queue: "", cause: "" };

    /// Operation op-1 over `labels`, of which every one fails: even ones without price, odd ones without item.
    async fn all_failed(world: &mut World, labels: usize) {
        world.inject(refresh("op-1")).await.unwrap();
        let parents = world.dequeue(ECC, 10).await.unwrap();
        world.split(into(&parents, links(0..labels))).await.unwrap();
        while let Some(leased) = world.dequeue(ECC, 2_000).await {
            let outcome = |row: &domain::Notification| {
                let urn = row.item.target.urn().to_string();
                let even = urn.ends_with(['0', '2', '4', '6', '8']);
                (row.id, failed(if even { "no price" } else { "no item" }))
            };
            world.complete(&leased.lease, leased.rows.iter().map(outcome).collect()).await.unwrap();
        }
        let progress = world.progress("op-1").await.unwrap();
        assert_eq!(progress.of(ECC).labels.failed, i64::try_from(labels).unwrap());
    }

    pub async fn a_retry_handles_exactly_what_failed_in_every_queue(mut world: World) {
        world.inject(refresh("op-1")).await.unwrap();
        let parents = world.dequeue(ECC, 10).await.unwrap();
        let lane = world.lease_check(&parents.lease).await.unwrap().lane;
        world.split(into(&parents, links(0..3))).await.unwrap();
        let leased = world.dequeue(ECC, 10).await.unwrap();
        let mut image = told("t/T/s/A/eslimages/E2", START);
        image.lane = Some(lane);
        world.announce(vec![image]).await.unwrap();
        let ids = leased.ids();
        let outcomes = vec![(ids[0], failed("no price")), (ids[1], Outcome::Done), (ids[2], Outcome::Done)];
        world.complete(&leased.lease, outcomes).await.unwrap();
        let sending = world.dequeue(EXPORTER, 10).await.unwrap();
        world.complete_all(&sending, &failed("no access point")).await;
        let before = world.progress("op-1").await.unwrap();
        world.clock.advance_ms(MINUTE);

        assert_eq!(world.retry(retry_of(OF, "retry-1")).await, Ok((2, false)));
        let parent = world.progress("op-1").await.unwrap();
        parent.assert_balanced();
        assert_eq!(parent.of(ECC).labels, before.of(ECC).labels, "they did fail there, and stay counted so");
        assert_eq!((parent.of(ECC).labels_retried, parent.of(EXPORTER).labels_retried), (1, 1));
        assert!(parent.failures.iter().all(|group| group.retried == group.count));
        assert_eq!(parent.finished_at, before.finished_at);
        let child = world.progress("retry-1").await.unwrap();
        child.assert_balanced();
        for queue in [ECC, EXPORTER] {
            assert_eq!(child.of(queue).labels, Counts { enqueued: 1, waiting: 1, ..Counts::default() });
        }
        assert_eq!((child.items_enqueued, child.finished_at), (2, None));
        let taken = world.failures(OF, 10).await;
        assert!(taken.iter().all(|failure| failure.retried_by.as_ref().unwrap().as_str() == "retry-1"));
        assert!(
            world
                .fates(&["t/T/s/S/ecclinks/E0"])
                .await
                .iter()
                .all(|fate| { fate.tracking_id.as_ref().unwrap().as_str() == "retry-1" })
        );

        for (queue, urn) in [(ECC, "t/T/s/S/ecclinks/E0"), (EXPORTER, "t/T/s/A/eslimages/E2")] {
            let again = world.dequeue(queue, 10).await.unwrap();
            assert_eq!(again.urns(), [urn]);
            assert_eq!((again.rows[0].attempts, again.rows[0].tracking_id.as_ref().unwrap().as_str()), (0, "retry-1"));
            world.complete_all(&again, &Outcome::Done).await;
        }
        let child = world.progress("retry-1").await.unwrap();
        assert!(child.finished_at.is_some() && child.failures.is_empty());
        assert!(world.fates(&["t/T/s/S/ecclinks/E0"]).await.is_empty());
        let mut audit = world.audit(Some("retry-1")).await;
        assert_eq!(audit.remove(0).action, "finish", "that it is over is written down, too");
        assert_eq!(
            (audit.len(), audit[0].outcome, audit[0].action.as_str()),
            (1, AuditOutcome::Accepted, "RetryFailures")
        );
        assert_eq!(
            (audit[0].reason.as_str(), audit[0].operator_subject.as_str()),
            ("prices are there now", "ann@example")
        );
    }

    pub async fn a_retry_of_one_cause_leaves_the_others(mut world: World) {
        all_failed(&mut world, 6).await;
        let of_cause = Wanted { cause: "no item", ..OF };
        assert_eq!(world.retry(retry_of(of_cause, "retry-1")).await, Ok((3, false)));
        let urns = world.dequeue(ECC, 10).await.unwrap().urns();
        assert_eq!(urns, [1, 3, 5].map(|n| format!("t/T/s/S/ecclinks/E{n}")));
        let left = world.failures(Wanted { cause: "no price", ..OF }, 10).await;
        assert!(left.len() == 3 && left.iter().all(|failure| failure.retried_by.is_none()));
        assert_eq!(world.progress("op-1").await.unwrap().of(ECC).labels_retried, 3);
        // What is left goes with a retry of everything.
        assert_eq!(world.retry(retry_of(OF, "retry-2")).await, Ok((3, false)));
        assert_eq!(world.progress("op-1").await.unwrap().of(ECC).labels_retried, 6);
    }

    pub async fn a_failure_is_retried_once(mut world: World) {
        all_failed(&mut world, 4).await;
        world.retry(retry_of(OF, "retry-1")).await.unwrap();
        let again = world.retry(retry_of(OF, "retry-2")).await.unwrap_err();
        assert_eq!((again.code, again.field.as_str()), (ErrorCode::FailedPrecondition, "tracking_id"));
        assert!(!again.message.contains("retry-1"), "nothing failed there yet: {again:?}");
        assert!(world.progress("retry-2").await.is_none(), "nothing was opened");
        // What failed again is the retry's own, and is retried from there.
        let leased = world.dequeue(ECC, 10).await.unwrap();
        world.complete_all(&leased, &failed("still no price")).await;
        let of_retry = Wanted { of: "retry-1", ..Wanted::default() };
        assert_eq!(world.failures(of_retry, 10).await.len(), 4);
        let of_first = world.retry(retry_of(OF, "retry-2")).await.unwrap_err();
        assert_eq!(of_first.code, ErrorCode::FailedPrecondition);
        assert!(of_first.message.ends_with("of retry retry-1: retry that one"), "{of_first:?}");
        assert_eq!(world.retry(retry_of(of_retry, "retry-2")).await, Ok((4, false)));
        let leased = world.dequeue(ECC, 10).await.unwrap();
        world.complete_all(&leased, &Outcome::Done).await;
        for (operation, failed, retried) in [("op-1", 4, 4), ("retry-1", 4, 4), ("retry-2", 0, 0)] {
            let progress = world.progress(operation).await.unwrap();
            progress.assert_balanced();
            assert!(progress.finished_at.is_some());
            let counts = progress.of(ECC);
            assert_eq!((counts.labels.failed, counts.labels_retried), (failed, retried), "{operation}");
        }
    }

    pub async fn the_same_retry_is_replayed_and_another_one_refused(mut world: World) {
        all_failed(&mut world, 4).await;
        let of_cause = Wanted { cause: "no price", ..OF };
        assert_eq!(world.retry(retry_of(of_cause, "retry-1")).await, Ok((2, false)));
        assert_eq!(world.retry(retry_of(of_cause, "retry-1")).await, Ok((2, true)));
        assert_eq!(world.dequeue(ECC, 10).await.unwrap().rows.len(), 2, "moved once");
        let mut other_reason = retry_of(of_cause, "retry-1");
        other_reason.reason = "another".parse().unwrap();
        for (ask, field) in [
            (other_reason, "reason"),
            (retry_of(OF, "retry-1"), "cause"),
            (retry_of(Wanted { queue: ECC, ..of_cause }, "retry-1"), "queue_name"),
            (retry_of(OF, "op-1"), "tracking_id"),
        ] {
            let refusal = world.retry(ask).await.unwrap_err();
            assert_eq!((refusal.code, refusal.field.as_str()), (ErrorCode::AlreadyExists, field));
        }
        let unknown = world.retry(retry_of(Wanted { of: "op-9", ..OF }, "retry-2")).await.unwrap_err();
        assert_eq!(unknown.code, ErrorCode::NotFound);
        let no_queue = world.retry(retry_of(Wanted { queue: "nobody", ..OF }, "retry-2")).await.unwrap_err();
        assert_eq!((no_queue.code, no_queue.field.as_str()), (ErrorCode::InvalidArgument, "queue_name"));
        let outcomes: Vec<_> = world.audit(Some("retry-1")).await.iter().map(|row| row.outcome).collect();
        assert_eq!(outcomes.iter().filter(|outcome| **outcome == AuditOutcome::Accepted).count(), 1);
        assert!(outcomes.contains(&AuditOutcome::Replayed));
    }

    pub async fn a_retry_of_many_comes_in_rounds_and_is_not_finished_before(mut world: World) {
        // More than one unit of work moves.
        let labels = 2_100;
        all_failed(&mut world, labels).await;
        assert_eq!(world.retry(retry_of(OF, "retry-1")).await, Ok((2_100, false)));
        let some = world.progress("retry-1").await.unwrap().of(ECC).labels;
        assert!(some.enqueued > 0 && some.enqueued < 2_100, "{some:?}");
        // Other failures of the same operation cannot be taken over meanwhile.
        let meanwhile = world.retry(retry_of(OF, "retry-2")).await.unwrap_err();
        assert_eq!(meanwhile.code, ErrorCode::FailedPrecondition);
        while let Some(leased) = world.dequeue(ECC, 2_000).await {
            world.complete_all(&leased, &Outcome::Unchanged).await;
        }
        let half = world.progress("retry-1").await.unwrap();
        assert_eq!((half.of(ECC).labels.open(), half.finished_at), (0, None), "the rest is still to come");
        world.restart().await;
        world.fill().await;
        while let Some(leased) = world.dequeue(ECC, 2_000).await {
            world.progress("retry-1").await.unwrap().assert_balanced();
            world.complete_all(&leased, &Outcome::Unchanged).await;
        }
        let whole = world.progress("retry-1").await.unwrap();
        assert_eq!(
            whole.of(ECC).labels,
            Counts { enqueued: 2_100, done: 2_100, unchanged: 2_100, ..Counts::default() }
        );
        assert!(whole.finished_at.is_some());
        assert_eq!(world.progress("op-1").await.unwrap().of(ECC).labels_retried, 2_100);
    }

    pub async fn a_retry_of_a_parent_goes_on_at_its_cursor(mut world: World) {
        world.inject(refresh("op-1")).await.unwrap();
        let parents = world.dequeue(ECC, 10).await.unwrap();
        let half = SplitAsk { next_cursor: "E2".to_owned(), ..into(&parents, links(0..2)) };
        world.split(half).await.unwrap();
        let mut leased = world.dequeue(ECC, 10).await.unwrap();
        while leased.rows[0].cursor.is_empty() {
            world.complete_all(&leased, &Outcome::Done).await;
            leased = world.dequeue(ECC, 10).await.unwrap();
        }
        world.complete_all(&leased, &failed("no index")).await;
        let failures = world.failures(OF, 10).await;
        assert!(failures.iter().any(|failure| failure.is_parent), "{failures:?}");
        world.retry(retry_of(OF, "retry-1")).await.unwrap();
        let progress = world.progress("op-1").await.unwrap();
        assert_eq!((progress.of(ECC).parents.failed, progress.of(ECC).parents_retried), (1, 1));
        let again = world.dequeue(ECC, 10).await.unwrap();
        assert_eq!(again.rows[0].cursor, "E2");
        world.split(into(&again, links(2..4))).await.unwrap();
        assert_eq!(world.progress("retry-1").await.unwrap().of(ECC).labels.waiting, 2);
    }

    /// Operations and where all stand together, labels enqueued, done and failed in the end, of a report.
    fn family(report: &OperationReport) -> Option<(usize, State, [i64; 3])> {
        let family = report.family.as_ref()?;
        let labels = family.queues[0].labels;
        assert!(family.complete && family.expansion_complete, "{family:?}");
        Some((family.operations, family.state, [labels.enqueued, labels.done, labels.failed]))
    }

    /// The same of each operation of a page by name.
    async fn families(world: &World) -> Vec<(String, Option<(usize, State, [i64; 3])>)> {
        let page = world.store.operations(vec!["T".parse().unwrap()], (i64::MAX, 10), world.now()).await.unwrap();
        let mut all = Vec::new();
        for report in &page {
            let id = report.operation.tracking_id.clone();
            let alone = world.store.operation("T".parse().unwrap(), id.clone(), world.now()).await.unwrap();
            assert_eq!(alone.unwrap().family, report.family, "read alone it is the same");
            all.push((id.to_string(), family(report)));
        }
        all.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        all
    }

    pub async fn an_operation_is_counted_with_its_retries_wherever_it_is_read(mut world: World) {
        all_failed(&mut world, 6).await;
        world.inject(refresh("op-2")).await.unwrap();
        let parent = world.dequeue(ECC, 1).await.unwrap();
        world.split(into(&parent, links(6..7))).await.unwrap();
        let alone = world.dequeue(ECC, 10).await.unwrap();
        world.complete_all(&alone, &Outcome::Done).await;
        for (retry, cause) in [("retry-1", "no price"), ("retry-2", "no item")] {
            world.retry(retry_of(Wanted { cause, ..OF }, retry)).await.unwrap();
        }
        // Three are handled, two fail again and are taken over once more.
        let first = world.dequeue(ECC, 10).await.unwrap();
        world.complete_all(&first, &Outcome::Done).await;
        let second = world.dequeue(ECC, 10).await.unwrap();
        let ids = second.ids();
        let outcomes = vec![(ids[0], Outcome::Done), (ids[1], failed("no item")), (ids[2], failed("no item"))];
        world.complete(&second.lease, outcomes).await.unwrap();
        world.retry(retry_of(Wanted { of: "retry-2", ..Wanted::default() }, "retry-3")).await.unwrap();
        let of = |name: &str, family| (name.to_owned(), family);
        let running = |operations, counts| Some((operations, State::Running, counts));
        let expected = [
            of("op-1", running(4, [6, 4, 0])),
            of("op-2", None),
            of("retry-1", None),
            of("retry-2", running(2, [3, 1, 0])),
            of("retry-3", None),
        ];
        assert_eq!(families(&world).await, expected);
        let third = world.dequeue(ECC, 10).await.unwrap();
        world.complete(&third.lease, vec![(third.ids()[0], Outcome::Done)]).await.unwrap();
        world.complete(&third.lease, vec![(third.ids()[1], failed("no item"))]).await.unwrap();
        let over = |operations, counts| Some((operations, State::FinishedWithFailures, counts));
        let found = families(&world).await;
        assert_eq!((&found[0].1, &found[3].1), (&over(4, [6, 5, 1]), &over(2, [3, 2, 1])));
    }

    pub async fn what_a_cancelled_retry_did_not_come_to_is_open_again(mut world: World) {
        all_failed(&mut world, 2_100).await;
        world.retry(retry_of(OF, "retry-1")).await.unwrap();
        let leased = world.dequeue(ECC, 10).await.unwrap();
        let ids = leased.ids();
        let (done, back) = ids.split_at(5);
        world.complete(&leased.lease, done.iter().map(|id| (*id, Outcome::Done)).collect()).await.unwrap();
        world.control("retry-1", Action::Cancel(Cancel {})).await.unwrap();
        let child = world.progress("retry-1").await.unwrap();
        let moved = child.of(ECC).labels.enqueued;
        assert!((11..2_100).contains(&moved), "it was still being filled: {moved}");
        // What comes back from a lease was not done either; what waited is given back as it is cleared.
        world.complete(&leased.lease, back.iter().map(|id| (*id, retry())).collect()).await.unwrap();
        while world.store.clear(world.now()).await.unwrap() {}
        world.fill().await;

        let child = world.progress("retry-1").await.unwrap();
        child.assert_balanced();
        assert_eq!(
            child.of(ECC).labels,
            Counts { enqueued: moved, done: 5, cancelled: moved - 5, ..Counts::default() },
            "nothing more was moved"
        );
        assert!(child.finished_at.is_some());
        let parent = world.progress("op-1").await.unwrap();
        parent.assert_balanced();
        assert_eq!((parent.of(ECC).labels.failed, parent.of(ECC).labels_retried), (2_100, 5));
        assert_eq!(parent.failures.iter().map(|group| group.retried).sum::<i64>(), 5);
        let taken = world.failures(OF, 500).await.into_iter().filter(|failure| failure.retried_by.is_some());
        assert_eq!(taken.count(), 5);
        // Each label is one of the two together, whether it was given back or not.
        let page = world.store.operations(vec!["T".parse().unwrap()], (i64::MAX, 10), world.now()).await.unwrap();
        let whole = page.last().unwrap().family.clone().unwrap().queues.swap_remove(0);
        let expected = Counts { enqueued: 2_100, done: 5, failed: 2_095, ..Counts::default() };
        assert_eq!((whole.labels, whole.parents), (expected, parent.of(ECC).parents));
        assert_eq!(world.retry(retry_of(OF, "retry-2")).await, Ok((2_095, false)), "another retry takes them over");
    }
}
