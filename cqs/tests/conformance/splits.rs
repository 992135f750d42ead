//! `ReEnqueue`.

use crate::each_port;

each_port!(
    children_inherit_lane_sla_and_tracking_id,
    a_repeated_split_does_nothing,
    an_unfinished_split_goes_on_at_its_cursor,
    parents_of_an_ordinary_row_open_a_lane,
    children_are_checked,
    parents_wait_while_the_lane_is_full,
    a_parent_is_claimed_alone_and_blocks_no_label,
);

mod scenario_impl {
    use domain::{ErrorCode, LaneKind, Outcome, limits};

    use crate::world::*;

    pub async fn children_inherit_lane_sla_and_tracking_id(mut world: World) {
        let mut ask = refresh("op-1");
        ask.sla = Some(START.plus_ms(MINUTE));
        world.inject(ask).await.unwrap();
        let parents = world.dequeue(ECC, 10).await.unwrap();
        assert_eq!(parents.rows[0].tracking_id.as_ref().unwrap().as_str(), "op-1");
        let mut children = links(0..3);
        children.extend(links(1..2));
        assert_eq!(world.split(into(&parents, children)).await, Ok((3, 1, false)));
        let leased = world.dequeue(ECC, 10).await.unwrap();
        assert_eq!(leased.rows.len(), 3);
        for row in &leased.rows {
            let parent = &parents.rows[0];
            assert_eq!((row.lane, row.sla, &row.tracking_id), (parent.lane, parent.sla, &parent.tracking_id));
            assert_eq!((row.attempts, row.cursor.as_str()), (0, ""));
        }
        let counts = world.progress("op-1").await.unwrap().of(ECC);
        assert_eq!((counts.parents.done, counts.parents.open()), (1, 0));
        assert_eq!((counts.labels.enqueued, counts.labels.coalesced, counts.labels.leased), (4, 1, 3));
    }

    pub async fn a_repeated_split_does_nothing(mut world: World) {
        world.inject(refresh("op-1")).await.unwrap();
        let parents = world.dequeue(ECC, 10).await.unwrap();
        assert_eq!(world.split(into(&parents, links(0..3))).await, Ok((3, 0, false)));
        let before = world.progress("op-1").await;
        assert_eq!(world.split(into(&parents, links(0..3))).await, Ok((3, 0, true)));
        world.clock.advance_ms(2 * LEASE_MS);
        assert_eq!(world.split(into(&parents, links(0..3))).await, Ok((3, 0, true)), "also when the lease is over");
        assert_eq!(world.progress("op-1").await, before);
    }

    pub async fn an_unfinished_split_goes_on_at_its_cursor(mut world: World) {
        world.inject(refresh("op-1")).await.unwrap();
        let parents = world.dequeue(ECC, 10).await.unwrap();
        let mut ask = into(&parents, links(0..2));
        "E1".clone_into(&mut ask.next_cursor);
        assert_eq!(world.split(ask).await, Ok((2, 0, false)));
        let counts = world.progress("op-1").await.unwrap().of(ECC);
        assert_eq!((counts.parents.waiting, counts.parents.done, counts.labels.waiting), (1, 0, 2));
        // Same SLA, smaller id: it is the parent's turn again.
        let again = world.dequeue(ECC, 10).await.unwrap();
        assert_eq!((again.ids(), again.rows[0].cursor.as_str()), (parents.ids(), "E1"));
        assert_eq!(world.split(into(&again, links(2..3))).await, Ok((1, 0, false)));
        assert_eq!(world.dequeue(ECC, 10).await.unwrap().rows.len(), 3);
    }

    pub async fn parents_of_an_ordinary_row_open_a_lane(mut world: World) {
        let mut design = told("t/T/designs/D", START);
        design.tracking_id = Some("studio-42".parse().unwrap());
        world.announce(vec![design]).await.unwrap();
        let leased = world.dequeue(STUDIO, 10).await.unwrap();
        let sla = START.plus_ms(60 * MINUTE);
        let mut ask = into(&leased, vec![parent("studiolink.v1 t/T/designs/D"), record("t/T/s/S/studiolinks/E1")]);
        ask.sla = Some(sla);
        assert_eq!(world.split(ask).await, Ok((2, 0, false)));
        let stayed = world.dequeue(STUDIO, 10).await.unwrap();
        assert_eq!((stayed.rows[0].lane, stayed.rows[0].sla), (leased.rows[0].lane, START));
        let opened = world.dequeue(STUDIO, 10).await.unwrap();
        assert_eq!(opened.rows[0].sla, sla);
        let lane = world.lease_check(&opened.lease).await.unwrap();
        assert_eq!((lane.kind, lane.tracking_id.unwrap().as_str()), (LaneKind::Split, "studio-42"));
        assert!(!world.is_operation("T", "studio-42").await, "no ledger, no operation");
    }

