//! How the platform stands: what the queues hold, and what stops operations.

use crate::each_port;

each_port!(
    each_notification_counts_once_under_what_put_it_there,
    what_is_stopped_counts_and_is_not_late,
    what_failed_counts_until_a_retry_takes_it_over,
    only_the_gateway_may_look,
);

mod scenario_impl {
    use domain::{ErrorCode, Outcome, ServiceName};
    use proto::cqs::v1::{
        self as wire, Cancel, OperationTally, Overview, Pause, QueueLoad, QueueOverview, RetryFailuresRequest,
        control_operation_request::Action,
    };
    use proto::{refusal_from_status, timestamp_to_wire};

    use crate::world::*;

    async fn overview(world: &World) -> Overview {
        let client = world.gate().client(ServiceName::OperatorGateway);
        client.clone().get_overview(wire::GetOverviewRequest {}).await.unwrap().into_inner()
    }

    fn of(overview: &Overview, queue: &str) -> QueueOverview {
        overview.queues.iter().find(|found| found.queue_name == queue).unwrap().clone()
    }

    /// Ready, delayed and leased.
    fn counts(load: Option<QueueLoad>) -> (i64, i64, i64) {
        let load = load.unwrap();
        (load.ready, load.delayed, load.leased)
    }

    /// Waiting and leased.
    async fn backlog(world: &World, queue: &str) -> (i64, i64) {
        let all = world.store.backlogs().await.unwrap();
        let of_queue = all.iter().find(|backlog| backlog.queue.as_str() == queue).unwrap();
        (of_queue.waiting, of_queue.leased)
    }

    /// An operation whose parent was split into so many links, none of them leased.
    async fn opened(world: &mut World, tracking_id: &str, labels: usize) {
        world.inject(refresh(tracking_id)).await.unwrap();
        let parents = world.dequeue(ECC, 10).await.unwrap();
        world.split(into(&parents, links(0..labels))).await.unwrap();
    }

    async fn brake(world: &World, on: bool) {
        let request = wire::SetBrakeRequest {
            on,
            operator_subject: "ann@example".to_owned(),
            reason: "INC-8: stop all".to_owned(),
        };
        world.gate().client(ServiceName::OperatorGateway).set_brake(request).await.unwrap();
    }

    pub async fn each_notification_counts_once_under_what_put_it_there(mut world: World) {
        let empty = overview(&world).await;
        assert_eq!(empty.operations, Some(OperationTally::default()));
        assert!(empty.queues.iter().all(|queue| counts(queue.ordinary) == (0, 0, 0) && queue.failed == 0));

        opened(&mut world, "op-1", 3).await;
        world.write(&["t/T/s/S/ecclinks/E7", "t/T/s/S/ecclinks/E8"], START).await;
        let leased = world.dequeue(ECC, 2).await.unwrap();
        assert_eq!(leased.urns(), ["t/T/s/S/ecclinks/E7", "t/T/s/S/ecclinks/E8"]);
        world.write(&["t/T/designs/D"], START.plus_ms(5)).await;
        let design = world.dequeue(STUDIO, 1).await.unwrap();
        world.split(into(&design, vec![parent("studiolink.v1 t/T/designs/D")])).await.unwrap();

        let seen = overview(&world).await;
        let ecc = of(&seen, ECC);
        assert_eq!(
            (counts(ecc.ordinary), counts(ecc.operations), counts(ecc.fan_out)),
            ((0, 0, 2), (3, 0, 0), (0, 0, 0))
        );
        let operation = world.seen("op-1").await;
        assert_eq!(
            (ecc.ordinary.unwrap().first_sla, ecc.operations.unwrap().first_sla),
            (None, operation.sla_timestamp)
        );
        let studio = of(&seen, STUDIO);
        assert_eq!((counts(studio.ordinary), counts(studio.fan_out)), ((0, 0, 0), (1, 0, 0)));
        assert_eq!(studio.polled_at, Some(timestamp_to_wire(START)));
        assert_eq!(seen.operations, Some(OperationTally { running: 1, ..OperationTally::default() }));

        // One is given back for later, one is done.
        let defer = Outcome::Defer { until: START.plus_ms(MINUTE), cause: "not yet".to_owned() };
        world.complete(&leased.lease, vec![(leased.ids()[0], defer), (leased.ids()[1], Outcome::Done)]).await.unwrap();
        assert_eq!(counts(of(&overview(&world).await, ECC).ordinary), (0, 1, 0));
        world.clock.advance_ms(2 * MINUTE);
        world.write(&["t/T/s/S/ecclinks/E9"], START.plus_ms(3 * MINUTE)).await;
        let ordinary = of(&overview(&world).await, ECC).ordinary.unwrap();
        assert_eq!(ordinary.first_sla, Some(timestamp_to_wire(START.plus_ms(3 * MINUTE))), "the one that is ready");
    }

