//! Random steps against all twins: equal answers, and the ledger's equation after every step.

use std::collections::BTreeMap;

use domain::{Evidence, Outcome, Refusal, ServiceName, Timestamp};
use proptest::prelude::*;

use crate::{
    failures_world::{Wanted, retry_of},
    world::*,
};
use cqs::{
    model::{Action, Control, ControlAsk, Counts, LimitChange, Limits, OperationReport, State, StopWhen},
    store::{ApprovalAsk, BrakeAsk, SplitAsk},
};

#[derive(Debug, Clone)]
enum Step {
    Announce { queue: usize, label: usize, ahead_ms: i64, in_lane_of: Option<usize>, quiet: bool },
    Inject { operation: usize, ahead_ms: i64 },
    Dequeue { queue: usize, max: usize },
    Further { lease: usize },
    Complete { lease: usize, outcomes: Vec<u8> },
    Split { lease: usize, labels: std::ops::Range<usize>, unfinished: bool },
    Extend { lease: usize },
    Retry { operation: usize, retry: usize, one_cause: bool },
    Fates { label: usize },
    Pass { ms: i64 },
    Control { operation: usize, who: usize, action: usize },
    Brake { on: bool },
    Maintain,
    Clear,
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
        2 => lease().prop_map(|lease| Step::Further { lease }),
        5 => (lease(), prop::collection::vec(0..10_u8, 4)).prop_map(|(lease, outcomes)| Step::Complete { lease, outcomes }),
        3 => (lease(), 0..4_usize, 0..4_usize, any::<bool>()).prop_map(|(lease, from, count, unfinished)| {
            Step::Split { lease, labels: from..from + count, unfinished }
        }),
        1 => lease().prop_map(|lease| Step::Extend { lease }),
        2 => (0..5_usize, 3..5_usize, any::<bool>())
            .prop_map(|(operation, retry, one_cause)| Step::Retry { operation, retry, one_cause }),
        1 => (0..6_usize).prop_map(|label| Step::Fates { label }),
        2 => prop_oneof![Just(1_i64), Just(SECOND), Just(LEASE_MS), Just(5 * MINUTE)].prop_map(|ms| Step::Pass { ms }),
        3 => (0..3_usize, 0..2_usize, 0..9_usize)
            .prop_map(|(operation, who, action)| Step::Control { operation, who, action }),
        1 => prop::bool::weighted(0.3).prop_map(|on| Step::Brake { on }),
        1 => Just(Step::Maintain),
        1 => Just(Step::Clear),
        1 => Just(Step::Restart),
    ];
    // A platform with three operations under way; more histories meet their controls then.
    let start =
        (0..3).map(|operation| Step::Inject { operation, ahead_ms: 0 }).chain((0..2).flat_map(|_| {
            [Step::Dequeue { queue: 0, max: 1 }, Step::Split { lease: 0, labels: 0..4, unfinished: false }]
        }));
    let start: Vec<Step> = start.collect();
    prop::collection::vec(step, 20..120).prop_map(move |steps| start.iter().cloned().chain(steps).collect())
}

/// What a run remembers to choose its next step from; equal on all twins as long as their answers are.
#[derive(Default)]
struct Memory {
    leases: Vec<Leased>,
    lanes: BTreeMap<usize, i64>,
    /// When labels of a throttled operation were leased in a queue last, and under which controls.
    throttled: BTreeMap<(String, String), (Timestamp, Control)>,
    seen: Seen,
}

impl Memory {
    /// Remembers a lease; of the older ones as many as the next steps may name.
    fn keep(&mut self, leased: &Leased) {
        self.leases.insert(0, leased.clone());
        self.leases.truncate(4);
    }
}

