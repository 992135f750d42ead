//! Pause, resume, cancel.

use crate::each_port;

each_port!(
    a_paused_operation_is_not_leased_and_live_work_is,
    what_is_leased_finishes_and_its_outputs_wait,
    a_pause_survives_a_restart_and_ends_as_set,
    a_pause_is_idempotent,
    cancelling_counts_at_once_and_clears_later,
    what_arrives_in_a_cancelled_lane_is_cancelled,
    a_cancelled_record_is_announced_again_by_an_unchanged_write,
    a_cancelled_operation_stays_so_and_a_finished_one_is_not_cancelled,
    every_action_is_audited_refusals_too,
    the_revision_grows_with_every_change,
);

mod scenario_impl {
    use cqs::model::{AuditOutcome, Counts};
    use domain::{ErrorCode, Outcome};
    use proto::cqs::v1::{
        BlockCause, Cancel, ControlAction, OperationState, Pause, Resume, control_operation_request::Action,
    };
    use proto::timestamp_to_wire;

    use crate::world::*;

    fn pause() -> Action {
        Action::Pause(Pause { until: None })
    }

    fn resume() -> Action {
        Action::Resume(Resume {})
    }

    fn cancel() -> Action {
        Action::Cancel(Cancel {})
    }

    /// An operation whose parent was split into so many links, none of them leased.
    async fn opened(world: &mut World, tracking_id: &str, labels: usize) {
        world.inject(refresh(tracking_id)).await.unwrap();
        let parents = world.dequeue(ECC, 10).await.unwrap();
        world.split(into(&parents, links(0..labels))).await.unwrap();
    }

    pub async fn a_paused_operation_is_not_leased_and_live_work_is(mut world: World) {
        opened(&mut world, "op-1", 3).await;
        let paused = world.control("op-1", pause()).await.unwrap().operation.unwrap();
        assert_eq!(paused.state(), OperationState::Paused);
        assert_eq!(
            paused.blocked_on.iter().map(proto::cqs::v1::Blocked::cause).collect::<Vec<_>>(),
            [BlockCause::Paused]
        );
        assert!(world.dequeue(ECC, 10).await.is_none());
        // The same label's live change, and another operation.
        world.write(&["t/T/s/S/ecclinks/E1"], START).await;
        assert_eq!(world.dequeue(ECC, 10).await.unwrap().urns(), ["t/T/s/S/ecclinks/E1"]);
        opened(&mut world, "op-2", 1).await;
        assert_eq!(world.dequeue(ECC, 10).await.unwrap().rows[0].tracking_id.as_ref().unwrap().as_str(), "op-2");
        assert!(world.dequeue(ECC, 10).await.is_none());

        let resumed = world.control("op-1", resume()).await.unwrap().operation.unwrap();
        assert_eq!(resumed.state(), OperationState::Running);
        assert_eq!(world.dequeue(ECC, 10).await.unwrap().rows.len(), 3);
    }

    pub async fn what_is_leased_finishes_and_its_outputs_wait(mut world: World) {
        opened(&mut world, "op-1", 3).await;
        let leased = world.dequeue(ECC, 2).await.unwrap();
        world.control("op-1", pause()).await.unwrap();
        let mut image = told("t/T/s/S/ecceslimages/E0", START);
        image.lane = Some(leased.rows[0].lane);
        world.announce(vec![image]).await.unwrap();
        world
            .complete(&leased.lease, vec![(leased.ids()[0], Outcome::Done), (leased.ids()[1], retry())])
            .await
            .unwrap();
        world.clock.advance_ms(10 * MINUTE);
        assert!(world.dequeue(MERGER, 10).await.is_none(), "the output waits with its operation");
        assert!(world.dequeue(ECC, 10).await.is_none(), "so does what came back");
        let progress = world.progress("op-1").await.unwrap();
        progress.assert_balanced();
        assert_eq!(progress.of(ECC).labels, Counts { enqueued: 3, done: 1, waiting: 2, ..Counts::default() });
        world.control("op-1", resume()).await.unwrap();
        assert_eq!(world.dequeue(MERGER, 10).await.unwrap().rows.len(), 1);
        assert_eq!(world.dequeue(ECC, 10).await.unwrap().rows.len(), 2);
    }

