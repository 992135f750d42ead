//! Statements over `dto_history`. `?1` is the tenant.

use domain::Timestamp;
use serde::Serialize;
use sqlx::SqliteConnection;

use super::row::{id, store};
use crate::{
    columns::{HistoryRow, history_entry, limit_int},
    history::{Digest, HistoryAsk, HistoryCause, HistoryEntry, KEPT_MAX, Notes},
    model::{Page, WriteBatch},
    store::Result,
};

/// `?2` rows [store, label, event, tracking id or null, offset of the old digest or null, of the new one or null, evidence];
/// `?3` all digests, `?4` now, `?5` the writer, `?6` whether it was an operation.
pub(super) const ADD: &str = "
    INSERT INTO dto_history (tenant, store, label, at, event, of_operation, written_by, tracking_id, old_digest, new_digest,
        evidence)
    SELECT ?1, j.value ->> 0, j.value ->> 1, ?4, j.value ->> 2, ?6, ?5, j.value ->> 3,
           substr(?3, j.value ->> 4, 32), substr(?3, j.value ->> 5, 32), j.value ->> 6
    FROM jsonb_each(?2) AS j";

/// `?2` rows [store, label]; `?3` how many of each label's newest entries stay.
pub(super) const CUT: &str = "
    DELETE FROM dto_history WHERE position IN (
        WITH edge AS MATERIALIZED (
            SELECT j.value ->> 0 AS store, j.value ->> 1 AS label, (
                SELECT h.position FROM dto_history AS h
                WHERE h.tenant = ?1 AND h.store = j.value ->> 0 AND h.label = j.value ->> 1
                ORDER BY h.position DESC LIMIT 1 OFFSET ?3) AS position
            FROM jsonb_each(?2) AS j)
        SELECT h.position FROM edge CROSS JOIN dto_history AS h
          ON h.tenant = ?1 AND h.store = edge.store AND h.label = edge.label AND h.position <= edge.position)";

/// `?2` store, `?3` label, `?4` before this position, `?5` at most so many.
pub(super) const LIST: &str = "
    SELECT position, at, event, of_operation, written_by, tracking_id, old_digest, new_digest, evidence
    FROM dto_history WHERE tenant = ?1 AND store = ?2 AND label = ?3 AND position < ?4
    ORDER BY position DESC LIMIT ?5";

/// Over all tenants: `?1` from before this time, `?2` among so many of the oldest.
pub(super) const PRUNE: &str = "
    DELETE FROM dto_history WHERE position IN (
        SELECT position FROM (SELECT position, at FROM dto_history ORDER BY position LIMIT ?2) WHERE at < ?1)";

/// Digests one behind the other.
#[derive(Default)]
struct Digests(Vec<u8>);

impl Digests {
    /// Where it lies: SQL's offsets begin at 1.
    fn push(&mut self, digest: Option<Digest>) -> Option<usize> {
        let digest = digest?;
        let offset = self.0.len() + 1;
        self.0.extend_from_slice(&digest);
        Some(offset)
    }
}

#[derive(Serialize)]
struct AddRow<'a>(&'a str, &'a str, &'static str, Option<&'a str>, Option<usize>, Option<usize>, i32);

pub(super) async fn add(conn: &mut SqliteConnection, batch: &WriteBatch, notes: &Notes, now: Timestamp) -> Result<()> {
    let mut digests = Digests::default();
    let rows: Vec<AddRow<'_>> = notes
        .entries
        .iter()
        .filter_map(|note| {
            let change = batch.changes.get(note.change)?;
            Some(AddRow(
                store(change.urn.store()),
                id(&change.urn),
                note.told.event.as_str(),
                change.tracking_id.as_ref().map(domain::TrackingId::as_str),
                digests.push(note.told.old_digest),
                digests.push(note.told.new_digest),
                note.told.evidence.into(),
            ))
        })
        .collect();
    if !rows.is_empty() {
        sqlx::query(ADD)
            .bind(batch.tenant.as_str())
            .bind(serde_json::to_string(&rows)?)
            .bind(digests.0)
            .bind(now.as_ms())
            .bind(batch.writer.to_string())
            .bind(notes.cause == HistoryCause::Operation)
            .execute(&mut *conn)
            .await?;
    }
    if !notes.cut.is_empty() {
        let labels: Vec<_> = notes.cut.iter().map(|(store, label)| (store.as_str(), label.as_str())).collect();
        sqlx::query(CUT)
            .bind(batch.tenant.as_str())
            .bind(serde_json::to_string(&labels)?)
            .bind(limit_int(KEPT_MAX))
            .execute(conn)
            .await?;
    }
    Ok(())
}

pub(super) async fn list(conn: &mut SqliteConnection, ask: HistoryAsk) -> Result<Page<HistoryEntry>> {
    let rows: Vec<HistoryRow> = sqlx::query_as(LIST)
        .bind(ask.tenant.as_str())
        .bind(ask.store.as_str())
        .bind(ask.label.as_str())
        .bind(ask.before.unwrap_or(i64::MAX))
        .bind(limit_int(ask.limit + 1))
        .fetch_all(conn)
        .await?;
    Ok(Page::cut(rows.into_iter().map(history_entry).collect::<Result<_>>()?, ask.limit))
}

pub(super) async fn prune(conn: &mut SqliteConnection, before: Timestamp, most: usize) -> Result<usize> {
    let forgotten = sqlx::query(PRUNE).bind(before.as_ms()).bind(limit_int(most)).execute(conn).await?;
    Ok(usize::try_from(forgotten.rows_affected()).unwrap_or(usize::MAX))
}
