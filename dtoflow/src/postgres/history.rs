//! Statements over `dto_history`. `$1` is the tenant.

use db::postgres::Prune;
use domain::Timestamp;
use sqlx::PgConnection;

use super::row::{id, store};
use crate::{
    columns::{HistoryRow, history_entry, limit_int},
    history::{HistoryAsk, HistoryCause, HistoryEntry, KEPT_MAX, Notes},
    model::{Page, WriteBatch},
    store::Result,
};

/// `$2` stores, `$3` labels, `$4` events, `$5` tracking ids, `$6` old digests, `$7` new digests, `$8` evidence; `$9` now,
/// `$10` the writer, `$11` whether it was an operation.
const ADD: &str = "
    INSERT INTO dto_history (tenant, store, label, at, event, of_operation, written_by, tracking_id, old_digest, new_digest,
        evidence)
    SELECT $1, j.store, j.label, $9, j.event, $11, $10, j.tracking_id, j.old_digest, j.new_digest, j.evidence
    FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::bytea[], $7::bytea[], $8::integer[])
        AS j (store, label, event, tracking_id, old_digest, new_digest, evidence)";

/// `$2` stores, `$3` labels, `$4` how many of each label's newest entries stay. What another write cuts already is left to
/// it, so that two never wait for each other.
const CUT: &str = "
    WITH surplus AS MATERIALIZED (
        SELECT h.position
        FROM unnest($2::text[], $3::text[]) AS j (store, label)
        CROSS JOIN LATERAL (
            SELECT e.position FROM dto_history AS e
            WHERE e.tenant = $1 AND e.store = j.store AND e.label = j.label
            ORDER BY e.position DESC LIMIT 1 OFFSET $4) AS edge
        JOIN dto_history AS h ON h.store = j.store AND h.label = j.label AND h.position <= edge.position
        WHERE h.tenant = $1
        FOR UPDATE OF h SKIP LOCKED)
    DELETE FROM dto_history AS d USING surplus WHERE d.tenant = $1 AND d.position = surplus.position";

/// `$2` store, `$3` label, `$4` before this position, `$5` at most so many.
const LIST: &str = "
    SELECT position, at, event, of_operation, written_by, tracking_id, old_digest, new_digest, evidence
    FROM dto_history WHERE tenant = $1 AND store = $2 AND label = $3 AND position < $4
    ORDER BY position DESC LIMIT $5";

/// What another process forgets already is left to it.
const OVER: Prune = Prune {
    find: "SELECT tenant, position FROM (SELECT tenant, position, at FROM dto_history ORDER BY position LIMIT $2) AS oldest
        WHERE at < $1",
    forget: "DELETE FROM dto_history WHERE tenant = $1 AND position IN (
        SELECT position FROM dto_history WHERE tenant = $1 AND position = ANY($2) AND at < $3 FOR UPDATE SKIP LOCKED)",
};

pub(super) async fn add(conn: &mut PgConnection, batch: &WriteBatch, notes: &Notes, now: Timestamp) -> Result<()> {
    let entries: Vec<_> =
        notes.entries.iter().filter_map(|note| Some((batch.changes.get(note.change)?, note.told))).collect();
    if !entries.is_empty() {
        let stores: Vec<&str> = entries.iter().map(|(change, _)| store(change.urn.store())).collect();
        let labels: Vec<&str> = entries.iter().map(|(change, _)| id(&change.urn)).collect();
        let events: Vec<&str> = entries.iter().map(|(_, told)| told.event.as_str()).collect();
        let tracking_ids: Vec<Option<&str>> =
            entries.iter().map(|(change, _)| change.tracking_id.as_ref().map(domain::TrackingId::as_str)).collect();
        let old: Vec<Option<&[u8]>> =
            entries.iter().map(|(_, told)| told.old_digest.as_ref().map(<[u8; 32]>::as_slice)).collect();
        let new: Vec<Option<&[u8]>> =
            entries.iter().map(|(_, told)| told.new_digest.as_ref().map(<[u8; 32]>::as_slice)).collect();
        let evidence: Vec<i32> = entries.iter().map(|(_, told)| told.evidence.into()).collect();
        sqlx::query(ADD)
            .bind(batch.tenant.as_str())
            .bind(stores)
            .bind(labels)
            .bind(events)
            .bind(tracking_ids)
            .bind(old)
            .bind(new)
            .bind(evidence)
            .bind(now.as_ms())
            .bind(batch.writer.to_string())
            .bind(notes.cause == HistoryCause::Operation)
            .execute(&mut *conn)
            .await?;
    }
    if !notes.cut.is_empty() {
        let (stores, labels): (Vec<&str>, Vec<&str>) =
            notes.cut.iter().map(|(store, label)| (store.as_str(), label.as_str())).unzip();
        sqlx::query(CUT)
            .bind(batch.tenant.as_str())
            .bind(stores)
            .bind(labels)
            .bind(limit_int(KEPT_MAX))
            .execute(conn)
            .await?;
    }
    Ok(())
}

pub(super) async fn list(conn: &mut PgConnection, ask: HistoryAsk) -> Result<Page<HistoryEntry>> {
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

pub(super) async fn prune(conn: &mut PgConnection, before: Timestamp, most: usize) -> Result<usize> {
    Ok(OVER.run(conn, before, limit_int(most)).await?)
}