    pub async fn a_pause_survives_a_restart_and_ends_as_set(mut world: World) {
        opened(&mut world, "op-1", 3).await;
        let until = world.now().plus_ms(10 * MINUTE);
        world.control("op-1", Action::Pause(Pause { until: Some(timestamp_to_wire(until)) })).await.unwrap();
        world.restart().await;
        world.upkeep().await;
        let seen = world.seen("op-1").await;
        assert_eq!(seen.state(), OperationState::Paused);
        assert_eq!(seen.controls.unwrap().paused_until, Some(timestamp_to_wire(until)));
        assert_eq!(seen.blocked_on[0].until, Some(timestamp_to_wire(until)));
        assert!(world.dequeue(ECC, 10).await.is_none());
        world.clock.advance_ms(10 * MINUTE);
        world.upkeep().await;
        assert_eq!(world.seen("op-1").await.state(), OperationState::Running);
        assert_eq!(world.dequeue(ECC, 10).await.unwrap().rows.len(), 3);
        let audit = world.audit(Some("op-1")).await;
        assert_eq!((audit[0].action.as_str(), audit[0].operator_subject.as_str()), ("pause ended", ""));

        for ahead_ms in [-SECOND, 0, 31 * 24 * 60 * MINUTE] {
            let until = Some(timestamp_to_wire(world.now().plus_ms(ahead_ms)));
            let refusal = world.control("op-1", Action::Pause(Pause { until })).await.unwrap_err();
            assert_eq!((refusal.code, refusal.field.as_str()), (ErrorCode::InvalidArgument, "pause.until"));
        }
    }

    pub async fn a_pause_is_idempotent(mut world: World) {
        opened(&mut world, "op-1", 3).await;
        let first = world.control("op-1", pause()).await.unwrap().operation.unwrap();
        world.clock.advance_ms(SECOND);
        let second = world.control("op-1", pause()).await.unwrap().operation.unwrap();
        assert_eq!((second.revision, &second.controls), (first.revision, &first.controls));
        for _ in 0..2 {
            let resumed = world.control("op-1", resume()).await.unwrap().operation.unwrap();
            assert_eq!(resumed.state(), OperationState::Running);
        }
        let outcomes: Vec<_> = world.audit(Some("op-1")).await.iter().map(|row| row.outcome).collect();
        let (done, again) = (AuditOutcome::Accepted, AuditOutcome::Replayed);
        assert_eq!(outcomes, [again, done, again, done, done]);
    }

    pub async fn cancelling_counts_at_once_and_clears_later(mut world: World) {
        opened(&mut world, "op-1", 600).await;
        let leased = world.dequeue(ECC, 10).await.unwrap();
        world
            .complete(&leased.lease, vec![(leased.ids()[0], retry()), (leased.ids()[1], Outcome::Done)])
            .await
            .unwrap();
        let answer = world.control("op-1", cancel()).await.unwrap();
        let (operation, receipt) = (answer.operation.unwrap(), answer.receipt.unwrap());
        assert_eq!(operation.state(), OperationState::Cancelling);
        assert_eq!((receipt.not_started, receipt.in_flight, receipt.unexpanded_parents), (591, 8, 0));
        assert_eq!(receipt.quiet_by, Some(timestamp_to_wire(START.plus_ms(LEASE_MS))));
        let progress = world.progress("op-1").await.unwrap();
        let expected = Counts { enqueued: 600, done: 1, cancelled: 591, leased: 8, ..Counts::default() };
        assert_eq!(progress.of(ECC).labels, expected);
        assert_eq!(progress.finished_at, None);
        assert!(world.dequeue(ECC, 10).await.is_none());

        let rest = leased.ids()[2..].iter().map(|id| (*id, Outcome::Done)).collect();
        world.complete(&leased.lease, rest).await.unwrap();
        let progress = world.progress("op-1").await.unwrap();
        assert_eq!(progress.of(ECC).labels, Counts { done: 9, leased: 0, ..expected });
        assert_eq!(progress.finished_at, Some(START), "over, although its rows are not removed yet");
        assert_eq!(world.seen("op-1").await.state(), OperationState::Cancelled);

        let left = |backlogs: Vec<cqs::model::Backlog>| backlogs.iter().map(|queue| queue.waiting).sum::<i64>();
        assert_eq!(left(world.store.backlogs().await.unwrap()), 591);
        world.restart().await;
        let mut chunks = 0;
        while world.store.clear(world.now()).await.unwrap() {
            chunks += 1;
            assert_eq!(world.progress("op-1").await.unwrap(), progress, "clearing counts nothing");
        }
        assert!(chunks > 2, "in bounded chunks");
        assert_eq!(left(world.store.backlogs().await.unwrap()), 0, "delayed rows, too");
    }

