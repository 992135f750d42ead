//! Throttle, in-flight limit, failure budget, approval, the brake, and what an operation says it waits for.

use crate::each_port;

each_port!(
    a_throttle_holds_in_each_queue_and_for_no_other_lane,
    limits_change_at_once_and_end_as_set,
    no_more_are_in_flight_than_allowed,
    limits_of_the_request_hold_from_the_start_and_over_restarts,
    an_operation_over_its_failure_budget_holds_itself,
    after_a_resume_the_budget_is_measured_anew,
    a_second_operator_approves,
    nobody_approves_and_it_expires,
    a_declined_operation_is_cancelled,
    the_brake_stops_operations_and_nothing_else,
    every_cause_of_waiting_is_told,
    what_the_operator_chose_is_part_of_the_request,
    rates_are_measured,
);

mod scenario_impl {
    use cqs::{
        model::{AuditOutcome, Counts, Limits, StopWhen},
        store::{ApprovalAsk, InjectAsk},
    };
    use domain::{ErrorCode, Outcome, ServiceName};
    use proto::{
        cqs::v1::{
            self as wire, Approve, BlockCause, Blocked, Cancel, Decline, OperationState, Pause, Resume, SetLimits,
            control_operation_request::Action,
        },
        timestamp_to_wire,
    };

    use crate::world::*;

    fn limits(throttle_per_s: Option<i32>, max_in_flight: Option<i32>) -> Action {
        Action::SetLimits(SetLimits { throttle_per_s, max_in_flight, until: None })
    }

    fn resume() -> Action {
        Action::Resume(Resume {})
    }

    /// Opens what is asked for and splits its parent into so many links.
    async fn opened(world: &mut World, ask: InjectAsk, labels: usize) {
        world.inject(ask).await.unwrap();
        let parents = world.dequeue(ECC, 10).await.unwrap();
        world.split(into(&parents, links(0..labels))).await.unwrap();
    }

    async fn taken(world: &mut World, queue: &str) -> usize {
        world.dequeue(queue, 100).await.map_or(0, |leased| leased.rows.len())
    }

    fn causes(operation: &wire::Operation) -> Vec<(BlockCause, &str)> {
        operation.blocked_on.iter().map(|blocked| (blocked.cause(), blocked.queue_name.as_str())).collect()
    }

    async fn brake(world: &World, on: bool) -> Result<wire::Brake, domain::Refusal> {
        brake_as(world, on, ("ann@example", "INC-8: stop all")).await
    }

    async fn brake_as(world: &World, on: bool, (by, reason): (&str, &str)) -> Result<wire::Brake, domain::Refusal> {
        let request = wire::SetBrakeRequest { on, operator_subject: by.to_owned(), reason: reason.to_owned() };
        let answer = world.gate().client(ServiceName::OperatorGateway).set_brake(request).await;
        answer.map(tonic::Response::into_inner).map_err(|status| proto::refusal_from_status(&status))
    }

    pub async fn a_throttle_holds_in_each_queue_and_for_no_other_lane(mut world: World) {
        opened(&mut world, refresh("op-1"), 100).await;
        world.control("op-1", limits(Some(40), None)).await.unwrap();
        let leased = world.dequeue(ECC, 100).await.unwrap();
        assert_eq!(leased.rows.len(), 10, "a quarter of a second's worth");
        assert_eq!(taken(&mut world, ECC).await, 0);
        let throttled = world.seen("op-1").await;
        assert_eq!(causes(&throttled), [(BlockCause::Throttled, ECC)]);
        assert_eq!(throttled.blocked_on[0].until, Some(timestamp_to_wire(START.plus_ms(250))));
        // The outputs have a rate of their own; others have none.
        let images = leased.rows.iter().map(|row| {
            let urn = row.item.target.urn().to_string().replace("ecclinks", "ecceslimages");
            let mut image = told(&urn, START);
            image.lane = Some(row.lane);
            image
        });
        world.announce(images.collect()).await.unwrap();
        assert_eq!((taken(&mut world, MERGER).await, taken(&mut world, MERGER).await), (10, 0));
        opened(&mut world, refresh("op-2"), 30).await;
        assert_eq!(taken(&mut world, ECC).await, 30);

        let mut leased_in_two_seconds = 0;
        for _ in 0..200 {
            world.clock.advance_ms(10);
            leased_in_two_seconds += taken(&mut world, ECC).await;
        }
        assert_eq!(leased_in_two_seconds, 80);
        // A slow one goes label by label, and what comes while it is closed waits for its turn.
        world.control("op-1", limits(Some(1), None)).await.unwrap();
        assert_eq!((taken(&mut world, ECC).await, taken(&mut world, ECC).await), (1, 0));
        world.clock.advance_ms(999);
        assert_eq!(taken(&mut world, ECC).await, 0);
        world.clock.advance_ms(1);
        assert_eq!(taken(&mut world, ECC).await, 1);
    }

