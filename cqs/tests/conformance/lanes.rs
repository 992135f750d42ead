//! Which lane is answered from, through the whole service; the rule itself is tested in `tests/choice.rs`.

use crate::each_port;

each_port!(
    inside_a_lane_by_sla_then_id,
    the_earliest_head_is_answered,
    an_overdue_operation_takes_at_most_half,
    live_load_cannot_starve_an_operation,
    operations_go_round,
);

mod scenario_impl {
    use domain::Outcome;

    use crate::world::*;

    pub async fn inside_a_lane_by_sla_then_id(mut world: World) {
        world.write(&["t/T/s/S/ecclinks/E3"], START.plus_ms(2 * MINUTE)).await;
        world.write(&["t/T/s/S/ecclinks/E2", "t/T/s/S/ecclinks/E1"], START.plus_ms(MINUTE)).await;
        world.write(&["t/T/s/S/ecclinks/E4"], START).await;
        let leased = world.dequeue(ECC, 3).await.unwrap();
        assert_eq!(leased.urns(), ["t/T/s/S/ecclinks/E4", "t/T/s/S/ecclinks/E2", "t/T/s/S/ecclinks/E1"]);
        assert_eq!(world.dequeue(ECC, 3).await.unwrap().urns(), ["t/T/s/S/ecclinks/E3"]);
    }

    pub async fn the_earliest_head_is_answered(mut world: World) {
        world.write(&["t/T/s/S/ecclinks/E1"], START.plus_ms(2 * MINUTE)).await;
        world.write(&["t/U/s/S/ecclinks/E1"], START.plus_ms(MINUTE)).await;
        world.write(&["t/V/s/S/ecclinks/E1"], START.plus_ms(3 * MINUTE)).await;
        let mut order = Vec::new();
        while let Some(leased) = world.dequeue(ECC, 10).await {
            assert_eq!(leased.rows.len(), 1, "one lane's rows only");
            order.extend(leased.urns());
        }
        assert_eq!(order, ["t/U/s/S/ecclinks/E1", "t/T/s/S/ecclinks/E1", "t/V/s/S/ecclinks/E1"]);
    }

    /// An operation with `labels` labels at an SLA, and as many ordinary ones at another; then 40 answers of one label.
    async fn answers(world: &mut World, (bulk, ordinary): (i64, i64)) -> Vec<bool> {
        let mut ask = refresh("op-1");
        ask.sla = Some(START.plus_ms(bulk));
        world.inject(ask).await.unwrap();
        let parents = world.dequeue(ECC, 10).await.unwrap();
        world.split(into(&parents, links(0..60))).await.unwrap();
        let fresh: Vec<String> = (0..60).map(|n| format!("t/T/s/S/ecclinks/F{n}")).collect();
        world.write(&fresh.iter().map(String::as_str).collect::<Vec<_>>(), START.plus_ms(ordinary)).await;
        let mut answers = Vec::new();
        for _ in 0..40 {
            let leased = world.dequeue(ECC, 1).await.unwrap();
            answers.push(leased.urns()[0].contains("/F"));
            world.complete_all(&leased, &Outcome::Done).await;
        }
        answers
    }

    pub async fn an_overdue_operation_takes_at_most_half(mut world: World) {
        let answers = answers(&mut world, (0, 10 * MINUTE)).await;
        assert!(!answers[0], "the earliest head is the operation's");
        for window in answers.windows(8) {
            assert_eq!(window.iter().filter(|ordinary| **ordinary).count(), 4);
        }
    }

    pub async fn live_load_cannot_starve_an_operation(mut world: World) {
        let answers = answers(&mut world, (10 * MINUTE, 0)).await;
        for window in answers.windows(8) {
            assert_eq!(window.iter().filter(|ordinary| **ordinary).count(), 7);
        }
    }

    pub async fn operations_go_round(mut world: World) {
        let ops = ["op-1", "op-2", "op-3"];
        for (n, op) in ops.iter().enumerate() {
            let mut ask = refresh(op);
            ask.sla = Some(START.plus_ms(i64::try_from(n).unwrap() * MINUTE));
            world.inject(ask).await.unwrap();
        }
        for _ in ops {
            let parents = world.dequeue(ECC, 10).await.unwrap();
            world.split(into(&parents, links(0..10))).await.unwrap();
        }
        for _ in 0..5 {
            let mut served = Vec::new();
            for _ in ops {
                let leased = world.dequeue(ECC, 1).await.unwrap();
                served.push(leased.rows[0].tracking_id.as_ref().unwrap().to_string());
            }
            served.sort_unstable();
            assert_eq!(served, ops, "each of them once in three answers, whatever its SLA");
        }
    }
}
