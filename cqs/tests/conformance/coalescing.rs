//! Coalescing inside one lane.

use crate::each_port;

each_port!(
    earliest_sla_and_newest_tracking_id_win,
    leased_rows_do_not_coalesce,
    a_backing_off_row_becomes_due_at_once,
    lanes_do_not_coalesce_with_each_other,
    only_subscribed_queues_are_told,
    only_if_undelivered,
    what_got_stuck_further_on_is_undelivered,
);

mod scenario_impl {
    use cqs::announce::Announce;
    use domain::Outcome;

    use crate::world::*;

    pub async fn earliest_sla_and_newest_tracking_id_win(mut world: World) {
        let mut first = told("t/T/s/S/ecclinks/E1", START.plus_ms(MINUTE));
        first.tracking_id = Some("first".parse().unwrap());
        let mut second = told("t/T/s/S/ecclinks/E1", START.plus_ms(5 * MINUTE));
        second.tracking_id = Some("second".parse().unwrap());
        world.announce(vec![first.clone(), told("t/T/s/S/ecclinks/E2", START)]).await.unwrap();
        world.announce(vec![second]).await.unwrap();

        let leased = world.dequeue(ECC, 10).await.unwrap();
        assert_eq!(leased.urns(), ["t/T/s/S/ecclinks/E2", "t/T/s/S/ecclinks/E1"]);
        assert_eq!(leased.rows[1].sla, first.sla);
        assert_eq!(leased.rows[1].tracking_id.as_ref().unwrap().as_str(), "second");
        assert!(world.dequeue(ECC, 10).await.is_none());
    }

    pub async fn leased_rows_do_not_coalesce(mut world: World) {
        world.write(&["t/T/s/S/ecclinks/E1"], START).await;
        let first = world.dequeue(ECC, 10).await.unwrap();
        world.write(&["t/T/s/S/ecclinks/E1"], START).await;
        let second = world.dequeue(ECC, 10).await.unwrap();
        assert_ne!(first.ids(), second.ids());
        assert!(second.lease.generation > first.lease.generation);

        // Both come back: one row of the record waits.
        world.complete_all(&first, &retry()).await;
        world.complete_all(&second, &retry()).await;
        world.clock.advance_ms(10 * MINUTE);
        let third = world.dequeue(ECC, 10).await.unwrap();
        assert_eq!(third.rows.len(), 1);
        assert_eq!(third.ids(), first.ids(), "the row that waits is merged into");
    }

    pub async fn a_backing_off_row_becomes_due_at_once(mut world: World) {
        world.write(&["t/T/s/S/ecclinks/E1"], START).await;
        let leased = world.dequeue(ECC, 10).await.unwrap();
        let until = START.plus_ms(60 * MINUTE);
        world.complete_all(&leased, &Outcome::Defer { until, cause: "closed".to_owned() }).await;
        assert!(world.dequeue(ECC, 10).await.is_none());
        world.write(&["t/T/s/S/ecclinks/E1"], START).await;
        let again = world.dequeue(ECC, 10).await.unwrap();
        assert_eq!(again.ids(), leased.ids());

        world.complete_all(&again, &retry()).await;
        assert!(world.dequeue(ECC, 10).await.is_none(), "backing off for at least a millisecond");
        world.write(&["t/T/s/S/ecclinks/E1"], START).await;
        let third = world.dequeue(ECC, 10).await.unwrap();
        assert_eq!(third.rows[0].attempts, 0, "attempts start again");
    }

    pub async fn lanes_do_not_coalesce_with_each_other(mut world: World) {
        world.write(&["t/T/s/S/ecclinks/E1"], START.plus_ms(MINUTE)).await;
        world.inject(refresh("op-1")).await.unwrap();
        let parents = world.dequeue(ECC, 10).await.unwrap();
        assert_eq!(world.split(into(&parents, links(1..2))).await, Ok((1, 0, false)));
        let first = world.dequeue(ECC, 10).await.unwrap();
        let second = world.dequeue(ECC, 10).await.unwrap();
        assert_eq!((first.urns(), first.rows[0].lane != second.rows[0].lane), (second.urns(), true));
    }