    pub async fn what_is_stopped_counts_and_is_not_late(mut world: World) {
        opened(&mut world, "op-1", 3).await;
        world.control("op-1", Action::Pause(Pause { until: None })).await.unwrap();
        let paused = overview(&world).await;
        let load = of(&paused, ECC).operations;
        assert_eq!((counts(load), load.unwrap().first_sla), ((3, 0, 0), None));
        assert_eq!(paused.operations, Some(OperationTally { paused: 1, ..OperationTally::default() }));
        assert_eq!(paused.brake.unwrap().on, None);

        opened(&mut world, "op-2", 2).await;
        assert!(of(&overview(&world).await, ECC).operations.unwrap().first_sla.is_some());
        brake(&world, true).await;
        let stopped = overview(&world).await;
        let load = of(&stopped, ECC).operations;
        assert_eq!((counts(load), load.unwrap().first_sla), ((5, 0, 0), None));
        assert_eq!(stopped.brake.unwrap().on.unwrap().reason, "INC-8: stop all");
        brake(&world, false).await;

        // Cancelled rows count as gone before they are removed.
        let leased = world.dequeue(ECC, 1).await.unwrap();
        world.control("op-2", Action::Cancel(Cancel {})).await.unwrap();
        let cancelled = overview(&world).await;
        assert_eq!(counts(of(&cancelled, ECC).operations), (3, 0, 1));
        assert_eq!(backlog(&world, ECC).await, (4, 1), "what is to be removed is still to be done");
        assert_eq!(
            cancelled.operations,
            Some(OperationTally { cancelling: 1, paused: 1, ..OperationTally::default() })
        );
        world.complete_all(&leased, &Outcome::Done).await;
        world.upkeep().await;
        let over = overview(&world).await;
        assert_eq!(over.operations, Some(OperationTally { paused: 1, ..OperationTally::default() }));
        assert_eq!(counts(of(&over, ECC).operations), (3, 0, 0));
        assert_eq!(backlog(&world, ECC).await, (3, 0));
    }

    pub async fn what_failed_counts_until_a_retry_takes_it_over(mut world: World) {
        opened(&mut world, "op-1", 3).await;
        let leased = world.dequeue(ECC, 3).await.unwrap();
        world.complete_all(&leased, &failed("no such font")).await;
        assert_eq!(of(&overview(&world).await, ECC).failed, 3);
        let request = RetryFailuresRequest {
            tenant_id: "T".to_owned(),
            tracking_id: "op-1".to_owned(),
            retry_tracking_id: "op-1-again".to_owned(),
            reason: "CHG-9: font installed".to_owned(),
            operator_subject: "ann@example".to_owned(),
            ..RetryFailuresRequest::default()
        };
        world.gate().client(ServiceName::OperatorGateway).retry_failures(request).await.unwrap();
        world.upkeep().await;
        let again = of(&overview(&world).await, ECC);
        assert_eq!((again.failed, counts(again.operations)), (0, (3, 0, 0)));
    }

    pub async fn only_the_gateway_may_look(world: World) {
        let request = wire::GetOverviewRequest {};
        let refused = world.gate().client(ServiceName::EccImageRender).get_overview(request).await.unwrap_err();
        assert_eq!(refusal_from_status(&refused).code, ErrorCode::PermissionDenied);
        assert!(world.gate().anonymous().get_overview(request).await.is_err());
    }
}
