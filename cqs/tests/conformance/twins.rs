//! Random steps against both twins: equal answers, and the ledger's equation after every step.

use std::collections::BTreeMap;

use domain::{Outcome, Refusal, Timestamp};
use proptest::prelude::*;

use crate::world::*;
use cqs::store::SplitAsk;

#[derive(Debug, Clone)]
enum Step {
    Announce { queue: usize, label: usize, ahead_ms: i64, in_lane_of: Option<usize>, quiet: bool },
    Inject { operation: usize, ahead_ms: i64 },
    Dequeue { queue: usize, max: usize },
    Complete { lease: usize, outcomes: Vec<u8> },
    Split { lease: usize, labels: std::ops::Range<usize>, unfinished: bool },
    Extend { lease: usize },
    Pass { ms: i64 },
    Maintain,
    Restart,
}

const QUEUES: [&str; 4] = [ECC, STUDIO, MERGER, EXPORTER];

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let ahead = prop_oneof![Just(0_i64), Just(SECOND), Just(MINUTE)];
    // Mostly one plain queue and the one that is exclusive by store, so that steps meet each other.
    let queue = || prop_oneof![3 => Just(0_usize), 1 => Just(1), 1 => Just(2), 3 => Just(3)];
    let lease = || prop_oneof![3 => Just(0_usize), 1 => 1..4_usize];
    let step = prop_oneof![
        4 => (queue(), 0..6_usize, ahead.clone(), prop::option::of(0..3_usize), any::<bool>()).prop_map(
            |(queue, label, ahead_ms, in_lane_of, quiet)| Step::Announce { queue, label, ahead_ms, in_lane_of, quiet }
        ),
        1 => (0..3_usize, ahead).prop_map(|(operation, ahead_ms)| Step::Inject { operation, ahead_ms }),
        6 => (queue(), 1..4_usize).prop_map(|(queue, max)| Step::Dequeue { queue, max }),
        5 => (lease(), prop::collection::vec(0..6_u8, 4)).prop_map(|(lease, outcomes)| Step::Complete { lease, outcomes }),
        3 => (lease(), 0..4_usize, 0..4_usize, any::<bool>()).prop_map(|(lease, from, count, unfinished)| {
            Step::Split { lease, labels: from..from + count, unfinished }
        }),
        1 => lease().prop_map(|lease| Step::Extend { lease }),
        2 => prop_oneof![Just(1_i64), Just(SECOND), Just(LEASE_MS), Just(5 * MINUTE)].prop_map(|ms| Step::Pass { ms }),
        1 => Just(Step::Maintain),
        1 => Just(Step::Restart),
    ];
    prop::collection::vec(step, 20..120)
}

/// What a run remembers to choose its next step from; equal on both twins as long as their answers are.
#[derive(Default)]
struct Memory {
    leases: Vec<Leased>,
    lanes: BTreeMap<usize, i64>,
}

fn urn(queue: usize, label: usize) -> String {
    let collection = ["ecclinks", "studiolinks", "ecceslimages", "eslimages"][queue];
    format!("t/T/s/{}/{collection}/E{label}", ["A", "B"][label % 2])
}

fn outcome(code: u8, now: Timestamp) -> Outcome {
    match code {
        0 | 1 => Outcome::Done,
        2 => Outcome::Unchanged,
        3 => retry(),
        4 => Outcome::Defer { until: now.plus_ms(SECOND), cause: "later".to_owned() },
        _ => failed("broken"),
    }
}

/// Runs a step; its answer as text, so that twins' answers can be compared.
async fn run(world: &mut World, memory: &mut Memory, step: Step) -> String {
    let text = |answer: Result<String, Refusal>| answer.unwrap_or_else(|refusal| refusal.to_string());
    match step {
        Step::Announce { queue, label, ahead_ms, in_lane_of, quiet } => {
            let mut told = told(&urn(queue, label), world.now().plus_ms(ahead_ms));
            told.tracking_id = Some(format!("write-{label}").parse().unwrap());
            told.lane = in_lane_of.and_then(|operation| memory.lanes.get(&operation).copied());
            if quiet {
                told.announce = cqs::announce::Announce::OnlyIfUndelivered;
            }
            text(world.announce(vec![told]).await.map(|woken| format!("{woken:?}")))
        }
        Step::Inject { operation, ahead_ms } => {
            let mut ask = refresh(&format!("op-{operation}"));
            ask.sla = Some(START.plus_ms(ahead_ms));
            text(world.inject(ask).await.map(|answer| format!("{answer:?}")))
        }
        Step::Dequeue { queue, max } => {
            let found = world.dequeue(QUEUES[queue], max).await;
            if let Some(leased) = &found {
                let lane = world.lease_check(&leased.lease).await.unwrap();
                if let Some(tracking_id) = lane.tracking_id.as_ref().and_then(|id| id.as_str().strip_prefix("op-")) {
                    memory.lanes.insert(tracking_id.parse().unwrap(), lane.lane);
                }
                memory.leases.insert(0, leased.clone());
                memory.leases.truncate(4);
            }
            format!("{found:?}")
        }
        Step::Complete { lease, outcomes } => {
            let Some(leased) = memory.leases.get(lease) else { return String::new() };
            let now = world.now();
            let outcomes = leased.ids().into_iter().zip(outcomes).map(|(id, code)| (id, outcome(code, now))).collect();
            text(world.complete(&leased.lease, outcomes).await.map(|dead| dead.to_string()))
        }
        Step::Split { lease, labels, unfinished } => {
            let Some(leased) = memory.leases.get(lease) else { return String::new() };
            let children = labels.map(|label| record(&urn(0, label))).collect();
            let next_cursor = if unfinished { "E1".to_owned() } else { String::new() };
            text(world.split(SplitAsk { next_cursor, ..into(leased, children) }).await.map(|done| format!("{done:?}")))
        }
        Step::Extend { lease } => {
            let Some(leased) = memory.leases.get(lease) else { return String::new() };
            text(world.extend(&leased.lease, LEASE_MS).await.map(|()| String::new()))
        }
        Step::Pass { ms } => {
            world.clock.advance_ms(ms);
            String::new()
        }
        Step::Maintain => format!("{:?}", world.store.maintain(world.now()).await.unwrap()),
        Step::Restart => {
            world.restart().await;
            String::new()
        }
    }
}

/// Every operation's progress; its ledger must balance, and it is finished exactly when nothing of it is open.
async fn ledgers(world: &World) -> Vec<Option<Progress>> {
    let mut all = Vec::new();
    for operation in 0..3 {
        let progress = world.progress(&format!("op-{operation}")).await;
        if let Some(progress) = &progress {
            progress.assert_balanced();
            let open: i64 = progress.queues.iter().map(|counts| counts.labels.open() + counts.parents.open()).sum();
            assert!(progress.queues.iter().all(|counts| {
                [counts.labels, counts.parents].iter().all(|counts| counts.waiting >= 0 && counts.leased >= 0)
            }));
            assert_eq!(progress.finished_at.is_some(), open == 0, "{progress:?}");
        }
        all.push(progress);
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn twins_agree(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut memory = (World::new(Port::Memory).await, Memory::default());
            let mut sqlite = (World::new(Port::Sqlite).await, Memory::default());
            for step in steps {
                let one = run(&mut memory.0, &mut memory.1, step.clone()).await;
                let two = run(&mut sqlite.0, &mut sqlite.1, step.clone()).await;
                assert_eq!(one, two, "{step:?}");
                assert_eq!(ledgers(&memory.0).await, ledgers(&sqlite.0).await, "{step:?}");
            }
        });
    }
}
