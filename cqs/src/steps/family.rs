//! An operation and its retries, and theirs, counted as one: what failed and was handled again is no failure any more.
//!
//! Invariants
//! - A page of operations costs a few statements more, however many of them were retried: one a generation, the counts of
//!   all retries together, and one for each retry that is under way, as for each operation of the page. None where nothing
//!   was retried.
//! - What is not looked at is told as missing, never guessed.

use std::collections::{BTreeMap, BTreeSet};

use domain::{QueueName, Timestamp};

use super::operation::{in_flow, members};
use crate::{
    StoreError,
    model::{Family, Member, Queue, QueueCounts, RetryRule, StageReport, State},
    unit::Unit,
};

/// Retries of a page of operations that are looked at: as much as five pages.
const RETRIES_MAX: usize = 1_000;
/// Retries of retries that are looked at: one statement each.
const GENERATIONS_MAX: usize = 8;

/// The families of those operations of a page that were retried, by lane. `own`: the page's operations; `rules`: those
/// that fill them or take from them.
pub(super) async fn families<U: Unit>(
    unit: &mut U,
    (own, rules): (&BTreeMap<i64, Member>, &[RetryRule]),
    (queues, now): (&[Queue], Timestamp),
) -> Result<BTreeMap<i64, Family>, StoreError> {
    let mut known: BTreeSet<i64> = own.keys().copied().collect();
    let retried: Vec<i64> = own.keys().copied().filter(|lane| takers(rules, *lane).next().is_some()).collect();
    let mut rules: BTreeMap<(i64, i64), RetryRule> =
        rules.iter().map(|rule| ((rule.lane, rule.queue), rule.clone())).collect();
    let mut below: Vec<i64> = Vec::new();
    for _ in 0..GENERATIONS_MAX {
        let room = RETRIES_MAX.saturating_sub(below.len());
        let unknown = rules.values().filter(|rule| known.contains(&rule.parent_lane) && !known.contains(&rule.lane));
        let next: BTreeSet<i64> = unknown.map(|rule| rule.lane).collect();
        let next: Vec<i64> = next.into_iter().take(room).collect();
        if next.is_empty() {
            break;
        }
        rules.extend(unit.retry_of(&next).await?.into_iter().map(|rule| ((rule.lane, rule.queue), rule)));
        known.extend(&next);
        below.extend(next);
    }
    let rules: Vec<RetryRule> = rules.into_values().collect();
    let found = if below.is_empty() { BTreeMap::new() } else { members(unit, &below, (&rules, queues, now)).await? };
    let member = |lane: i64| own.get(&lane).or_else(|| found.get(&lane));
    let mut flow = queues.to_vec();
    in_flow(&mut flow);
    let place = |name: &QueueName| flow.iter().position(|queue| queue.name == *name);
    let mut families = BTreeMap::new();
    for lane in retried {
        if let Some(mut family) = family(lane, &rules, member) {
            family.queues.sort_by_key(|counts| place(&counts.queue));
            families.insert(lane, family);
        }
    }
    Ok(families)
}

/// Lanes of the retries that take from that lane.
fn takers(rules: &[RetryRule], lane: i64) -> impl Iterator<Item = i64> {
    rules.iter().filter(move |rule| rule.parent_lane == lane).map(|rule| rule.lane)
}

fn family<'m>(root: i64, rules: &[RetryRule], member: impl Fn(i64) -> Option<&'m Member>) -> Option<Family> {
    let (mut met, mut next) = (BTreeSet::from([root]), vec![root]);
    let (mut found, mut complete) = (Vec::new(), true);
    while let Some(lane) = next.pop() {
        match member(lane) {
            Some(member) => found.push(member),
            None => complete = false,
        }
        next.extend(takers(rules, lane).filter(|taker| met.insert(*taker)));
    }
    (found.len() > 1 || !complete).then(|| counted(&found, complete))
}

/// All of them counted as one.
fn counted(members: &[&Member], complete: bool) -> Family {
    let mut queues: Vec<QueueCounts> = Vec::new();
    let mut stages: BTreeMap<QueueName, StageReport> = BTreeMap::new();
    for (index, member) in members.iter().enumerate() {
        for counts in &member.queues {
            // The first one gave it back to an operation that is not among these.
            let counts = if index == 0 { counts.clone() } else { kept(counts) };
            match queues.iter_mut().find(|sum| sum.queue == counts.queue) {
                Some(sum) => add(sum, &counts),
                None => queues.push(counts),
            }
        }
        for stage in &member.stages {
            match stages.get_mut(&stage.queue) {
                Some(sum) => add_stage(sum, stage),
                None => drop(stages.insert(stage.queue.clone(), stage.clone())),
            }
        }
    }
    queues.iter_mut().for_each(moved);
    Family {
        operations: members.len(),
        complete,
        state: state(members, &queues),
        expansion_complete: members.iter().all(|member| member.expansion_complete),
        queues,
        stages: stages.into_values().collect(),
    }
}

fn state(members: &[&Member], queues: &[QueueCounts]) -> State {
    let is_over = |state: State| matches!(state, State::Succeeded | State::FinishedWithFailures | State::Cancelled);
    if !members.iter().all(|member| is_over(member.state)) {
        State::Running
    } else if queues.iter().any(|queue| queue.labels.failed + queue.parents.failed > 0) {
        State::FinishedWithFailures
    } else if members.iter().any(|member| member.state == State::Cancelled) {
        State::Cancelled
    } else {
        State::Succeeded
    }
}

