//! What only the server does: identity, ranges, refusals with their audit rows, the long poll, upkeep.

use std::time::Duration;

use cqs::{Maintainer, model::AuditOutcome};
use daemon::shutdown::Shutdown;
use domain::{ErrorCode, ServiceName};
use proto::{cqs::v1 as wire, refusal_from_status, split_item_to_wire};

use crate::world::*;

fn dequeue(wait_ms: i32) -> wire::DequeueRequest {
    wire::DequeueRequest {
        queue_name: ECC.to_owned(),
        max_items: 10,
        wait_ms,
        lease_ms: 1_000,
        worker_id: "w1".to_owned(),
        lease_generation: 0,
    }
}

#[tokio::test]
async fn nobody_without_an_identity_and_nobody_elses_queue() {
    let world = World::new(Port::Grpc).await;
    let status = world.gate().anonymous().dequeue(dequeue(0)).await.unwrap_err();
    assert_eq!(refusal_from_status(&status).code, ErrorCode::Unauthenticated);
    for service in [ServiceName::StudioRenderer, ServiceName::OperatorGateway, ServiceName::RecordImport] {
        let status = world.gate().client(service).dequeue(dequeue(0)).await.unwrap_err();
        assert_eq!(refusal_from_status(&status).code, ErrorCode::PermissionDenied, "{service}");
    }
    let request = wire::ListAuditRequest { tenant_ids: vec!["T".to_owned()], ..Default::default() };
    let status = world.gate().client(ServiceName::EccImageRender).list_audit(request).await.unwrap_err();
    assert_eq!(refusal_from_status(&status).code, ErrorCode::PermissionDenied);
}

#[tokio::test]
async fn ranges_name_their_field() {
    let world = World::new(Port::Grpc).await;
    let mut client = world.gate().client(ServiceName::EccImageRender);
    let changes: [(Change<wire::DequeueRequest>, &str); 7] = [
        (|request| request.max_items = 0, "max_items"),
        (|request| request.max_items = 2_001, "max_items"),
        (|request| request.wait_ms = -1, "wait_ms"),
        (|request| request.lease_ms = 99, "lease_ms"),
        (|request| request.lease_ms = 600_001, "lease_ms"),
        (|request| request.worker_id = String::new(), "worker_id"),
        (|request| request.queue_name = String::new(), "queue_name"),
    ];
    for (change, field) in changes {
        let mut request = dequeue(0);
        change(&mut request);
        let refusal = refusal_from_status(&client.dequeue(request).await.unwrap_err());
        assert_eq!((refusal.code, refusal.field.as_str()), (ErrorCode::InvalidArgument, field));
    }
}

#[tokio::test]
async fn every_refused_self_enqueue_is_audited_and_enqueues_nothing() {
    let mut world = World::new(Port::Grpc).await;
    let changes: [(Change<wire::SelfEnqueueRequest>, ErrorCode, &str); 9] = [
        (|request| request.reason = String::new(), ErrorCode::InvalidArgument, "reason"),
        (|request| request.reason = "a\nb".to_owned(), ErrorCode::InvalidArgument, "reason"),
        (|request| request.tracking_id = String::new(), ErrorCode::InvalidArgument, "tracking_id"),
        (|request| request.tracking_id = "a/b".to_owned(), ErrorCode::InvalidArgument, "tracking_id"),
        (|request| request.items.clear(), ErrorCode::InvalidArgument, "items"),
        (|request| request.items = vec![request.items[0].clone(); 1_001], ErrorCode::InvalidArgument, "items"),
        (|request| request.queue_name = STUDIO.to_owned(), ErrorCode::PermissionDenied, "queue_name"),
        (
            |request| request.items.push(split_item_to_wire(&parent("ecclink.v1 t/U/s/S by_store"))),
            ErrorCode::PermissionDenied,
            "items[1].parent_id",
        ),
        (
            |request| request.items.push(split_item_to_wire(&parent("ecclink.v1 t/T/s/S/items/I by_item"))),
            ErrorCode::PermissionDenied,
            "items[1]",
        ),
    ];
    let mut client = world.gate().client(ServiceName::EccImageRender);
    for (n, (change, code, field)) in changes.into_iter().enumerate() {
        let mut request = inject_to_wire(&refresh("op-1"));
        change(&mut request);
        let tenant_is_known = !request.items.is_empty() || !request.scope.is_empty();
        assert!(tenant_is_known);
        let refusal = refusal_from_status(&client.self_enqueue(request).await.unwrap_err());
        assert_eq!((refusal.code, refusal.field.as_str()), (code, field));
        let audit = world.audit(None).await;
        assert_eq!(audit.len(), n + 1);
        assert_eq!((audit[0].outcome, audit[0].error_code.as_str()), (AuditOutcome::Refused, code.as_str()));
        assert!(audit[0].detail.starts_with(field));
        assert!(!audit[0].reason.contains('\n'));
    }
    // A caller without the RPC: audited as well. One without an identity: not.
    let request = inject_to_wire(&refresh("op-1"));
    let gateway = world.gate().client(ServiceName::OperatorGateway).self_enqueue(request.clone()).await;
    assert_eq!(refusal_from_status(&gateway.unwrap_err()).code, ErrorCode::PermissionDenied);
    assert_eq!(world.audit(None).await[0].service, ServiceName::OperatorGateway);
    let before = world.audit(None).await.len();
    assert!(world.gate().anonymous().self_enqueue(request).await.is_err());
    assert_eq!(world.audit(None).await.len(), before);

    assert!(world.dequeue(ECC, 10).await.is_none());
    assert_eq!(world.progress("op-1").await, None);
}

