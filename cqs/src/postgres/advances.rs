//! How many rows of a head this process has claimed since it last raised its marks.
//!
//! A look walks over what was claimed behind the mark. Where thousands of rows a second are claimed, upkeep's round once a
//! second comes too seldom for that; a few rows a second are no walk. Other processes count their own.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use crate::model::HeadKey;

/// Rows after which marks are raised. Few: a look passes about two thousand in a millisecond when none can be removed. Not
/// fewer: each raise leaves a version of the head behind, which is passed as well.
const FAR_ROWS: usize = 4_096;
/// Heads remembered, some 100 bytes each. With more, all are forgotten; upkeep raises their marks.
const HEADS: usize = 4_096;

/// Rows claimed by head. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Advances(Arc<Mutex<HashMap<HeadKey, usize>>>);

impl Advances {
    /// So many more were claimed there; a claim that is taken back counts, too.
    pub(super) fn claimed(&self, head: &HeadKey, rows: usize) {
        let mut advances = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(claimed) = advances.get_mut(head) {
            *claimed = claimed.saturating_add(rows);
            return;
        }
        if advances.len() >= HEADS {
            advances.clear();
        }
        advances.insert(head.clone(), rows);
    }

    /// Whether so many were claimed there that the marks are to be raised.
    pub(super) fn is_far(&self, head: &HeadKey) -> bool {
        let advances = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        advances.get(head).is_some_and(|claimed| *claimed >= FAR_ROWS)
    }

    /// The marks were raised.
    pub(super) fn raised(&self, head: &HeadKey) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(head);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(lane: i64) -> HeadKey {
        HeadKey { queue: 1, lane, store: None }
    }

    #[test]
    fn a_head_is_far_after_many_rows_until_it_is_raised() {
        let advances = Advances::default();
        advances.claimed(&head(1), FAR_ROWS - 1);
        advances.claimed(&head(2), 1);
        assert!(!advances.is_far(&head(1)));
        advances.claimed(&head(1), 1);
        assert!(advances.is_far(&head(1)) && !advances.is_far(&head(2)));
        advances.raised(&head(1));
        assert!(!advances.is_far(&head(1)));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let advances = Advances::default();
        for lane in 0..10 * i64::try_from(HEADS).expect("few") {
            advances.claimed(&head(lane), 1);
            assert!(advances.0.lock().expect("whole").len() <= HEADS);
        }
    }
}