/// Ids in the order in which they were first seen: a twin gives what ids it likes, as long as the same thing keeps the
/// same one.
#[derive(Default)]
struct Seen(BTreeMap<(&'static str, i64), usize>);

impl Seen {
    fn id(&mut self, of: &'static str, id: i64) -> i64 {
        let next = self.0.keys().filter(|(other, _)| *other == of).count();
        i64::try_from(*self.0.entry((of, id)).or_insert(next)).unwrap()
    }

    fn leased(&mut self, leased: &Leased) -> Leased {
        let mut leased = leased.clone();
        leased.lease.generation = self.id("lease", leased.lease.generation);
        for row in &mut leased.rows {
            row.id = self.id("row", row.id);
            row.lane = self.id("lane", row.lane);
        }
        leased
    }
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
        6 | 7 => Outcome::Follow { until: now.plus_ms(SECOND), cause: "on its way".to_owned(), handed_over: code == 6 },
        8 => Outcome::Confirmed { changed: true, evidence: Evidence::Transferred },
        9 => Outcome::Confirmed { changed: false, evidence: Evidence::Displayed },
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
            // One has a failure budget, one is limited, one needs an approval.
            match operation {
                0 => ask.terms.stop_when = Some(StopWhen { failure_ratio_percent: 0, min_sample: 1 }),
                1 => ask.terms.limits = Limits { throttle_per_s: Some(2), max_in_flight: Some(2) },
                _ => ask.approval = Some(ApprovalAsk { label_count: 7, expires_at: START.plus_ms(5 * MINUTE) }),
            }
            text(world.inject(ask).await.map(|answer| format!("{answer:?}")))
        }
        Step::Dequeue { queue, max } => dequeue(world, memory, (queue, max)).await,
        Step::Further { lease } => further(world, memory, lease).await,
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
        Step::Retry { operation, retry, one_cause } => {
            let of = ["op-0", "op-1", "op-2", "op-3", "op-4"][operation];
            let wanted = Wanted { of, queue: "", cause: if one_cause { "broken" } else { "" } };
            text(world.retry(retry_of(wanted, &format!("op-{retry}"))).await.map(|answer| format!("{answer:?}")))
        }
        Step::Fates { label } => {
            let urns: Vec<String> = (0..4).map(|queue| urn(queue, label)).collect();
            let urns: Vec<&str> = urns.iter().map(String::as_str).collect();
            let mut fates: Vec<String> = world.fates(&urns).await.iter().map(|fate| format!("{fate:?}")).collect();
            fates.sort_unstable();
            fates.join(" ")
        }
        Step::Pass { ms } => {
            world.clock.advance_ms(ms);
            String::new()
        }
        Step::Control { operation, who, action } => control(world, (operation, who, action)).await,
        Step::Brake { on } => brake(world, on).await,
        Step::Maintain => format!("{:?}", world.store.maintain(world.now()).await.unwrap()),
        Step::Clear => format!("{:?}", world.store.clear(world.now()).await.unwrap()),
        Step::Restart => {
            world.restart().await;
            String::new()
        }
    }
}

/// Leases what comes first in a queue, and remembers it.
async fn dequeue(world: &mut World, memory: &mut Memory, (queue, max): (usize, usize)) -> String {
    let found = world.dequeue(QUEUES[queue], max).await;
    if let Some(leased) = &found {
        allowed_by_its_controls(world, memory, leased).await;
        let lane = world.lease_check(&leased.lease).await.unwrap();
        if let Some(tracking_id) = lane.tracking_id.as_ref().and_then(|id| id.as_str().strip_prefix("op-")) {
            memory.lanes.insert(tracking_id.parse().unwrap(), lane.lane);
        }
        memory.keep(leased);
    }
    format!("{:?}", found.map(|leased| memory.seen.leased(&leased)))
}

/// Leases more to a lease that is remembered.
async fn further(world: &mut World, memory: &mut Memory, lease: usize) -> String {
    let Some(leased) = memory.leases.get(lease).cloned() else { return String::new() };
    match world.further(&leased.lease, 2).await {
        Ok((more, give_way)) => {
            if !more.rows.is_empty() {
                allowed_by_its_controls(world, memory, &more).await;
                memory.keep(&more);
            }
            format!("{:?} {give_way}", memory.seen.leased(&more))
        }
        Err(refusal) => refusal.to_string(),
    }
}

async fn control(world: &World, (operation, who, action): (usize, usize, usize)) -> String {
    let ask = ControlAsk {
        service: ServiceName::OperatorGateway,
        tenant: "T".parse().unwrap(),
        tracking_id: format!("op-{operation}").parse().unwrap(),
        by: ["ann@example", "bob@example"][who].parse().unwrap(),
        reason: "because".parse().unwrap(),
        action: action_of(action, world.now()),
        request_digest: String::new(),
    };
    match world.store.control(ask, world.now()).await {
        Ok(mut done) => {
            done.report = without_ids(done.report);
            format!("{done:?}")
        }
        Err(error) => error.to_string(),
    }
}

async fn brake(world: &World, on: bool) -> String {
    let ask = BrakeAsk {
        on,
        service: ServiceName::OperatorGateway,
        by: "ann@example".parse().unwrap(),
        reason: "because".parse().unwrap(),
        request_digest: String::new(),
    };
    format!("{:?}", world.store.set_brake(ask, world.now()).await.unwrap())
}

fn action_of(action: usize, now: Timestamp) -> Action {
    let until = Some(now.plus_ms(2 * MINUTE));
    let limits = |throttle_per_s, max_in_flight, until| Action::SetLimits { throttle_per_s, max_in_flight, until };
    match action {
        0 => Action::Pause { until: None },
        1 => Action::Pause { until },
        2 | 3 => Action::Resume,
        4 => Action::Cancel,
        5 => limits(LimitChange::To(8), LimitChange::Keep, until),
        6 => limits(LimitChange::Lift, LimitChange::To(1), None),
        7 => Action::Approve { break_glass: false },
        _ => Action::Decline,
    }
}