    pub async fn limits_change_at_once_and_end_as_set(mut world: World) {
        opened(&mut world, refresh("op-1"), 100).await;
        let until = Some(timestamp_to_wire(START.plus_ms(MINUTE)));
        let slow = SetLimits { throttle_per_s: Some(1), max_in_flight: Some(50), until };
        let set = world.control("op-1", Action::SetLimits(slow)).await.unwrap().operation.unwrap();
        let controls = set.controls.unwrap();
        assert_eq!(controls.limits, Some(wire::OperationLimits { throttle_per_s: 1, max_in_flight: 50 }));
        assert_eq!(
            (controls.limited.unwrap().operator_subject, controls.limited_until),
            ("ann@example".to_owned(), until)
        );
        assert_eq!((taken(&mut world, ECC).await, taken(&mut world, ECC).await), (1, 0));
        // Faster: at once, not after the second.
        let faster = SetLimits { throttle_per_s: Some(8), max_in_flight: None, until };
        let faster = world.control("op-1", Action::SetLimits(faster)).await.unwrap().operation.unwrap();
        let limits = wire::OperationLimits { throttle_per_s: 8, max_in_flight: 50 };
        assert_eq!(faster.controls.unwrap().limits, Some(limits), "what is not named stays");
        assert_eq!((taken(&mut world, ECC).await, taken(&mut world, ECC).await), (2, 0));

        world.clock.advance_ms(MINUTE);
        world.upkeep().await;
        assert_eq!(world.seen("op-1").await.controls.unwrap().limits, Some(wire::OperationLimits::default()));
        let mut all = 0;
        for _ in 0..4 {
            all += taken(&mut world, ECC).await;
        }
        assert_eq!(all, 100, "three that lapsed, alone each, and the others at once: nothing is limited");
        let rows = world.audit(Some("op-1")).await;
        assert_eq!(rows[0].action, "limits ended");
        assert!(rows[1].detail.starts_with("1 labels/s, 50 in flight → 8 labels/s"), "{}", rows[1].detail);

        for (field, wrong) in [
            ("set_limits.throttle_per_s", SetLimits { throttle_per_s: Some(-1), ..SetLimits::default() }),
            ("set_limits.max_in_flight", SetLimits { max_in_flight: Some(1_000_001), ..SetLimits::default() }),
            ("set_limits.until", SetLimits { until: Some(timestamp_to_wire(START)), ..SetLimits::default() }),
        ] {
            assert_eq!(world.control("op-1", Action::SetLimits(wrong)).await.unwrap_err().field, field);
        }
    }

    pub async fn no_more_are_in_flight_than_allowed(mut world: World) {
        opened(&mut world, refresh("op-1"), 10).await;
        world.control("op-1", limits(None, Some(3))).await.unwrap();
        let first = world.dequeue(ECC, 2).await.unwrap();
        let second = world.dequeue(ECC, 10).await.unwrap();
        assert_eq!((first.rows.len(), second.rows.len(), taken(&mut world, ECC).await), (2, 1, 0));
        assert_eq!(causes(&world.seen("op-1").await), [(BlockCause::InFlightLimit, ECC)]);
        world.complete(&first.lease, vec![(first.ids()[0], Outcome::Done)]).await.unwrap();
        assert_eq!((taken(&mut world, ECC).await, taken(&mut world, ECC).await), (1, 0));
        world.complete_all(&second, &retry()).await;
        assert_eq!((taken(&mut world, ECC).await, taken(&mut world, ECC).await), (1, 0));
        // Fewer than are leased: none until they are back; then none of the limit.
        world.control("op-1", limits(None, Some(1))).await.unwrap();
        assert_eq!(taken(&mut world, ECC).await, 0);
        world.control("op-1", limits(None, Some(0))).await.unwrap();
        assert_eq!(taken(&mut world, ECC).await, 5, "all but three leased, one done, one backing off");
    }

