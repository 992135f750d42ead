//! `SelfEnqueue`: gates, idempotency, audit.

use crate::each_port;

each_port!(
    an_injected_parent_is_like_any_other,
    the_sla_defaults_to_now_and_is_clamped,
    the_gates_refuse,
    the_same_request_is_replayed,
    another_request_is_refused_naming_the_field,
    a_check_answers_as_the_request_would_and_does_nothing,
    a_queue_must_exist,
);

mod scenario_impl {
    use cqs::{model::AuditOutcome, store::InjectAsk};
    use domain::{ErrorCode, ServiceName};

    use crate::world::*;

    pub async fn an_injected_parent_is_like_any_other(mut world: World) {
        assert_eq!(world.inject(refresh("op-1")).await, Ok((1, false, START, START)));
        let injected = world.dequeue(ECC, 10).await.unwrap();
        // The same parent out of a split.
        let store_parent = parent("ecclink.v1 t/T/s/S by_store");
        let mut ask = refresh("op-2");
        ask.items = vec![store_parent];
        world.inject(ask).await.unwrap();
        let other = world.dequeue(ECC, 10).await.unwrap();
        let child = parent("ecclink.v1 t/T/s/S/eccmodels/M by_eccmodel");
        world.split(into(&other, vec![child])).await.unwrap();
        let split = world.dequeue(ECC, 10).await.unwrap();
        let mut expected = injected.rows[0].clone();
        expected.id = split.rows[0].id;
        expected.lane = split.rows[0].lane;
        expected.tracking_id = Some("op-2".parse().unwrap());
        assert_eq!(split.rows[0], expected);
    }

    pub async fn the_sla_defaults_to_now_and_is_clamped(world: World) {
        let day = 24 * 60 * MINUTE;
        for (id, asked, counts) in [
            ("op-1", None, START),
            ("op-2", Some(START.plus_ms(-day)), START),
            ("op-3", Some(START.plus_ms(day)), START.plus_ms(day)),
            ("op-4", Some(START.plus_ms(40 * day)), START.plus_ms(30 * day)),
        ] {
            let mut ask = refresh(id);
            ask.sla = asked;
            assert_eq!(world.inject(ask).await.unwrap().3, counts, "{id}");
        }
    }

    pub async fn the_gates_refuse(mut world: World) {
        let undeclared = |ask: &mut InjectAsk| ask.items = vec![parent("ecclink.v1 t/T/s/S/items/I by_item")];
        let other_type = |ask: &mut InjectAsk| ask.items.push(parent("studiolink.v1 t/T/designs/D by_eccmodel"));
        let a_record = |ask: &mut InjectAsk| ask.items = vec![record("t/T/s/S/ecclinks/E1")];
        let second_tenant = |ask: &mut InjectAsk| ask.items.push(parent("ecclink.v1 t/U/s/S/eccmodels/M by_eccmodel"));
        let scope = |ask: &mut InjectAsk| ask.scope = Some("t/U/s/S".parse().unwrap());
        let gates: [(Change<InjectAsk>, &str); 5] = [
            (undeclared, "items[0]"),
            (other_type, "items[1]"),
            (a_record, "items[0].dto_id"),
            (second_tenant, "items[1].parent_id"),
            (scope, "scope"),
        ];
        for (change, field) in gates {
            let mut ask = refresh("op-1");
            change(&mut ask);
            let refusal = world.inject(ask).await.unwrap_err();
            assert_eq!((refusal.code, refusal.field.as_str()), (ErrorCode::PermissionDenied, field));
        }
        assert!(world.dequeue(ECC, 10).await.is_none());
        assert_eq!(world.progress("op-1").await, None);
    }