/// What is leased belongs to no operation that is stopped for any reason, and is within its limits.
async fn allowed_by_its_controls(world: &World, memory: &mut Memory, leased: &Leased) {
    let Some(tracking_id) = leased.rows[0].tracking_id.as_ref().filter(|id| id.as_str().starts_with("op-")) else {
        return;
    };
    let report = world.store.operation("T".parse().unwrap(), tracking_id.clone(), world.now()).await.unwrap().unwrap();
    assert!(matches!(report.state, State::Running), "{tracking_id} is {:?}", report.state);
    assert_eq!(world.store.brake().await.unwrap(), None, "the brake is on");
    let labels = leased.rows.iter().filter(|row| !row.item.target.is_parent()).count();
    let counts = report.queues.iter().find(|counts| counts.queue == leased.lease.queue).unwrap();
    let limits = report.control.limits;
    if labels > 0
        && let Some(most) = limits.max_in_flight
    {
        assert!(counts.labels.leased <= most, "{counts:?} in flight, {most} allowed");
    }
    if labels > 0
        && let Some(rate) = limits.throttle_per_s
    {
        assert!(i64::try_from(labels).unwrap() <= (rate / 4).max(1), "more than a portion");
        let key = (tracking_id.to_string(), leased.lease.queue.to_string());
        let before = memory.throttled.insert(key, (world.now(), report.control.clone()));
        // A changed limit opens at once, so only equal ones are compared.
        if let Some((before, _)) = before.filter(|(_, control)| *control == report.control) {
            assert!(world.now().ms_since(before) * rate >= 1_000, "two portions too soon after each other");
        }
    }
}

/// Every operation's progress; its ledger must balance, and it is finished exactly when nothing of it is open.
async fn ledgers(world: &World) -> Vec<Option<OperationReport>> {
    let mut all = Vec::new();
    // The last two are retries.
    for operation in 0..5 {
        let id = format!("op-{operation}").parse().unwrap();
        let report = world.store.operation("T".parse().unwrap(), id, world.now()).await.unwrap();
        if let Some(report) = &report {
            let counts = report.queues.iter().flat_map(|counts| [counts.labels, counts.parents]);
            let open: i64 = counts.clone().map(|counts| counts.open()).sum();
            assert!(counts.clone().all(|counts| counts.balanced()), "{report:?}");
            assert!(counts.clone().all(|counts| counts.waiting >= 0 && counts.leased >= 0), "{report:?}");
            let most = |counts: Counts| counts.open() + counts.cancelled;
            assert!(counts.clone().all(|counts| (0..=most(counts)).contains(&counts.handed_over)), "{report:?}");
            assert!(
                counts.clone().all(|counts| (0..=counts.failed).contains(&counts.failed_handed_over)),
                "{report:?}"
            );
            let by = |counts: Counts| counts.confirmed_by;
            assert!(counts.clone().all(|counts| by(counts).sum() <= counts.done), "{report:?}");
            assert!(counts.clone().all(|counts| by(counts).displayed <= counts.unchanged), "{report:?}");
            if open == 0 && report.control.cancelled.is_none() {
                assert!(counts.clone().all(|counts| counts.handed_over == 0), "{report:?}");
            }
            assert_eq!(report.operation.finished_at.is_some(), open == 0, "{report:?}");
            if report.control.cancelled.is_some() {
                assert!(counts.clone().all(|counts| counts.waiting == 0), "{report:?}");
            }
        }
        all.push(report.map(without_ids));
    }
    all
}

/// A twin gives what ids it likes.
fn without_ids(mut report: OperationReport) -> OperationReport {
    (report.operation.id, report.operation.lane) = (0, 0);
    for rule in report.lineage.rules.iter_mut().chain(&mut report.lineage.retries) {
        (rule.lane, rule.parent_lane) = (0, 0);
    }
    report
}

fn agree(steps: Vec<Step>, twin: Port) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut memory = (World::new(Port::Memory).await, Memory::default());
        let mut twin = (World::new(twin).await, Memory::default());
        for step in steps {
            let one = run(&mut memory.0, &mut memory.1, step.clone()).await;
            let two = run(&mut twin.0, &mut twin.1, step.clone()).await;
            assert_eq!(one, two, "{step:?}");
            assert_eq!(ledgers(&memory.0).await, ledgers(&twin.0).await, "{step:?}");
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn twins_agree(steps in steps()) {
        agree(steps, Port::Sqlite);
    }
}

proptest! {
    // Fewer: each has a database of its own and every statement goes to another process.
    #![proptest_config(ProptestConfig { cases: 8, max_shrink_iters: 16, ..ProptestConfig::default() })]

    #[test]
    fn twins_agree_on_postgres(steps in steps()) {
        agree(steps, Port::Postgres);
    }
}