    pub async fn limits_of_the_request_hold_from_the_start_and_over_restarts(mut world: World) {
        let mut ask = refresh("op-1");
        ask.terms.limits = Limits { throttle_per_s: Some(4), max_in_flight: Some(2) };
        opened(&mut world, ask, 10).await;
        assert_eq!((taken(&mut world, ECC).await, taken(&mut world, ECC).await), (1, 0));
        world.clock.advance_ms(250);
        assert_eq!(taken(&mut world, ECC).await, 1);
        world.clock.advance_ms(250);
        assert_eq!(taken(&mut world, ECC).await, 0, "two are in flight");
        world.restart().await;
        let seen = world.seen("op-1").await;
        let limits = wire::OperationLimits { throttle_per_s: 4, max_in_flight: 2 };
        assert_eq!(seen.controls.unwrap().limits, Some(limits));
        assert_eq!((taken(&mut world, ECC).await, taken(&mut world, ECC).await), (1, 0));
    }

    fn budgeted(tracking_id: &str) -> InjectAsk {
        let mut ask = refresh(tracking_id);
        ask.terms.stop_when = Some(StopWhen { failure_ratio_percent: 20, min_sample: 5 });
        ask
    }

    pub async fn an_operation_over_its_failure_budget_holds_itself(mut world: World) {
        opened(&mut world, budgeted("op-1"), 20).await;
        let leased = world.dequeue(ECC, 10).await.unwrap();
        let ids = leased.ids();
        let fail = |ids: &[i64]| ids.iter().map(|id| (*id, failed("no price"))).collect::<Vec<_>>();
        world.complete(&leased.lease, fail(&ids[..4])).await.unwrap();
        assert_eq!(world.seen("op-1").await.state(), OperationState::Running, "four are no sample");
        world.complete(&leased.lease, fail(&ids[4..5])).await.unwrap();
        let held = world.seen("op-1").await;
        assert_eq!(held.state(), OperationState::Held);
        assert_eq!(causes(&held), [(BlockCause::Held, "")]);
        let held = held.controls.unwrap().held.unwrap();
        assert_eq!((held.operator_subject.as_str(), held.at), ("", Some(timestamp_to_wire(START))));
        assert_eq!(held.reason, format!("{ECC}: 5 of 5 labels failed, over 20 %"));
        assert_eq!(taken(&mut world, ECC).await, 0);
        let row = &world.audit(Some("op-1")).await[0];
        assert_eq!(
            (row.action.as_str(), row.outcome, row.operator_subject.as_str()),
            ("hold", AuditOutcome::Accepted, "")
        );
        // It outlasts a restart, and is no pause.
        world.restart().await;
        world.upkeep().await;
        assert_eq!(world.seen("op-1").await.state(), OperationState::Held);
        assert_eq!(world.seen("op-1").await.controls.unwrap().paused, None);

        // One within its budget is not held.
        opened(&mut world, budgeted("op-2"), 20).await;
        let leased = world.dequeue(ECC, 20).await.unwrap();
        let outcomes = leased.ids().into_iter().enumerate();
        let outcomes = outcomes.map(|(n, id)| (id, if n % 5 == 4 { failed("no price") } else { Outcome::Done }));
        world.complete(&leased.lease, outcomes.collect()).await.unwrap();
        assert_eq!(world.seen("op-2").await.state(), OperationState::FinishedWithFailures);
    }

    pub async fn after_a_resume_the_budget_is_measured_anew(mut world: World) {
        opened(&mut world, budgeted("op-1"), 30).await;
        let leased = world.dequeue(ECC, 5).await.unwrap();
        world.complete_all(&leased, &failed("no price")).await;
        world.control("op-1", Action::Pause(Pause::default())).await.unwrap();
        assert_eq!(world.seen("op-1").await.state(), OperationState::Held, "held counts before paused");
        let resumed = world.control("op-1", resume()).await.unwrap().operation.unwrap();
        assert_eq!(resumed.state(), OperationState::Running);
        let leased = world.dequeue(ECC, 10).await.unwrap();
        let outcomes = leased.ids().into_iter().enumerate();
        let outcomes = outcomes.map(|(n, id)| (id, if n < 2 { failed("no price") } else { Outcome::Done }));
        world.complete(&leased.lease, outcomes.collect()).await.unwrap();
        assert_eq!(world.seen("op-1").await.state(), OperationState::Running, "2 of 10");
        let leased = world.dequeue(ECC, 2).await.unwrap();
        world.complete_all(&leased, &failed("no price")).await;
        let held = world.seen("op-1").await;
        assert_eq!(held.state(), OperationState::Held);
        let cause = held.controls.unwrap().held.unwrap().reason;
        assert_eq!(cause, format!("{ECC}: 4 of 12 labels failed since it was resumed, over 20 %"));
    }