    pub async fn only_subscribed_queues_are_told(mut world: World) {
        let woken = world.announce(vec![told("t/T/s/S/ecceslimages/E1", START)]).await.unwrap();
        assert_eq!(woken.queues().map(ToString::to_string).collect::<Vec<_>>(), [MERGER]);
        for queue in [ECC, STUDIO, EXPORTER] {
            assert!(world.dequeue(queue, 10).await.is_none());
        }
        assert_eq!(world.dequeue(MERGER, 10).await.unwrap().rows.len(), 1);
    }

    pub async fn only_if_undelivered(mut world: World) {
        let mut quiet = told("t/T/s/S/ecceslimages/E1", START);
        quiet.announce = Announce::OnlyIfUndelivered;
        assert_eq!(world.announce(vec![quiet.clone()]).await.unwrap().queues().count(), 0);

        // Waiting in an operation's lane: a write in the ordinary lane announces it there, too.
        world.inject(refresh("op-1")).await.unwrap();
        let parents = world.dequeue(ECC, 1).await.unwrap();
        let lane = world.lease_check(&parents.lease).await.unwrap().lane;
        let mut in_lane = told("t/T/s/S/ecceslimages/E1", START);
        in_lane.lane = Some(lane);
        world.announce(vec![in_lane]).await.unwrap();
        world.announce(vec![quiet.clone()]).await.unwrap();
        let first = world.dequeue(MERGER, 10).await.unwrap();
        let second = world.dequeue(MERGER, 10).await.unwrap();
        assert_eq!(first.urns(), second.urns());

        // Dead: announced until a later one is delivered.
        world.complete_all(&first, &failed("broken")).await;
        world.complete_all(&second, &failed("broken")).await;
        world.announce(vec![quiet.clone()]).await.unwrap();
        let again = world.dequeue(MERGER, 10).await.unwrap();
        world.complete_all(&again, &Outcome::Unchanged).await;
        world.announce(vec![quiet]).await.unwrap();
        assert!(world.dequeue(MERGER, 10).await.is_none());
    }

    pub async fn what_got_stuck_further_on_is_undelivered(mut world: World) {
        let mut quiet = told("t/T/s/S/ecceslimages/E1", START);
        quiet.announce = Announce::OnlyIfUndelivered;
        // The picture to show waits at the exporter, in an operation's lane; the renderer's own was taken up long ago.
        world.inject(refresh("op-1")).await.unwrap();
        let parents = world.dequeue(ECC, 1).await.unwrap();
        let mut shown = told("t/T/s/S/eslimages/E1", START);
        shown.lane = Some(world.lease_check(&parents.lease).await.unwrap().lane);
        world.announce(vec![shown]).await.unwrap();
        world.announce(vec![quiet.clone()]).await.unwrap();
        let merged = world.dequeue(MERGER, 10).await.unwrap();
        assert_eq!(merged.urns(), ["t/T/s/S/ecceslimages/E1"]);
        world.complete_all(&merged, &Outcome::Unchanged).await;

        // Dead there: undelivered until the exporter has done it.
        let export = world.dequeue(EXPORTER, 10).await.unwrap();
        world.complete_all(&export, &failed("no such access point")).await;
        world.announce(vec![quiet.clone()]).await.unwrap();
        let merged = world.dequeue(MERGER, 10).await.unwrap();
        world.complete_all(&merged, &Outcome::Unchanged).await;
        world.announce(vec![told("t/T/s/S/eslimages/E1", START)]).await.unwrap();
        let export = world.dequeue(EXPORTER, 10).await.unwrap();
        world.complete_all(&export, &Outcome::Done).await;
        world.announce(vec![quiet]).await.unwrap();
        assert!(world.dequeue(MERGER, 10).await.is_none());
    }
}
