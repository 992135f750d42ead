//! Rows come to wait in a lane: new ones, and ones that come back from a lease.

use domain::{LaneKind, SplitItem};

use crate::{
    StoreError,
    model::{Counts, RecordKey, Row, RowKind},
    policy::coalesce::{Arrival, Plan, plan},
    unit::Unit,
};

use super::{
    changes::{Changes, Place},
    retry::give_back,
};

/// What became of arriving rows.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Arrived {
    /// Inserted.
    pub(crate) enqueued: i64,
    /// Merged into rows that waited already.
    pub(crate) coalesced: i64,
}

/// Puts rows into a lane of a queue, coalescing. The rows lie in that lane and carry their heads' stores. In a cancelled
/// lane nothing comes to wait any more: the rows are counted as cancelled, and their records marked undelivered.
pub(crate) async fn arrive<U: Unit>(
    unit: &mut U,
    place: Place<'_>,
    rows: Vec<Row>,
    (arrival, changes): (Arrival, &mut Changes),
) -> Result<Arrived, StoreError> {
    if rows.is_empty() {
        return Ok(Arrived::default());
    }
    let total = i64::try_from(rows.len()).unwrap_or(i64::MAX);
    let parents = i64::try_from(rows.iter().filter(|row| row.kind() == RowKind::Parent).count()).unwrap_or(i64::MAX);
    if place.lane.gate.cancelled {
        for (kind, rows) in [(RowKind::Label, total - parents), (RowKind::Parent, parents)] {
            let counts = Counts { cancelled: rows, ..Counts::default() };
            changes.count(place, kind, came(arrival, rows, counts));
        }
        unit.undelivered_put(place.queue.id, &records(rows.iter())).await?;
        if arrival == Arrival::Back {
            give_back(unit, place, &rows).await?;
        }
        return Ok(Arrived::default());
    }
    let items: Vec<&SplitItem> = rows.iter().map(|row| &row.item).collect();
    let waiting = unit.row_same(place.queue.id, place.lane.id, &items).await?;
    let Plan { inserts, updates, merged, merged_parents } = plan(waiting, rows, place.lane.kind, arrival);

    for (before, after) in &updates {
        changes.waited(place, before);
        changes.waits(place, after);
        changes.handed_over(place, before, -1);
        changes.handed_over(place, after, 1);
    }
    for row in &inserts {
        changes.waits(place, row);
        changes.handed_over(place, row, 1);
    }
    for (kind, all, merged) in
        [(RowKind::Label, total - parents, merged - merged_parents), (RowKind::Parent, parents, merged_parents)]
    {
        let counts = Counts { coalesced: merged, waiting: all - merged, ..Counts::default() };
        changes.count(place, kind, came(arrival, all, counts));
    }
    if !updates.is_empty() {
        let after: Vec<Row> = updates.into_iter().map(|(_, after)| after).collect();
        unit.row_update(place.queue.id, &after).await?;
    }
    if !inserts.is_empty() {
        unit.row_insert(place.queue.id, &inserts).await?;
    }
    Ok(Arrived { enqueued: total - merged, coalesced: merged })
}

/// The change of counts when so many rows arrive and become what `counts` says.
fn came(arrival: Arrival, rows: i64, counts: Counts) -> Counts {
    match arrival {
        Arrival::Fresh => Counts { enqueued: rows, ..counts },
        Arrival::Back => Counts { leased: -rows, ..counts },
    }
}

/// A row that is not stored yet, at the start of its life in `place`.
pub(crate) fn fresh_row(place: Place<'_>, item: SplitItem, origin: &Origin) -> Row {
    let tracking_id = match place.lane.kind {
        LaneKind::Ordinary => origin.tracking_id.clone(),
        LaneKind::Operation | LaneKind::Split => place.lane.tracking_id.clone(),
    };
    Row {
        id: 0,
        lane: place.lane.id,
        store: place.queue.store_of(item.target.urn()),
        item,
        sla: origin.sla,
        tracking_id,
        attempts: 0,
        due_at: None,
        company: crate::model::Company::Batch,
        cursor: String::new(),
        cause: String::new(),
        handed_over: false,
    }
}

/// What new rows inherit.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    /// When they should be done.
    pub(crate) sla: domain::Timestamp,
    /// Of what caused them; counts in ordinary lanes only.
    pub(crate) tracking_id: Option<domain::TrackingId>,
}

/// The records among items, for undelivered marks.
pub(crate) fn records<'a>(rows: impl Iterator<Item = &'a Row>) -> Vec<RecordKey> {
    rows.filter_map(|row| crate::model::record_key(&row.item)).collect()
}