    fn large(world: &World, tracking_id: &str) -> InjectAsk {
        let mut ask = refresh(tracking_id);
        ask.approval = Some(ApprovalAsk { label_count: 5_000_000, expires_at: world.now().plus_ms(60 * MINUTE) });
        ask
    }

    pub async fn a_second_operator_approves(mut world: World) {
        world.inject(large(&world, "op-1")).await.unwrap();
        assert_eq!(taken(&mut world, ECC).await, 0);
        let seen = world.seen("op-1").await;
        assert_eq!(seen.state(), OperationState::AwaitingApproval);
        assert_eq!(causes(&seen), [(BlockCause::AwaitingApproval, "")]);
        assert_eq!(seen.controls.unwrap().approval.unwrap().label_count, 5_000_000);
        assert_eq!(taken(&mut world, ECC).await, 0);

        let approve = || Action::Approve(Approve { break_glass: false });
        let refusal = world.control("op-1", approve()).await.unwrap_err();
        assert_eq!((refusal.code, refusal.field.as_str()), (ErrorCode::PermissionDenied, "operator_subject"));
        for action in [resume(), Action::Pause(Pause::default())] {
            assert_eq!(world.control("op-1", action).await.unwrap_err().code, ErrorCode::FailedPrecondition);
        }
        world.restart().await;
        assert_eq!(taken(&mut world, ECC).await, 0);
        for _ in 0..2 {
            let approved = world.control_as("bob@example", "op-1", approve()).await.unwrap().operation.unwrap();
            assert_eq!(approved.state(), OperationState::Running);
            let approval = approved.controls.unwrap().approval.unwrap();
            assert_eq!(approval.state(), wire::ApprovalState::Approved);
            assert_eq!(approval.decided.unwrap().operator_subject, "bob@example");
        }
        assert_eq!(taken(&mut world, ECC).await, 1);
        let refusal = world.control_as("bob@example", "op-1", Action::Decline(Decline {})).await.unwrap_err();
        assert_eq!(refusal.code, ErrorCode::FailedPrecondition, "it runs");
        // In an emergency whoever asked may, loudly.
        world.inject(large(&world, "op-3")).await.unwrap();
        let alone = world.control("op-3", Action::Approve(Approve { break_glass: true })).await.unwrap();
        assert_eq!(alone.operation.unwrap().state(), OperationState::Running);
        let audit = world.audit(Some("op-3")).await;
        assert_eq!(audit.first().map(|row| row.action.as_str()), Some("break glass"));
        // Nothing to approve.
        world.inject(refresh("op-2")).await.unwrap();
        let refusal = world.control_as("bob@example", "op-2", approve()).await.unwrap_err();
        assert_eq!(refusal.code, ErrorCode::FailedPrecondition);
    }

    pub async fn nobody_approves_and_it_expires(mut world: World) {
        world.inject(large(&world, "op-1")).await.unwrap();
        world.clock.advance_ms(60 * MINUTE - 1);
        world.upkeep().await;
        assert_eq!(world.seen("op-1").await.state(), OperationState::AwaitingApproval);
        world.clock.advance_ms(1);
        world.upkeep().await;
        let expired = world.seen("op-1").await;
        assert_eq!(expired.state(), OperationState::Cancelled);
        let controls = expired.controls.unwrap();
        assert_eq!(controls.approval.unwrap().state(), wire::ApprovalState::Expired);
        assert_eq!(controls.cancelled.unwrap().operator_subject, "");
        let approve = Action::Approve(Approve { break_glass: false });
        assert_eq!(
            world.control_as("bob@example", "op-1", approve).await.unwrap_err().code,
            ErrorCode::FailedPrecondition
        );
        assert_eq!(taken(&mut world, ECC).await, 0);
        let told: Vec<String> = world.audit(Some("op-1")).await.into_iter().map(|row| row.action).collect();
        assert_eq!(told[..3], ["approve", "finish", "approval expired"].map(str::to_owned), "cause before effect");

        let mut late = large(&world, "op-2");
        late.approval = Some(ApprovalAsk { label_count: 1, expires_at: world.now() });
        assert_eq!(world.inject(late).await.unwrap_err().field, "approval.expires_at");
        assert_eq!(world.progress("op-2").await, None);
    }

