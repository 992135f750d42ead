//! Which ready rows of a lane one lease takes.

use crate::model::Row;

/// The rows of one lease, out of the first ready labels of a lane in order and its first parent, if one may be claimed.
/// Labels and the parent compete by `(sla, id)`. A parent is taken alone; so is a row that lapsed; labels behind either
/// wait for their turn.
pub(crate) fn batch(labels: Vec<Row>, parent: Option<Row>) -> Vec<Row> {
    if let Some(parent) = &parent
        && labels.first().is_none_or(|label| parent.order() < label.order())
    {
        return vec![parent.clone()];
    }
    let bound = parent.map(|parent| parent.order());
    let mut taken: Vec<Row> = Vec::with_capacity(labels.len());
    for row in labels {
        let alone = !row.company.shares();
        if bound.is_some_and(|bound| row.order() > bound) || (alone && !taken.is_empty()) {
            break;
        }
        taken.push(row);
        if alone {
            break;
        }
    }
    taken
}