fn add(sum: &mut QueueCounts, more: &QueueCounts) {
    sum.labels += more.labels;
    sum.parents += more.parents;
    sum.labels_retried += more.labels_retried;
    sum.parents_retried += more.parents_retried;
    sum.retried_handed_over += more.retried_handed_over;
}

/// What a retry gave back counts where it failed, and no more where it was cancelled.
fn kept(counts: &QueueCounts) -> QueueCounts {
    let mut kept = counts.clone();
    kept.labels.enqueued -= counts.labels_given_back;
    kept.labels.cancelled -= counts.labels_given_back;
    kept.parents.enqueued -= counts.parents_given_back;
    kept.parents.cancelled -= counts.parents_given_back;
    kept
}

/// What a retry took over was enqueued twice, and did not fail in the end where it failed first.
fn moved(sum: &mut QueueCounts) {
    sum.labels.enqueued -= sum.labels_retried;
    sum.labels.failed -= sum.labels_retried;
    sum.labels.failed_handed_over -= sum.retried_handed_over;
    sum.parents.enqueued -= sum.parents_retried;
    sum.parents.failed -= sum.parents_retried;
}

fn add_stage(sum: &mut StageReport, more: &StageReport) {
    sum.waiting_since = match (sum.waiting_since, more.waiting_since) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    };
    sum.milli_labels_per_s = match (sum.milli_labels_per_s, more.milli_labels_per_s) {
        (Some(one), Some(other)) => Some(one.saturating_add(other)),
        (one, other) => one.or(other),
    };
}

#[cfg(test)]
mod tests {
    use domain::ServiceName;

    use super::*;
    use crate::model::Counts;

    fn queue(service: ServiceName, (enqueued, done, failed, retried): (i64, i64, i64, i64)) -> QueueCounts {
        QueueCounts {
            queue: service.queue().unwrap(),
            labels: Counts { enqueued, done, failed, waiting: enqueued - done - failed, ..Counts::default() },
            parents: Counts::default(),
            labels_retried: retried,
            parents_retried: 0,
            retried_handed_over: 0,
            labels_given_back: 0,
            parents_given_back: 0,
        }
    }

    fn member(state: State, queues: Vec<QueueCounts>) -> Member {
        Member { state, expansion_complete: true, queues, stages: Vec::new() }
    }

    fn rule(lane: i64, parent_lane: i64) -> RetryRule {
        RetryRule {
            lane,
            queue: 1,
            parent_lane,
            tracking_id: "retry".parse().unwrap(),
            parent_tracking_id: "parent".parse().unwrap(),
            cause: None,
            up_to: 0,
            position: 0,
            labels: 0,
            parents: 0,
            handed_over: 0,
            labels_given_back: 0,
            parents_given_back: 0,
            done: true,
        }
    }

    use ServiceName::{EccImageRender as Ecc, EslImageMerger as Merger, HardwareExporter as Exporter};

    /// 100 labels: 10 cannot be rendered, 5 more cannot be exported; all are retried, and 2 fail again.
    fn two() -> Vec<Member> {
        vec![
            member(
                State::FinishedWithFailures,
                vec![queue(Ecc, (100, 90, 10, 10)), queue(Merger, (90, 90, 0, 0)), queue(Exporter, (90, 85, 5, 5))],
            ),
            member(
                State::FinishedWithFailures,
                vec![queue(Ecc, (10, 8, 2, 0)), queue(Merger, (8, 8, 0, 0)), queue(Exporter, (13, 13, 0, 0))],
            ),
        ]
    }

    fn counted_of(members: &[Member]) -> Family {
        counted(&members.iter().collect::<Vec<_>>(), true)
    }

    #[test]
    fn what_was_handled_again_is_no_failure_any_more() {
        let family = counted_of(&two());
        assert_eq!((family.state, family.operations), (State::FinishedWithFailures, 2));
        let counts: Vec<_> = family.queues.iter().map(|queue| queue.labels).collect();
        let of = |(enqueued, done, failed)| Counts { enqueued, done, failed, ..Counts::default() };
        assert_eq!(counts, [of((100, 98, 2)), of((98, 98, 0)), of((98, 98, 0))]);
    }

    #[test]
    fn it_runs_until_each_is_over_and_succeeds_without_failures_only() {
        let mut members = two();
        members[1].queues[0].labels_retried = 2;
        members.push(member(State::Running, vec![queue(Ecc, (2, 0, 0, 0))]));
        assert_eq!(counted_of(&members).state, State::Running);
        members[2] = member(State::Succeeded, vec![queue(Ecc, (2, 2, 0, 0))]);
        assert_eq!(counted_of(&members).state, State::Succeeded);
        members.push(member(State::Cancelled, Vec::new()));
        assert_eq!(counted_of(&members).state, State::Cancelled);
    }

    #[test]
    fn each_is_met_once_and_what_was_not_looked_at_is_missing() {
        let all: BTreeMap<i64, Member> = (1..=4).zip(two().into_iter().cycle()).collect();
        // Two retries of the first, one of the second; of two queues one comes twice.
        let rules = [rule(2, 1), rule(3, 1), rule(4, 2), rule(4, 2)];
        let of = |root: i64, known: i64| family(root, &rules, |lane| all.get(&lane).filter(|_| lane <= known));
        let found = |family: Option<Family>| family.map(|family| (family.operations, family.complete));
        assert_eq!([of(1, 4), of(2, 4), of(4, 4)].map(found), [Some((4, true)), Some((2, true)), None]);
        assert_eq!([of(1, 3), of(2, 3)].map(found), [Some((3, false)), Some((1, false))]);
    }
}
