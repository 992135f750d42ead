//! The ledger of operations.

use crate::each_port;

each_port!(
    counts_are_exact_across_queues_and_folding,
    an_operation_finishes_and_opens_again,
    writes_in_its_lane_count_for_it,
    operations_are_listed_newest_first,
    operations_are_listed_by_where_they_stand,
);

mod scenario_impl {
    use cqs::model::Counts;
    use domain::{Outcome, ServiceName};
    use proto::cqs::v1::{Cancel, ListOperationsRequest, OperationState, Pause, control_operation_request::Action};

    use crate::world::*;

    pub async fn counts_are_exact_across_queues_and_folding(mut world: World) {
        world.inject(refresh("op-1")).await.unwrap();
        let parents = world.dequeue(ECC, 10).await.unwrap();
        world.split(into(&parents, links(0..5))).await.unwrap();
        let leased = world.dequeue(ECC, 4).await.unwrap();
        let ids = leased.ids();
        let outcomes = vec![
            (ids[0], Outcome::Done),
            (ids[1], Outcome::Unchanged),
            (ids[2], retry()),
            (ids[3], failed("no price")),
        ];
        world.complete(&leased.lease, outcomes).await.unwrap();
        let expected = Counts { enqueued: 5, done: 2, unchanged: 1, failed: 1, waiting: 2, ..Counts::default() };
        let before = world.progress("op-1").await.unwrap();
        assert_eq!(before.of(ECC).labels, expected);
        assert_eq!(before.of(ECC).parents, Counts { enqueued: 1, done: 1, ..Counts::default() });

        assert!(!world.store.maintain(world.now()).await.unwrap().1);
        assert_eq!(world.progress("op-1").await.unwrap(), before, "folding changes no reading");
        let leased = world.dequeue(ECC, 4).await.unwrap();
        let after = world.progress("op-1").await.unwrap();
        assert_eq!(after.of(ECC).labels, Counts { waiting: 1, leased: 1, ..expected });
        world.store.maintain(world.now()).await.unwrap();
        world.complete_all(&leased, &Outcome::Done).await;
        assert_eq!(world.progress("op-1").await.unwrap().of(ECC).labels, Counts { done: 3, waiting: 1, ..expected });
    }

    pub async fn an_operation_finishes_and_opens_again(mut world: World) {
        world.inject(refresh("op-1")).await.unwrap();
        let parents = world.dequeue(ECC, 10).await.unwrap();
        let lane = world.lease_check(&parents.lease).await.unwrap().lane;
        assert_eq!(world.progress("op-1").await.unwrap().finished_at, None);
        world.clock.advance_ms(SECOND);
        assert_eq!(world.split(into(&parents, vec![])).await, Ok((0, 0, false)));
        let finished = world.progress("op-1").await.unwrap();
        assert_eq!(finished.finished_at, Some(START.plus_ms(SECOND)), "a model without labels is done at once");

        let mut late = told("t/T/s/S/ecclinks/E1", START);
        late.lane = Some(lane);
        world.announce(vec![late]).await.unwrap();
        assert_eq!(world.progress("op-1").await.unwrap().finished_at, None);
        let leased = world.dequeue(ECC, 10).await.unwrap();
        world.clock.advance_ms(SECOND);
        world.complete_all(&leased, &Outcome::Done).await;
        assert_eq!(world.progress("op-1").await.unwrap().finished_at, Some(START.plus_ms(2 * SECOND)));
    }