    pub async fn what_arrives_in_a_cancelled_lane_is_cancelled(mut world: World) {
        world.inject(refresh("op-1")).await.unwrap();
        let parents = world.dequeue(ECC, 10).await.unwrap();
        let receipt = world.control("op-1", cancel()).await.unwrap().receipt.unwrap();
        assert_eq!((receipt.not_started, receipt.unexpanded_parents), (0, 1));
        // The parent's split goes on and comes back: both its children and itself are cancelled.
        let mut ask = into(&parents, links(0..5));
        "E5".clone_into(&mut ask.next_cursor);
        assert_eq!(world.split(ask).await, Ok((0, 0, false)));
        let progress = world.progress("op-1").await.unwrap();
        assert_eq!(progress.of(ECC).labels, Counts { enqueued: 5, cancelled: 5, ..Counts::default() });
        assert_eq!(progress.of(ECC).parents, Counts { enqueued: 1, cancelled: 1, ..Counts::default() });
        assert_eq!(progress.finished_at, Some(START));
        let seen = world.seen("op-1").await;
        assert!(!seen.expansion_complete, "what lies under the parent nobody counted");
        assert!(world.dequeue(ECC, 10).await.is_none());

        // An output of a leased label, and a lapsed lease.
        opened(&mut world, "op-2", 2).await;
        let leased = world.dequeue(ECC, 1).await.unwrap();
        world.control("op-2", cancel()).await.unwrap();
        let mut image = told("t/T/s/S/ecceslimages/E0", START);
        image.lane = Some(leased.rows[0].lane);
        world.announce(vec![image]).await.unwrap();
        world.clock.advance_ms(LEASE_MS);
        assert!(world.dequeue(ECC, 10).await.is_none());
        assert!(world.dequeue(MERGER, 10).await.is_none());
        let progress = world.progress("op-2").await.unwrap();
        assert_eq!(progress.of(ECC).labels, Counts { enqueued: 2, cancelled: 2, ..Counts::default() });
        assert_eq!(progress.of(MERGER).labels, Counts { enqueued: 1, cancelled: 1, ..Counts::default() });
        assert_eq!(world.seen("op-2").await.state(), OperationState::Cancelled);
    }

    pub async fn a_cancelled_record_is_announced_again_by_an_unchanged_write(mut world: World) {
        opened(&mut world, "op-1", 2).await;
        world.control("op-1", cancel()).await.unwrap();
        let mut quiet = told("t/T/s/S/ecclinks/E1", START);
        quiet.announce = cqs::announce::Announce::OnlyIfUndelivered;
        for cleared in [false, true] {
            if cleared {
                world.upkeep().await;
            }
            world.announce(vec![quiet.clone()]).await.unwrap();
            let leased = world.dequeue(ECC, 10).await.unwrap();
            assert_eq!(leased.urns(), ["t/T/s/S/ecclinks/E1"]);
            world.complete_all(&leased, &Outcome::Done).await;
        }
        world.announce(vec![quiet]).await.unwrap();
        assert!(world.dequeue(ECC, 10).await.is_none(), "it was delivered");
    }