    pub async fn the_same_request_is_replayed(mut world: World) {
        let mut ask = refresh("op-1");
        ask.sla = Some(START.plus_ms(MINUTE));
        ask.sla_is_default = true;
        let first = world.inject(ask.clone()).await.unwrap();
        world.clock.advance_ms(MINUTE);
        let mut again = ask.clone();
        again.sla = Some(START.plus_ms(2 * MINUTE));
        again.operator_subject = Some("bob@example".parse().unwrap());
        assert_eq!(world.inject(again).await, Ok((1, true, first.2, first.3)));
        let mut chosen = ask.clone();
        chosen.sla_is_default = false;
        let refusal = world.inject(chosen).await.unwrap_err();
        assert_eq!(
            (refusal.code, refusal.field.as_str()),
            (ErrorCode::AlreadyExists, "sla_timestamp"),
            "a chosen time"
        );

        assert_eq!(world.dequeue(ECC, 10).await.unwrap().rows.len(), 1);
        assert!(world.dequeue(ECC, 10).await.is_none(), "enqueued once");
        // Refusals are audited by the server, which not every world has.
        let mut audit = world.audit(Some("op-1")).await;
        audit.retain(|row| row.outcome != AuditOutcome::Refused);
        let outcomes: Vec<_> = audit.iter().map(|row| row.outcome).collect();
        assert_eq!(outcomes, [AuditOutcome::Replayed, AuditOutcome::Accepted]);
        assert_eq!(audit[1].reason, "CHG-118: font fixed");
        assert_eq!(audit[0].operator_subject, "bob@example");
        assert_eq!(audit[1].at, START);
        // In another tenant the name is free.
        let mut elsewhere = ask;
        elsewhere.items = vec![parent("ecclink.v1 t/U/s/S/eccmodels/M by_eccmodel")];
        elsewhere.scope = None;
        assert!(!world.inject(elsewhere).await.unwrap().1);
    }

    pub async fn another_request_is_refused_naming_the_field(world: World) {
        let mut accepted = refresh("op-1");
        accepted.sla = Some(START.plus_ms(MINUTE));
        world.inject(accepted.clone()).await.unwrap();
        let items = |ask: &mut InjectAsk| ask.items = vec![parent("ecclink.v1 t/T/s/S by_store")];
        let reason = |ask: &mut InjectAsk| ask.reason = "another".parse().unwrap();
        let trigger = |ask: &mut InjectAsk| "ecc-store-rerender".clone_into(&mut ask.trigger);
        let scope = |ask: &mut InjectAsk| ask.scope = None;
        let sla = |ask: &mut InjectAsk| ask.sla = Some(START.plus_ms(2 * MINUTE));
        let queue = |ask: &mut InjectAsk| {
            ask.queue = STUDIO.parse().unwrap();
            ask.service = ServiceName::StudioRenderer;
            ask.items = vec![parent("studiolink.v1 t/T/designs/D")];
        };
        let changes: [(Change<InjectAsk>, &str); 6] = [
            (items, "items"),
            (reason, "reason"),
            (trigger, "trigger"),
            (scope, "scope"),
            (sla, "sla_timestamp"),
            (queue, "queue_name"),
        ];
        for (change, field) in changes {
            let mut ask = accepted.clone();
            change(&mut ask);
            let refusal = world.inject(ask).await.unwrap_err();
            assert_eq!((refusal.code, refusal.field.as_str()), (ErrorCode::AlreadyExists, field));
        }
        assert_eq!(world.progress("op-1").await.unwrap().of(ECC).parents.enqueued, 1);
    }

    pub async fn a_check_answers_as_the_request_would_and_does_nothing(mut world: World) {
        let check = |ask: &InjectAsk| InjectAsk { check_only: true, ..ask.clone() };
        let ask = refresh("op-1");
        assert_eq!(world.inject(check(&ask)).await, Ok((0, false, START, START)));
        assert_eq!(world.progress("op-1").await, None, "nothing is reserved");
        assert!(world.dequeue(ECC, 10).await.is_none(), "nothing is enqueued");
        assert!(world.audit(Some("op-1")).await.is_empty(), "nothing is written down as accepted");

        let accepted = world.inject(ask.clone()).await.unwrap();
        assert_eq!(world.inject(check(&ask)).await, Ok((accepted.0, true, accepted.2, accepted.3)));
        assert_eq!(world.audit(Some("op-1")).await.len(), 1, "a check of an accepted request replays nothing");
        let items = |ask: &mut InjectAsk| ask.items = vec![parent("ecclink.v1 t/T/s/S by_store")];
        let reason = |ask: &mut InjectAsk| ask.reason = "another".parse().unwrap();
        let sla = |ask: &mut InjectAsk| ask.sla = Some(START.plus_ms(MINUTE));
        let changes: [Change<InjectAsk>; 3] = [items, reason, sla];
        for change in changes {
            let mut other = ask.clone();
            change(&mut other);
            let refused = world.inject(check(&other)).await.unwrap_err();
            assert_eq!(refused, world.inject(other).await.unwrap_err(), "a check refuses what the request would");
        }
    }

    pub async fn a_queue_must_exist(world: World) {
        let empty = World::empty(if world.db().is_some() { Port::Sqlite } else { Port::Memory }).await;
        let refusal = empty.inject(refresh("op-1")).await.unwrap_err();
        assert_eq!((refusal.code, refusal.field.as_str()), (ErrorCode::FailedPrecondition, "queue_name"));
    }
}
