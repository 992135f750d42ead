//! Policy by itself: fates, batches, merges.

use domain::{DtoType, LaneKind, Outcome, SplitItem, Target, Timestamp, limits};
use proptest::prelude::*;

use super::{
    batch::batch,
    coalesce::{Arrival, plan},
    fate::{Fate, backoff_ms, of_lapse, of_outcome, of_restart, row_jitter},
};
use crate::model::{Company, Row};

const NOW: Timestamp = Timestamp::from_ms(1_000_000);

fn row(id: i64, sla: i64) -> Row {
    let urn = format!("t/T/s/S/ecclinks/E{id}").parse().unwrap();
    Row {
        id,
        lane: 1,
        store: None,
        item: SplitItem { dto_type: DtoType::EccLink, target: Target::Record(urn), alias: None },
        sla: Timestamp::from_ms(sla),
        tracking_id: None,
        attempts: 0,
        due_at: None,
        company: Company::Batch,
        cursor: String::new(),
        cause: String::new(),
        handed_over: false,
    }
}

fn waits(fate: Fate) -> Row {
    match fate {
        Fate::Waits(row) => *row,
        fate => panic!("{fate:?}"),
    }
}

fn ids(rows: &[Row]) -> Vec<i64> {
    rows.iter().map(|row| row.id).collect()
}

proptest! {
    #[test]
    fn backoff_doubles_from_a_second_to_five_minutes(attempts in 1..100_i32, jitter: u64) {
        let bound = (1_000_i64 << (attempts - 1).min(20)).min(300_000);
        let backoff = backoff_ms(attempts, jitter);
        prop_assert!((1..=bound).contains(&backoff), "{backoff} of {bound}");
    }

    #[test]
    fn a_batch_is_a_prefix_that_no_parent_precedes(slas in prop::collection::vec(0..5_i64, 0..8), parent in prop::option::of((0..5_i64, 0..10_i64)), alone in 0..8_usize) {
        let mut labels: Vec<Row> = slas.iter().zip(0..).map(|(sla, id)| row(id * 2, *sla)).collect();
        labels.sort_by_key(Row::order);
        if let Some(label) = labels.get_mut(alone) {
            label.company = Company::Alone { lapses: 0 };
        }
        let parent = parent.map(|(sla, id)| row(id * 2 + 1, sla));
        let taken = batch(labels.clone(), parent.clone());
        prop_assert_eq!(taken.is_empty(), labels.is_empty() && parent.is_none());
        if taken == parent.clone().into_iter().collect::<Vec<_>>() {
            prop_assert!(parent.is_none() || labels.iter().all(|label| label.order() > taken[0].order()));
            return Ok(());
        }
        prop_assert_eq!(&taken[..], &labels[..taken.len()]);
        prop_assert!(parent.iter().all(|parent| taken.iter().all(|label| label.order() < parent.order())));
        prop_assert!(taken.len() == 1 || taken.iter().all(|label| label.company == Company::Batch));
    }
}

#[test]
fn jitter_spreads_the_rows_of_one_call() {
    let mut waits: Vec<i64> = (0..100).map(|id| backoff_ms(8, row_jitter(1, id))).collect();
    waits.sort_unstable();
    waits.dedup();
    assert!(waits.len() > 95, "{}", waits.len());
}

#[test]
fn a_retry_counts_until_the_last_attempt() {
    let mut current = row(1, 0);
    for attempts in 1..limits::ATTEMPTS_MAX {
        current = waits(of_outcome(&current, Outcome::Retry { cause: "x".to_owned() }, NOW, 9));
        assert_eq!(current.attempts, attempts);
        assert!(current.due_at > Some(NOW));
    }
    let last = of_outcome(&current, Outcome::Retry { cause: "x".to_owned() }, NOW, 9);
    assert_eq!(last, Fate::Dead { cause: "x".to_owned() });
}

#[test]
fn a_restart_makes_a_suspect_only_of_what_it_meets_twice() {
    let once = waits(of_restart(&Row { attempts: 3, ..row(1, 0) }));
    assert_eq!((once.company, once.attempts, once.company.shares()), (Company::Returned, 3, true));
    assert_eq!(waits(of_restart(&once)).company, Company::Alone { lapses: 0 });
    assert_eq!(waits(of_lapse(&once)).company, Company::Alone { lapses: 0 });
    assert_eq!(waits(of_restart(&waits(of_restart(&once)))).company, Company::Alone { lapses: 1 });
}

#[test]
fn a_lapse_counts_apart_and_only_when_alone() {
    let first = waits(of_lapse(&Row { attempts: 3, ..row(1, 0) }));
    assert_eq!((first.company, first.attempts, first.due_at), (Company::Alone { lapses: 0 }, 3, None));
    let third = waits(of_lapse(&waits(of_lapse(&first))));
    assert_eq!(third.company, Company::Alone { lapses: 2 });
    assert!(matches!(of_lapse(&third), Fate::Dead { .. }));
    // Whoever reports on it is alive: it is trusted in company again.
    let back = waits(of_outcome(&third, Outcome::Retry { cause: "x".to_owned() }, NOW, 1));
    assert_eq!(back.company, Company::Batch);
}

#[test]
fn a_defer_to_the_past_is_due_now() {
    let outcome = Outcome::Defer { until: NOW.plus_ms(-5), cause: "x".to_owned() };
    assert_eq!(waits(of_outcome(&row(1, 0), outcome, NOW, 1)).due_at, None);
}

#[test]
fn fresh_changes_merge_with_waiting_rows_and_with_each_other() {
    let waiting = Row { attempts: 4, due_at: Some(NOW), cursor: "c".to_owned(), ..row(1, 50) };
    let tracked = |sla, id: &str| Row { id: 0, tracking_id: Some(id.parse().unwrap()), ..row(1, sla) };
    let other = |sla| Row { id: 0, ..row(2, sla) };
    let incoming = vec![tracked(70, "a"), other(9), tracked(60, "b"), other(5)];
    let planned = plan(vec![waiting.clone()], incoming.clone(), LaneKind::Ordinary, Arrival::Fresh);
    assert_eq!((planned.merged, planned.inserts.len(), planned.updates.len()), (3, 1, 1));
    assert_eq!(planned.inserts[0].sla.as_ms(), 5);
    let (before, after) = &planned.updates[0];
    assert_eq!(before, &waiting);
    assert_eq!((after.sla.as_ms(), after.attempts, after.due_at, after.cursor.as_str()), (50, 0, None, ""));
    assert_eq!(after.tracking_id.as_ref().unwrap().as_str(), "b");
    let in_operation = plan(vec![waiting], incoming, LaneKind::Operation, Arrival::Fresh);
    assert_eq!(in_operation.updates[0].1.tracking_id, None, "rows of other lanes keep the lane's");
}

#[test]
fn a_row_that_comes_back_yields_to_the_newer_change() {
    let newer = Row { id: 9, ..row(1, 50) };
    let back = Row { attempts: 3, due_at: Some(NOW), company: Company::Alone { lapses: 1 }, ..row(1, 20) };
    let planned = plan(vec![newer.clone()], vec![back], LaneKind::Ordinary, Arrival::Back);
    let expected = Row { sla: Timestamp::from_ms(20), company: Company::Alone { lapses: 1 }, ..newer };
    assert_eq!((planned.merged, ids(&planned.inserts)), (1, vec![]));
    assert_eq!(planned.updates[0].1, expected);
}
