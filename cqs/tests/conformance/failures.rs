//! Failures are listed item by item, and a record is found wherever it is.

use crate::each_port;

each_port!(
    failures_are_listed_by_queue_cause_and_page,
    a_record_is_found_where_it_waits_is_leased_and_failed,
    a_failure_is_told_until_the_record_was_handled,
);

mod scenario_impl {
    use cqs::model::FateState;
    use domain::Outcome;

    use crate::{failures_world::Wanted, world::*};

    const LINK: &str = "t/T/s/S/ecclinks/E0";

    pub async fn failures_are_listed_by_queue_cause_and_page(mut world: World) {
        world.inject(refresh("op-1")).await.unwrap();
        let parents = world.dequeue(ECC, 10).await.unwrap();
        let lane = world.lease_check(&parents.lease).await.unwrap().lane;
        world.split(into(&parents, links(0..6))).await.unwrap();
        let leased = world.dequeue(ECC, 10).await.unwrap();
        let mut image = told("t/T/s/S/ecceslimages/E5", START);
        image.lane = Some(lane);
        world.announce(vec![image]).await.unwrap();
        world.clock.advance_ms(SECOND);
        let outcomes = leased.ids().into_iter().enumerate().map(|(n, id)| match n {
            5 => (id, Outcome::Done),
            n if n % 2 == 0 => (id, failed("no price")),
            _ => (id, failed("no item")),
        });
        world.complete(&leased.lease, outcomes.collect()).await.unwrap();
        let merging = world.dequeue(MERGER, 10).await.unwrap();
        world.complete_all(&merging, &failed("no price")).await;

        let of = Wanted { of: "op-1", ..Wanted::default() };
        let urns = |failures: &[cqs::model::Failure]| {
            failures.iter().map(|failure| failure.urn.to_string()).collect::<Vec<_>>()
        };
        let all = world.failures(of, 100).await;
        let expected: Vec<String> =
            (0..5).map(|n| format!("t/T/s/S/ecclinks/E{n}")).chain(["t/T/s/S/ecceslimages/E5".to_owned()]).collect();
        assert_eq!(urns(&all), expected, "in the order of the flow, then by age");
        assert_eq!((all[1].cause.as_str(), all[1].queue.as_str(), all[1].is_parent), ("no item", ECC, false));
        assert_eq!((all[0].at, all[0].attempts, &all[0].retried_by), (START.plus_ms(SECOND), 0, &None));
        for page in 1..7 {
            assert_eq!(world.failures(of, page).await, all, "in pages of {page}");
        }
        let of_cause = world.failures(Wanted { cause: "no price", ..of }, 2).await;
        assert_eq!(urns(&of_cause), [&expected[0], &expected[2], &expected[4], &expected[5]].map(Clone::clone));
        let of_queue = world.failures(Wanted { queue: MERGER, ..of }, 2).await;
        assert_eq!(urns(&of_queue), expected[5..]);
        assert!(world.failures(Wanted { queue: MERGER, cause: "no item", ..of }, 2).await.is_empty());
        let groups = world.progress("op-1").await.unwrap().failures;
        let groups: Vec<_> = groups
            .iter()
            .map(|group| (group.queue.as_str(), group.cause.as_str(), group.count, group.retried))
            .collect();
        assert_eq!(groups, [(ECC, "no price", 3, 0), (ECC, "no item", 2, 0), (MERGER, "no price", 1, 0)]);
    }

    pub async fn a_record_is_found_where_it_waits_is_leased_and_failed(mut world: World) {
        assert!(world.fates(&[LINK]).await.is_empty(), "at rest");
        world.write(&[LINK, "t/T/s/S/ecclinks/other"], START).await;
        let ready = world.fates(&[LINK]).await;
        assert_eq!(ready.len(), 1);
        assert_eq!((ready[0].queue.as_str(), ready[0].urn.to_string().as_str()), (ECC, LINK));
        assert_eq!(ready[0].state, FateState::Waiting { due_at: None, cause: String::new() });

        let leased = world.dequeue(ECC, 10).await.unwrap();
        assert_eq!(world.fates(&[LINK]).await[0].state, FateState::Leased);
        world.complete_all(&leased, &retry()).await;
        let backing_off = world.fates(&[LINK]).await;
        let FateState::Waiting { due_at: Some(_), cause } = &backing_off[0].state else { panic!("{backing_off:?}") };
        assert_eq!((cause.as_str(), backing_off[0].attempts), ("no answer", 1));

        // An operation brings the record a second time; both are told.
        world.inject(refresh("op-1")).await.unwrap();
        let parents = world.dequeue(ECC, 10).await.unwrap();
        world.split(into(&parents, links(0..1))).await.unwrap();
        let both = world.fates(&[LINK]).await;
        assert_eq!(both.len(), 2);
        let ids: Vec<_> = both.iter().map(|fate| fate.tracking_id.as_ref().map(ToString::to_string)).collect();
        assert_eq!(ids, [None, Some("op-1".to_owned())]);
        // A new change makes a row that backs off due at once, and why it did is over.
        world.write(&[LINK], START).await;
        assert_eq!(world.fates(&[LINK]).await[0].state, FateState::Waiting { due_at: None, cause: String::new() });
        assert!(world.fates(&["t/T/s/S/ecclinks/none"]).await.is_empty());
    }

    pub async fn a_failure_is_told_until_the_record_was_handled(mut world: World) {
        world.write(&[LINK], START).await;
        let leased = world.dequeue(ECC, 10).await.unwrap();
        world.clock.advance_ms(SECOND);
        world.complete_all(&leased, &failed("no price")).await;
        let dead = FateState::Dead { cause: "no price".to_owned(), at: START.plus_ms(SECOND) };
        assert_eq!(world.fates(&[LINK]).await.iter().map(|fate| &fate.state).collect::<Vec<_>>(), [&dead]);

        // It fails again for another reason: the last one is told.
        world.write(&[LINK], START).await;
        let leased = world.dequeue(ECC, 10).await.unwrap();
        world.complete_all(&leased, &failed("no item")).await;
        let told = world.fates(&[LINK]).await;
        let FateState::Dead { cause, .. } = &told[0].state else { panic!("{told:?}") };
        assert_eq!((told.len(), cause.as_str()), (1, "no item"));

        world.write(&[LINK], START).await;
        let leased = world.dequeue(ECC, 10).await.unwrap();
        world.complete_all(&leased, &Outcome::Unchanged).await;
        assert!(world.fates(&[LINK]).await.is_empty(), "corrected");
    }
}