    pub async fn a_declined_operation_is_cancelled(world: World) {
        world.inject(large(&world, "op-1")).await.unwrap();
        let decline = || Action::Decline(Decline {});
        let declined = world.control_as("bob@example", "op-1", decline()).await.unwrap().operation.unwrap();
        assert_eq!(declined.state(), OperationState::Cancelled);
        assert_eq!(declined.controls.unwrap().cancelled.unwrap().reason, "declined: INC-7: labels flicker");
        let progress = world.progress("op-1").await.unwrap();
        assert_eq!(progress.of(ECC).parents, Counts { enqueued: 1, cancelled: 1, ..Counts::default() });
        world.control_as("bob@example", "op-1", decline()).await.unwrap();
        // Whoever asked may take it back.
        world.inject(large(&world, "op-2")).await.unwrap();
        let receipt = world.control("op-2", Action::Cancel(Cancel {})).await.unwrap().receipt.unwrap();
        assert_eq!((receipt.not_started, receipt.unexpanded_parents), (0, 1));
    }

    pub async fn the_brake_stops_operations_and_nothing_else(mut world: World) {
        opened(&mut world, refresh("op-1"), 3).await;
        // A written design's fan-out is live work.
        world.write(&["t/T/designs/D"], START).await;
        let design = world.dequeue(STUDIO, 1).await.unwrap();
        world.split(into(&design, vec![parent("studiolink.v1 t/T/designs/D")])).await.unwrap();
        let on = brake(&world, true).await.unwrap().on.unwrap();
        assert_eq!((on.operator_subject.as_str(), on.reason.as_str()), ("ann@example", "INC-8: stop all"));
        world.inject(refresh("op-2")).await.unwrap();
        assert_eq!(taken(&mut world, ECC).await, 0, "neither old nor new ones");
        world.write(&["t/T/s/S/ecclinks/E1"], START).await;
        assert_eq!((taken(&mut world, ECC).await, taken(&mut world, STUDIO).await), (1, 1));
        let seen = world.seen("op-1").await;
        assert_eq!((seen.state(), causes(&seen)), (OperationState::Running, vec![(BlockCause::Brake, "")]));

        world.restart().await;
        assert_eq!(brake(&world, true).await.unwrap().on, Some(on.clone()), "twice is once");
        for other in [("bob@example", "INC-8: stop all"), ("ann@example", "INC-9: another")] {
            let refusal = brake_as(&world, true, other).await.unwrap_err();
            assert_eq!(refusal.code, ErrorCode::FailedPrecondition);
            let told = ["ann@example", "since 2", "INC-8: stop all"];
            assert!(told.iter().all(|word| refusal.message.contains(word)), "{refusal:?}");
        }
        let request = wire::GetBrakeRequest {};
        let found = world.gate().client(ServiceName::OperatorGateway).get_brake(request).await.unwrap().into_inner();
        assert_eq!(found.on, Some(on));
        // The live change's row is back from its lease.
        assert_eq!((taken(&mut world, ECC).await, taken(&mut world, ECC).await), (1, 0));
        assert_eq!(brake(&world, false).await.unwrap().on, None);
        assert_eq!(taken(&mut world, ECC).await + taken(&mut world, ECC).await, 4);
        let renderer = world.gate().client(ServiceName::EccImageRender).get_brake(request).await.unwrap_err();
        assert_eq!(proto::refusal_from_status(&renderer).code, ErrorCode::PermissionDenied);
    }