    pub async fn a_cancelled_operation_stays_so_and_a_finished_one_is_not_cancelled(mut world: World) {
        opened(&mut world, "op-1", 3).await;
        let first = world.control("op-1", cancel()).await.unwrap();
        world.restart().await;
        world.upkeep().await;
        let again = world.control("op-1", cancel()).await.unwrap();
        assert_eq!(again.receipt, first.receipt);
        for action in [pause(), resume()] {
            let refusal = world.control("op-1", action).await.unwrap_err();
            assert_eq!((refusal.code, refusal.field.as_str()), (ErrorCode::FailedPrecondition, "action"));
            assert!(refusal.message.contains("CANCELLED"), "{refusal}");
        }
        assert!(world.inject(refresh("op-1")).await.unwrap().1, "the same request is a replay still");

        opened(&mut world, "op-2", 1).await;
        let leased = world.dequeue(ECC, 10).await.unwrap();
        world.complete_all(&leased, &Outcome::Done).await;
        let refusal = world.control("op-2", cancel()).await.unwrap_err();
        assert_eq!(refusal.code, ErrorCode::FailedPrecondition);
        assert!(refusal.message.contains("SUCCEEDED"), "{refusal}");
        assert_eq!(world.seen("op-2").await.allowed, Vec::<i32>::new());
        assert_eq!(world.control("op-3", cancel()).await.unwrap_err().code, ErrorCode::NotFound);
    }

    pub async fn every_action_is_audited_refusals_too(mut world: World) {
        opened(&mut world, "op-1", 3).await;
        world.control("op-1", pause()).await.unwrap();
        world.control("op-1", cancel()).await.unwrap();
        world.control("op-1", resume()).await.unwrap_err();
        let rows = world.audit(Some("op-1")).await;
        let told: Vec<_> = rows.iter().map(|row| (row.action.as_str(), row.outcome)).collect();
        let expected = [
            ("resume", AuditOutcome::Refused),
            ("finish", AuditOutcome::Accepted),
            ("cancel", AuditOutcome::Accepted),
            ("pause", AuditOutcome::Accepted),
            ("SelfEnqueue", AuditOutcome::Accepted),
        ];
        assert_eq!(told, expected);
        let finish = &rows[1];
        assert_eq!((finish.operator_subject.as_str(), finish.detail.as_str()), ("", "by the system: it is CANCELLED"));
        for row in [&rows[0], &rows[2], &rows[3]] {
            assert_eq!((row.operator_subject.as_str(), row.reason.as_str()), ("ann@example", "INC-7: labels flicker"));
            assert_eq!(row.request_digest.len(), 64);
        }
        assert_eq!(rows[0].error_code, "FAILED_PRECONDITION");
    }

    pub async fn the_revision_grows_with_every_change(mut world: World) {
        opened(&mut world, "op-1", 2).await;
        let mut last = world.seen("op-1").await.revision;
        let mut grew = async |world: &World| {
            let now = world.seen("op-1").await.revision;
            let grew = now > last;
            last = now;
            grew
        };
        assert!(!grew(&world).await);
        let leased = world.dequeue(ECC, 1).await.unwrap();
        assert!(grew(&world).await);
        world.complete_all(&leased, &retry()).await;
        assert!(grew(&world).await);
        world.upkeep().await;
        assert!(!grew(&world).await, "folding changes nothing");
        let paused = world.control("op-1", pause()).await.unwrap().operation.unwrap();
        assert_eq!(
            paused.allowed().collect::<Vec<_>>(),
            [ControlAction::Pause, ControlAction::Resume, ControlAction::Cancel, ControlAction::SetLimits]
        );
        assert!(grew(&world).await);
    }
}
