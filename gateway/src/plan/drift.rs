//! What came and went between a plan and now.

use std::collections::BTreeSet;

use domain::{ErrorCode, Refusal};
use serde::Serialize;
use utoipa::ToSchema;

use super::Counted;

/// How what a trigger concerns now differs from what its plan counted. Labels are compared store by store, so that one
/// store's gain does not hide another's loss; stores beyond the first 200 are compared in one sum.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Drift {
    /// Labels the plan counted.
    planned: i64,
    /// Labels concerned now.
    now: i64,
    /// More labels, summed over the stores that have more.
    added: i64,
    /// Fewer labels, summed over the stores that have fewer.
    removed: i64,
    /// Stores that differ.
    stores_changed: usize,
}

impl Drift {
    /// From what a plan counted to what is counted now.
    pub(crate) fn between(planned: &Counted, now: &Counted) -> Self {
        // Beyond the last store that both list, the lists say nothing: a new store may have pushed others out.
        let ends = [planned, now].map(|counted| counted.stores.keys().next_back().filter(|_| counted.more_stores));
        let border = ends.into_iter().flatten().min();
        let listed = |store: &&String| border.is_none_or(|border| *store <= border);
        let stores: BTreeSet<&String> = planned.stores.keys().chain(now.stores.keys()).filter(listed).collect();
        let count = |counted: &Counted, store: &String| counted.stores.get(store).copied().unwrap_or(0);
        let mut drift = Self { planned: planned.labels, now: now.labels, added: 0, removed: 0, stores_changed: 0 };
        let mut rest = (planned.labels, now.labels);
        for store in stores {
            let (before, after) = (count(planned, store), count(now, store));
            rest = (rest.0 - before, rest.1 - after);
            drift.note(after - before);
        }
        drift.note(rest.1 - rest.0);
        drift
    }

    fn note(&mut self, difference: i64) {
        self.added += difference.max(0);
        self.removed += (-difference).max(0);
        self.stores_changed += usize::from(difference != 0);
    }

    /// Refuses what is beyond `max` labels, naming `max_drift`.
    pub(crate) fn within(&self, max: i64) -> Result<(), Refusal> {
        if self.added + self.removed <= max {
            return Ok(());
        }
        let message = format!(
            "{} labels were planned and {} are concerned now: {} came and {} went since, in {} stores, and at most {max} \
             may; make a new dry run, or allow more",
            self.planned, self.now, self.added, self.removed, self.stores_changed
        );
        Err(Refusal::new(ErrorCode::FailedPrecondition, message).at("max_drift"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(stores: &[(&str, i64)], rest: i64) -> Counted {
        Counted {
            labels: stores.iter().map(|(_, labels)| labels).sum::<i64>() + rest,
            stores: stores.iter().map(|(store, labels)| ((*store).to_owned(), *labels)).collect(),
            more_stores: rest > 0,
        }
    }

    fn drift(planned: &Counted, now: &Counted) -> (i64, i64, usize) {
        let Drift { added, removed, stores_changed, .. } = Drift::between(planned, now);
        (added, removed, stores_changed)
    }

    #[test]
    fn stores_are_compared_one_by_one() {
        let planned = counted(&[("a", 5), ("b", 5)], 0);
        assert_eq!(drift(&planned, &planned), (0, 0, 0));
        assert_eq!(drift(&planned, &counted(&[("a", 7), ("b", 3)], 0)), (2, 2, 2));
        assert_eq!(drift(&planned, &counted(&[("b", 5), ("c", 4)], 0)), (4, 5, 2));
        assert_eq!(drift(&planned, &counted(&[], 0)), (0, 10, 2));
    }

    #[test]
    fn a_new_store_that_pushes_another_out_of_the_list_is_no_change_of_the_other() {
        let planned = counted(&[("b", 5), ("c", 5)], 20);
        let now = counted(&[("a", 1), ("b", 5)], 25);
        assert_eq!(drift(&planned, &now), (1, 0, 1));
        assert_eq!(drift(&planned, &counted(&[("b", 5), ("c", 5)], 18)), (0, 2, 1));
    }

    #[test]
    fn beyond_its_bound_it_is_refused_naming_the_bound() {
        let drift = Drift::between(&counted(&[("a", 5)], 0), &counted(&[("a", 8)], 0));
        assert!(drift.within(3).is_ok());
        let refusal = drift.within(2).unwrap_err();
        assert_eq!((refusal.code, refusal.field.as_str()), (ErrorCode::FailedPrecondition, "max_drift"));
    }
}