#[tokio::test]
async fn an_operation_is_shown_to_the_gateway_and_its_own_service() {
    let world = World::new(Port::Grpc).await;
    world.inject(refresh("op-1")).await.unwrap();
    let request = wire::GetOperationRequest { tenant_id: "T".to_owned(), tracking_id: "op-1".to_owned() };
    for (service, shown) in [
        (ServiceName::OperatorGateway, true),
        (ServiceName::EccImageRender, true),
        (ServiceName::StudioRenderer, false),
    ] {
        let answer = world.gate().client(service).get_operation(request.clone()).await;
        match answer {
            Ok(answer) => {
                assert!(shown, "{service}");
                let operation = answer.into_inner();
                assert_eq!(operation.state(), wire::OperationState::Running);
                assert!(!operation.expansion_complete);
                assert_eq!(operation.reason, "CHG-118: font fixed");
            }
            Err(status) => assert_eq!((refusal_from_status(&status).code, shown), (ErrorCode::NotFound, false)),
        }
    }
}

#[tokio::test]
async fn lists_are_paged_by_opaque_tokens() {
    let world = World::new(Port::Grpc).await;
    for n in 0..5 {
        world.inject(refresh(&format!("op-{n}"))).await.unwrap();
    }
    let mut client = world.gate().client(ServiceName::OperatorGateway);
    let mut seen = Vec::new();
    let mut page_token = String::new();
    loop {
        let request = wire::ListOperationsRequest {
            tenant_ids: vec!["T".to_owned()],
            page_size: 2,
            page_token,
            ..Default::default()
        };
        let page = client.list_operations(request).await.unwrap().into_inner();
        seen.extend(page.operations.into_iter().map(|operation| operation.tracking_id));
        page_token = page.next_page_token;
        if page_token.is_empty() {
            break;
        }
    }
    assert_eq!(seen, ["op-4", "op-3", "op-2", "op-1", "op-0"]);
    let request = wire::ListAuditRequest { tenant_ids: vec!["T".to_owned()], page_size: 4, ..Default::default() };
    let first = client.list_audit(request.clone()).await.unwrap().into_inner();
    let second = client.list_audit(wire::ListAuditRequest { page_token: first.next_page_token, ..request }).await;
    let second = second.unwrap().into_inner();
    assert_eq!((first.entries.len(), second.entries.len(), second.next_page_token.as_str()), (4, 1, ""));
    assert_eq!(second.entries[0].service, "svc:ecc-image-render-service");
    let bad =
        wire::ListAuditRequest { tenant_ids: vec!["T".to_owned()], page_token: "-1".to_owned(), ..Default::default() };
    assert_eq!(refusal_from_status(&client.list_audit(bad).await.unwrap_err()).field, "page_token");
}

#[tokio::test]
async fn appended_audit_rows_carry_the_callers_identity_and_our_time() {
    let world = World::new(Port::Grpc).await;
    let entry = wire::AuditEntry {
        id: 99,
        service: "svc:esl-image-merger".to_owned(),
        tenant_id: "T".to_owned(),
        action: "trigger model-refresh".to_owned(),
        outcome: wire::AuditOutcome::Refused.into(),
        error_code: "NOT_FOUND".to_owned(),
        ..Default::default()
    };
    let mut client = world.gate().client(ServiceName::OperatorGateway);
    client.append_audit(wire::AppendAuditRequest { entries: vec![entry.clone()] }).await.unwrap();
    let rows = world.audit(None).await;
    assert_eq!((rows.len(), rows[0].service, rows[0].at), (1, ServiceName::OperatorGateway, START));
    let changes: [(Change<wire::AuditEntry>, &str); 4] = [
        (|entry| entry.action = String::new(), "entries[1].action"),
        (|entry| entry.outcome = 0, "entries[1].outcome"),
        (|entry| entry.error_code = "NOPE".to_owned(), "entries[1].error_code"),
        (|entry| entry.detail = "a\0".to_owned(), "entries[1].detail"),
    ];
    for (change, field) in changes {
        let mut wrong = entry.clone();
        change(&mut wrong);
        let request = wire::AppendAuditRequest { entries: vec![entry.clone(), wrong] };
        assert_eq!(refusal_from_status(&client.append_audit(request).await.unwrap_err()).field, field);
    }
    assert_eq!(world.audit(None).await.len(), 1, "all or none");
}