    pub async fn every_cause_of_waiting_is_told(mut world: World) {
        opened(&mut world, refresh("op-1"), 3).await;
        assert_eq!(causes(&world.seen("op-1").await), [], "its worker asks");
        world.clock.advance_ms(16 * SECOND);
        assert_eq!(causes(&world.seen("op-1").await), [(BlockCause::NoWorker, ECC)]);
        let leased = world.dequeue(ECC, 1).await.unwrap();
        assert_eq!(causes(&world.seen("op-1").await), []);
        world.clock.advance_ms(16 * SECOND);
        assert_eq!(causes(&world.seen("op-1").await), [], "it holds a lease and is busy");
        let mut image = told("t/T/s/S/ecceslimages/E0", START);
        image.lane = Some(leased.rows[0].lane);
        world.announce(vec![image]).await.unwrap();
        assert_eq!(causes(&world.seen("op-1").await), [(BlockCause::NoWorker, MERGER)], "nobody ever asked there");
        world.complete_all(&leased, &Outcome::Done).await;

        let leased = world.dequeue(ECC, 2).await.unwrap();
        let due = world.now().plus_ms(MINUTE);
        world.complete_all(&leased, &Outcome::Defer { until: due, cause: "night".to_owned() }).await;
        taken(&mut world, MERGER).await;
        let seen = world.seen("op-1").await;
        assert_eq!(causes(&seen), [(BlockCause::NotDue, ECC)]);
        assert_eq!(seen.blocked_on[0].until, Some(timestamp_to_wire(due)));
        // All at once.
        brake(&world, true).await.unwrap();
        world.control("op-1", Action::Pause(Pause::default())).await.unwrap();
        let seen = world.seen("op-1").await;
        assert_eq!(causes(&seen), [(BlockCause::Brake, ""), (BlockCause::Paused, ""), (BlockCause::NotDue, ECC)]);
        let details: Vec<&str> = seen.blocked_on.iter().map(|Blocked { detail, .. }| detail.as_str()).collect();
        assert!(details[1].contains("ann@example") && details[1].contains("INC-7"), "{details:?}");
        assert_eq!(details[2], "2 rows are deferred or backing off");
        world.control("op-1", Action::Cancel(Cancel {})).await.unwrap();
        assert_eq!(causes(&world.seen("op-1").await), []);
    }

    pub async fn what_the_operator_chose_is_part_of_the_request(world: World) {
        let mut accepted = large(&world, "op-1");
        accepted.terms.limits.throttle_per_s = Some(50);
        accepted.terms.stop_when = Some(StopWhen { failure_ratio_percent: 2, min_sample: 200 });
        "plan-1".clone_into(&mut accepted.terms.plan_id);
        world.inject(accepted.clone()).await.unwrap();
        // Later actions do not change what was asked for; the approval is computed.
        world.control("op-1", limits(Some(10), Some(5))).await.unwrap();
        let mut same = accepted.clone();
        same.approval = None;
        assert!(world.inject(same).await.unwrap().1);
        let changes: [(Change<InjectAsk>, &str); 3] = [
            (|ask| ask.terms.limits.max_in_flight = Some(5), "limits"),
            (|ask| ask.terms.stop_when = None, "stop_when"),
            (|ask| ask.terms.plan_id.clear(), "plan_id"),
        ];
        for (change, field) in changes {
            let mut ask = accepted.clone();
            change(&mut ask);
            let refusal = world.inject(ask).await.unwrap_err();
            assert_eq!((refusal.code, refusal.field.as_str()), (ErrorCode::AlreadyExists, field));
        }
        let seen = world.seen("op-1").await;
        assert_eq!((seen.plan_id.as_str(), seen.stop_when.unwrap().min_sample), ("plan-1", 200));
    }

    pub async fn rates_are_measured(mut world: World) {
        opened(&mut world, refresh("op-1"), 50).await;
        let stage = |seen: wire::Operation| (seen.queues[0].labels_per_s, seen.queues[0].waiting_since);
        assert_eq!(stage(world.seen("op-1").await), (None, Some(timestamp_to_wire(START))));
        world.upkeep().await;
        world.clock.advance_ms(10 * SECOND);
        let leased = world.dequeue(ECC, 40).await.unwrap();
        world.complete_all(&leased, &Outcome::Done).await;
        assert_eq!(stage(world.seen("op-1").await), (Some(4.0), Some(timestamp_to_wire(START))));
        let leased = world.dequeue(ECC, 40).await.unwrap();
        assert_eq!(stage(world.seen("op-1").await).1, None, "nothing waits");
        world.complete_all(&leased, &Outcome::Done).await;
        world.clock.advance_ms(2 * MINUTE);
        assert_eq!(stage(world.seen("op-1").await), (None, None), "long ago");
        // What is over before anybody came to measure has its rate from its beginning on.
        opened(&mut world, refresh("op-2"), 50).await;
        let leased = world.dequeue(ECC, 50).await.unwrap();
        world.clock.advance_ms(5 * SECOND);
        world
            .complete(&leased.lease, leased.ids()[..40].iter().map(|id| (*id, Outcome::Done)).collect())
            .await
            .unwrap();
        world.upkeep().await;
        world.clock.advance_ms(5 * SECOND);
        assert_eq!(stage(world.seen("op-2").await).0, Some(4.0));
    }
}