    pub async fn children_are_checked(mut world: World) {
        world.inject(refresh("op-1")).await.unwrap();
        let parents = world.dequeue(ECC, 10).await.unwrap();
        for (child, code) in [
            (record("t/U/s/S/ecclinks/E1"), ErrorCode::PermissionDenied),
            (parent("studiolink.v1 t/T/designs/D"), ErrorCode::PermissionDenied),
            (parent("ecclink.v1 t/T/s/S/eccmodels/M by_eccmodel"), ErrorCode::InvalidArgument),
        ] {
            let refusal = world.split(into(&parents, vec![record("t/T/s/S/ecclinks/E0"), child])).await.unwrap_err();
            assert_eq!((refusal.code, refusal.field.as_str()), (code, "items[1]"));
        }
        let mut foreign = into(&parents, links(0..1));
        foreign.id += 100;
        assert_eq!(world.split(foreign).await.unwrap_err().code, ErrorCode::StaleLease);
        let counts = world.progress("op-1").await.unwrap().of(ECC);
        assert_eq!((counts.parents.leased, counts.labels.enqueued), (1, 0));
    }

    pub async fn parents_wait_while_the_lane_is_full(mut world: World) {
        let mut ask = refresh("op-1");
        ask.items = (0..4).map(|n| parent(&format!("ecclink.v1 t/T/s/S/eccmodels/M{n} by_eccmodel"))).collect();
        world.inject(ask).await.unwrap();
        for n in 0..3 {
            let parents = world.dequeue(ECC, 10).await.unwrap();
            assert_eq!(parents.rows.len(), 1);
            let from = n * limits::SPLIT_CHILDREN_MAX;
            world.split(into(&parents, links(from..from + limits::SPLIT_CHILDREN_MAX))).await.unwrap();
        }
        // 12,288 labels are ready: the fourth parent waits until fewer than 10,000 are.
        let labels = world.dequeue(ECC, 2_000).await.unwrap();
        assert_eq!(labels.rows.len(), 2_000);
        world.complete_all(&labels, &Outcome::Done).await;
        let labels = world.dequeue(ECC, 288).await.unwrap();
        assert!(!labels.rows[0].item.target.is_parent(), "10,288 are still ready");
        world.complete_all(&labels, &Outcome::Done).await;
        let labels = world.dequeue(ECC, 1).await.unwrap();
        assert!(!labels.rows[0].item.target.is_parent(), "10,000 are still ready");
        assert!(world.dequeue(ECC, 10).await.unwrap().rows[0].item.target.is_parent());
    }

    pub async fn a_parent_is_claimed_alone_and_blocks_no_label(mut world: World) {
        let mut ask = refresh("op-1");
        ask.items = (0..2).map(|n| parent(&format!("ecclink.v1 t/T/s/S/eccmodels/M{n} by_eccmodel"))).collect();
        world.inject(ask).await.unwrap();
        let first = world.dequeue(ECC, 10).await.unwrap();
        assert_eq!(first.rows.len(), 1);
        assert!(world.dequeue(ECC, 10).await.is_none(), "the lane has a leased parent");
        let lane = world.lease_check(&first.lease).await.unwrap().lane;
        let mut label = told("t/T/s/S/ecclinks/E9", START.plus_ms(MINUTE));
        label.lane = Some(lane);
        world.announce(vec![label]).await.unwrap();
        let labels = world.dequeue(ECC, 10).await.unwrap();
        assert_eq!(labels.urns(), ["t/T/s/S/ecclinks/E9"], "the second parent does not stand in the way");
        world.split(into(&first, links(0..1))).await.unwrap();
        assert!(world.dequeue(ECC, 10).await.unwrap().rows[0].item.target.is_parent());
    }
}