#[tokio::test]
async fn a_waiting_dequeue_is_woken_by_an_announcement() {
    let world = World::new(Port::Grpc).await;
    let mut client = world.gate().client(ServiceName::EccImageRender);
    let waiting = tokio::spawn(async move { client.dequeue(dequeue(30_000)).await });
    tokio::task::yield_now().await;
    world.write(&["t/T/s/S/ecclinks/E1"], START).await;
    let answer = tokio::time::timeout(Duration::from_secs(10), waiting).await.unwrap().unwrap().unwrap().into_inner();
    assert_eq!(answer.notifications.len(), 1);
}

#[tokio::test]
async fn a_waiting_dequeue_sees_what_comes_due_and_ends_when_closed() {
    let mut world = World::new(Port::Grpc).await;
    world.write(&["t/T/s/S/ecclinks/E1"], START).await;
    let leased = world.dequeue(ECC, 1).await.unwrap();
    world.complete_all(&leased, &retry()).await;
    let mut client = world.gate().client(ServiceName::EccImageRender);
    let waiting = tokio::spawn(async move { client.dequeue(dequeue(30_000)).await });
    world.clock.advance_ms(5 * MINUTE);
    let answer = tokio::time::timeout(Duration::from_secs(10), waiting).await.unwrap().unwrap().unwrap().into_inner();
    assert_eq!(answer.notifications[0].attempts, 1);

    let mut client = world.gate().client(ServiceName::EccImageRender);
    let waiting = tokio::spawn(async move { client.dequeue(dequeue(30_000)).await });
    world.wakeups.close();
    let answer = tokio::time::timeout(Duration::from_secs(10), waiting).await.unwrap().unwrap().unwrap().into_inner();
    assert_eq!(answer, wire::DequeueResponse::default());
}