    pub async fn writes_in_its_lane_count_for_it(mut world: World) {
        world.inject(refresh("op-1")).await.unwrap();
        let parents = world.dequeue(ECC, 10).await.unwrap();
        world.split(into(&parents, links(0..2))).await.unwrap();
        let leased = world.dequeue(ECC, 10).await.unwrap();
        let lane = world.lease_check(&leased.lease).await.unwrap().lane;
        let images = ["t/T/s/S/ecceslimages/E0", "t/T/s/S/ecceslimages/E1"].map(|urn| {
            let mut image = told(urn, START);
            image.lane = Some(lane);
            image
        });
        world.announce(images.to_vec()).await.unwrap();
        world.complete_all(&leased, &Outcome::Done).await;
        let progress = world.progress("op-1").await.unwrap();
        assert_eq!(progress.finished_at, None, "the merger still has to do");
        assert_eq!(progress.queues.iter().map(|counts| counts.queue.as_str()).collect::<Vec<_>>(), [ECC, MERGER]);
        let merging = world.dequeue(MERGER, 10).await.unwrap();
        assert_eq!(merging.rows[0].tracking_id.as_ref().unwrap().as_str(), "op-1", "the lane's tracking id");
        world.complete_all(&merging, &Outcome::Unchanged).await;
        let progress = world.progress("op-1").await.unwrap();
        assert!(progress.finished_at.is_some());
        assert_eq!((progress.of(MERGER).labels.done, progress.of(MERGER).labels.unchanged), (2, 2));
        // Ordinary changes have no ledger.
        world.write(&["t/T/s/S/ecclinks/E1"], START).await;
        assert_eq!(world.progress("op-1").await.unwrap(), progress);
    }

    pub async fn operations_are_listed_newest_first(world: World) {
        for n in 0..5 {
            world.inject(refresh(&format!("op-{n}"))).await.unwrap();
        }
        let now = world.now();
        let list =
            |tenant: &str, before, limit| world.store.operations(vec![tenant.parse().unwrap()], (before, limit), now);
        let page = list("T", i64::MAX, 3).await.unwrap();
        let names = |page: &[cqs::model::OperationReport]| {
            page.iter().map(|report| report.operation.tracking_id.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(names(&page), ["op-4", "op-3", "op-2"]);
        assert_eq!(page[0].queues[0].parents.waiting, 1);
        let rest = list("T", page[2].operation.id, 3).await.unwrap();
        assert_eq!(names(&rest), ["op-1", "op-0"]);
        assert!(list("U", i64::MAX, 3).await.unwrap().is_empty());
        let named = |tenant: &str, ids: &[&str]| {
            let ids = ids.iter().map(|id| id.parse().unwrap()).collect();
            world.store.operations_named(tenant.parse().unwrap(), ids, now)
        };
        assert_eq!(names(&named("T", &["op-1", "none", "op-3"]).await.unwrap()), ["op-3", "op-1"]);
        assert!(named("U", &["op-1"]).await.unwrap().is_empty());
    }

    pub async fn operations_are_listed_by_where_they_stand(world: World) {
        for n in 0..5 {
            world.inject(refresh(&format!("op-{n}"))).await.unwrap();
        }
        world.control("op-0", Action::Pause(Pause::default())).await.unwrap();
        world.control("op-3", Action::Pause(Pause::default())).await.unwrap();
        world.control("op-2", Action::Cancel(Cancel {})).await.unwrap();
        let page = async |states: &[OperationState], page_size, page_token: String| {
            let states = states.iter().map(|state| i32::from(*state)).collect();
            let tenant_ids = vec!["T".to_owned()];
            let asked = ListOperationsRequest { tenant_ids, page_size, page_token, states, ..Default::default() };
            let answer = world.gate().client(ServiceName::OperatorGateway).list_operations(asked).await;
            let answer = answer.unwrap().into_inner();
            let names: Vec<String> = answer.operations.into_iter().map(|found| found.tracking_id).collect();
            (names.join(" "), answer.next_page_token)
        };
        let whole = async |states: &[OperationState]| page(states, 0, String::new()).await;
        let last = |names: &str| (names.to_owned(), String::new());
        assert_eq!(whole(&[OperationState::Paused]).await, last("op-3 op-0"));
        assert_eq!(whole(&[OperationState::Running, OperationState::Held]).await, last("op-4 op-1"));
        assert_eq!(whole(&[OperationState::Cancelled]).await, last("op-2"));
        assert_eq!(whole(&[OperationState::Cancelled, OperationState::Paused]).await, last("op-3 op-2 op-0"));
        assert_eq!(whole(&[OperationState::AwaitingApproval]).await, last(""));
        let (first, token) = page(&[OperationState::Paused], 1, String::new()).await;
        assert_eq!((first.as_str(), token.is_empty()), ("op-3", false));
        assert_eq!(page(&[OperationState::Paused], 1, token).await, last("op-0"));
    }
}