#[tokio::test]
async fn what_is_leased_for_a_caller_that_went_away_goes_back_at_once() {
    let mut world = World::new(Port::Grpc).await;
    world.write(&["t/T/s/S/ecclinks/E1", "t/T/s/S/ecclinks/E2"], START).await;
    // The one writer is busy, so the call is under way when its caller goes.
    let (free, busy) = tokio::sync::oneshot::channel::<()>();
    let (started, running) = tokio::sync::oneshot::channel::<()>();
    let db = world.db().unwrap();
    let writer = tokio::spawn(async move {
        let held: Result<(), db::DbError> = db
            .write(move |_| {
                Box::pin(async move {
                    started.send(()).unwrap();
                    busy.await.unwrap();
                    Ok(())
                })
            })
            .await;
        held
    });
    running.await.unwrap();
    let mut client = world.gate().client(ServiceName::EccImageRender);
    let call = tokio::spawn(async move { client.dequeue(dequeue(0)).await });
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    free.send(()).unwrap();
    writer.await.unwrap().unwrap();
    let leased = loop {
        if let Some(leased) = world.dequeue(ECC, 10).await {
            break leased;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(leased.rows.len(), 2, "together: nothing lapsed");
    assert!(leased.lease.generation > 1, "the first lease went to the caller that had gone");
}

#[tokio::test]
async fn the_maintainer_folds_until_the_drain() {
    let world = World::new(Port::Sqlite).await;
    world.inject(refresh("op-1")).await.unwrap();
    let before = world.progress("op-1").await;
    let db = world.db().unwrap();
    let deltas = || async {
        let count: Result<i64, db::DbError> = db
            .read(|conn| {
                Box::pin(async move {
                    Ok(sqlx::query_scalar("SELECT count(*) FROM cqs_ledger_delta").fetch_one(conn).await?)
                })
            })
            .await;
        count.unwrap()
    };
    assert_eq!(deltas().await, 1);
    let shutdown = Shutdown::default();
    let store = std::sync::Arc::clone(&world.store);
    let clock = std::sync::Arc::<domain::ManualClock>::clone(&world.clock);
    let running = tokio::spawn(Maintainer::new(store, clock, world.wakeups.clone()).run(shutdown.clone()));
    while deltas().await > 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(world.progress("op-1").await, before);
    shutdown.soft.cancel();
    running.await.unwrap();
}

#[tokio::test]
async fn a_hundred_identical_requests_open_one_operation() {
    let mut world = World::new(Port::Grpc).await;
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..100 {
        let mut client = world.gate().client(ServiceName::EccImageRender);
        calls.spawn(async move { client.self_enqueue(inject_to_wire(&refresh("op-1"))).await });
    }
    let answers = calls.join_all().await.into_iter().map(|answer| answer.unwrap().into_inner());
    let first: Vec<_> = answers.filter(|answer| !answer.replayed).collect();
    assert_eq!((first.len(), first[0].items_enqueued), (1, 1));
    assert_eq!(world.dequeue(ECC, 10).await.unwrap().rows.len(), 1);
    assert!(world.dequeue(ECC, 10).await.is_none());
    assert_eq!(world.store.operations(vec!["T".parse().unwrap()], (i64::MAX, 10), START).await.unwrap().len(), 1);
}

#[tokio::test]
async fn control_is_the_gateways() {
    let world = World::new(Port::Grpc).await;
    world.inject(refresh("op-1")).await.unwrap();
    let good = wire::ControlOperationRequest {
        tenant_id: "T".to_owned(),
        tracking_id: "op-1".to_owned(),
        operator_subject: "ann@example".to_owned(),
        reason: "because".to_owned(),
        action: Some(wire::control_operation_request::Action::Pause(wire::Pause::default())),
    };
    let renderer = world.gate().client(ServiceName::EccImageRender).control_operation(good.clone()).await;
    assert_eq!(refusal_from_status(&renderer.unwrap_err()).code, ErrorCode::PermissionDenied, "no grant by default");
    let changes: [(Change<wire::ControlOperationRequest>, &str); 5] = [
        (|request| request.tenant_id.clear(), "tenant_id"),
        (|request| request.tracking_id.clear(), "tracking_id"),
        (|request| request.operator_subject.clear(), "operator_subject"),
        (|request| request.reason.clear(), "reason"),
        (|request| request.action = None, "action"),
    ];
    let mut client = world.gate().client(ServiceName::OperatorGateway);
    for (change, field) in changes {
        let mut request = good.clone();
        change(&mut request);
        let refusal = refusal_from_status(&client.control_operation(request).await.unwrap_err());
        assert_eq!((refusal.code, refusal.field.as_str()), (ErrorCode::InvalidArgument, field));
    }
    let refused = world.audit(None).await.into_iter().filter(|row| row.outcome == AuditOutcome::Refused).count();
    assert_eq!(refused, 5, "all but the one that names no tenant");
    assert_eq!(world.seen("op-1").await.state(), wire::OperationState::Running);
    let request = wire::SetBrakeRequest { on: true, ..Default::default() };
    let refusal = refusal_from_status(&client.set_brake(request).await.unwrap_err());
    assert_eq!((refusal.code, refusal.field.as_str()), (ErrorCode::InvalidArgument, "operator_subject"));
}

#[tokio::test]
async fn a_waiting_dequeue_is_woken_by_a_resume() {
    let mut world = World::new(Port::Grpc).await;
    world.inject(refresh("op-1")).await.unwrap();
    let pause = wire::control_operation_request::Action::Pause(wire::Pause::default());
    world.control("op-1", pause).await.unwrap();
    assert!(world.dequeue(ECC, 10).await.is_none());
    let mut client = world.gate().client(ServiceName::EccImageRender);
    let waiting = tokio::spawn(async move { client.dequeue(dequeue(30_000)).await });
    tokio::task::yield_now().await;
    world.control("op-1", wire::control_operation_request::Action::Resume(wire::Resume {})).await.unwrap();
    let answer = tokio::time::timeout(Duration::from_secs(10), waiting).await.unwrap().unwrap().unwrap().into_inner();
    assert_eq!(answer.notifications.len(), 1);
}

#[tokio::test]
async fn the_maintainer_clears_what_was_cancelled() {
    let mut world = World::new(Port::Sqlite).await;
    world.inject(refresh("op-1")).await.unwrap();
    let parents = world.dequeue(ECC, 1).await.unwrap();
    world.split(into(&parents, links(0..600))).await.unwrap();
    let cancel = wire::control_operation_request::Action::Cancel(wire::Cancel {});
    world.control("op-1", cancel).await.unwrap();
    let shutdown = Shutdown::default();
    let store = std::sync::Arc::clone(&world.store);
    let clock = std::sync::Arc::<domain::ManualClock>::clone(&world.clock);
    let running = tokio::spawn(Maintainer::new(store, clock, world.wakeups.clone()).run(shutdown.clone()));
    let left = async || world.store.backlogs().await.unwrap().iter().map(|queue| queue.waiting).sum::<i64>();
    assert!(left().await > 0);
    while left().await > 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    shutdown.soft.cancel();
    running.await.unwrap();
}
