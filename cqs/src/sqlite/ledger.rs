//! The ledger and the dead letter.

use domain::Timestamp;
use serde_json::json;

use super::{
    SqliteUnit,
    json::{json_text, kind_int, records_json, row_json},
};
use crate::{
    StoreError,
    columns::{limit_int, read_counts, read_group, read_records},
    model::{Counts, DeadLetter, FailureGroup, LedgerKey, RecordKey},
    unit::Ledger,
};

impl Ledger for SqliteUnit<'_> {
    async fn ledger_append(&mut self, deltas: &[(LedgerKey, Counts)]) -> Result<(), StoreError> {
        let deltas = deltas.iter().map(|(key, counts)| {
            json!([
                key.lane,
                key.queue,
                kind_int(key.kind),
                counts.enqueued,
                counts.done,
                counts.unchanged,
                counts.failed,
                counts.coalesced,
                counts.cancelled,
                counts.waiting,
                counts.leased,
                counts.handed_over,
                counts.confirmed_by.written,
                counts.confirmed_by.transferred,
                counts.confirmed_by.displayed,
                counts.failed_handed_over,
            ])
        });
        sqlx::query(
            "INSERT INTO cqs_ledger_delta (lane, queue, is_parent, enqueued, done, unchanged, failed, coalesced,
                cancelled, waiting, leased, handed_over, written, transferred, displayed, failed_handed_over)
             SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6,
                value ->> 7, value ->> 8, value ->> 9, value ->> 10, value ->> 11, value ->> 12, value ->> 13, value ->> 14,
                value ->> 15
             FROM jsonb_each(?1)",
        )
        .bind(json_text(&deltas.collect::<Vec<_>>())?)
        .execute(&mut *self.conn)
        .await?;
        Ok(())
    }

    async fn ledger_read(&mut self, lanes: &[i64]) -> Result<Vec<(LedgerKey, Counts)>, StoreError> {
        let rows = sqlx::query(
            "SELECT lane, queue, is_parent, sum(enqueued) AS enqueued, sum(done) AS done, sum(unchanged) AS unchanged,
                sum(failed) AS failed, sum(coalesced) AS coalesced, sum(cancelled) AS cancelled,
                sum(waiting) AS waiting, sum(leased) AS leased, sum(handed_over) AS handed_over, sum(written) AS written,
                sum(transferred) AS transferred, sum(displayed) AS displayed,
                sum(failed_handed_over) AS failed_handed_over
             FROM (
                SELECT lane, queue, is_parent, enqueued, done, unchanged, failed, coalesced, cancelled, waiting, leased,
                    handed_over, written, transferred, displayed, failed_handed_over
                FROM cqs_ledger WHERE lane IN (SELECT value FROM jsonb_each(?1))
                UNION ALL
                SELECT lane, queue, is_parent, enqueued, done, unchanged, failed, coalesced, cancelled, waiting, leased,
                    handed_over, written, transferred, displayed, failed_handed_over
                FROM cqs_ledger_delta WHERE lane IN (SELECT value FROM jsonb_each(?1))
             )
             GROUP BY lane, queue, is_parent ORDER BY lane, queue, is_parent",
        )
        .bind(json_text(&lanes)?)
        .fetch_all(&mut *self.conn)
        .await?;
        rows.iter().map(read_counts).collect()
    }

    async fn ledger_revision(&mut self, lanes: &[i64]) -> Result<Vec<(i64, i64)>, StoreError> {
        Ok(sqlx::query_as(
            "SELECT lane, sum(changes) FROM (
                SELECT lane, changes FROM cqs_ledger WHERE lane IN (SELECT value FROM jsonb_each(?1))
                UNION ALL
                SELECT lane, 1 FROM cqs_ledger_delta WHERE lane IN (SELECT value FROM jsonb_each(?1))
             )
             GROUP BY lane ORDER BY lane",
        )
        .bind(json_text(&lanes)?)
        .fetch_all(&mut *self.conn)
        .await?)
    }

    async fn ledger_fold(&mut self, limit: usize) -> Result<usize, StoreError> {
        let (last, folded): (Option<i64>, i64) =
            sqlx::query_as("SELECT max(id), count(*) FROM (SELECT id FROM cqs_ledger_delta ORDER BY id LIMIT ?1)")
                .bind(limit_int(limit))
                .fetch_one(&mut *self.conn)
                .await?;
        let Some(last) = last else { return Ok(0) };
        // NOT INDEXED: by id, so that a backlog of deltas is not read through by lane.
        sqlx::query(
            "INSERT INTO cqs_ledger (lane, queue, is_parent, enqueued, done, unchanged, failed, coalesced, cancelled,
                waiting, leased, handed_over, written, transferred, displayed, failed_handed_over, changes)
             SELECT lane, queue, is_parent, sum(enqueued), sum(done), sum(unchanged), sum(failed), sum(coalesced),
                sum(cancelled), sum(waiting), sum(leased), sum(handed_over), sum(written), sum(transferred),
                sum(displayed), sum(failed_handed_over), count(*)
             FROM cqs_ledger_delta NOT INDEXED WHERE id <= ?1 GROUP BY lane, queue, is_parent
             ON CONFLICT DO UPDATE SET enqueued = enqueued + excluded.enqueued, done = done + excluded.done,
                unchanged = unchanged + excluded.unchanged, failed = failed + excluded.failed,
                coalesced = coalesced + excluded.coalesced, cancelled = cancelled + excluded.cancelled,
                waiting = waiting + excluded.waiting, leased = leased + excluded.leased,
                handed_over = handed_over + excluded.handed_over, written = written + excluded.written,
                transferred = transferred + excluded.transferred, displayed = displayed + excluded.displayed,
                failed_handed_over = failed_handed_over + excluded.failed_handed_over,
                changes = changes + excluded.changes",
        )
        .bind(last)
        .execute(&mut *self.conn)
        .await?;
        sqlx::query("DELETE FROM cqs_ledger_delta WHERE id <= ?1").bind(last).execute(&mut *self.conn).await?;
        Ok(usize::try_from(folded).unwrap_or_default())
    }

    async fn dead_append(&mut self, queue: i64, dead: &[DeadLetter], now: Timestamp) -> Result<(), StoreError> {
        let before: i64 =
            sqlx::query_scalar("SELECT coalesce(max(id), 0) FROM cqs_dead").fetch_one(&mut *self.conn).await?;
        let letters: Vec<_> = dead.iter().map(|letter| (row_json(&letter.row), &letter.cause)).collect();
        sqlx::query(
            "INSERT INTO cqs_dead (row_id, queue, lane, is_parent, dto_type, urn, alias, sla, tracking_id, attempts,
                cursor, cause, at, handed_over, of_operation)
             SELECT value ->> '$[0][0]', ?2, value ->> '$[0][1]', value ->> '$[0][3]', value ->> '$[0][4]',
                value ->> '$[0][5]', value ->> '$[0][6]', value ->> '$[0][7]', value ->> '$[0][8]', value ->> '$[0][9]',
                value ->> '$[0][13]', value ->> '$[1]', ?3, value ->> '$[0][15]',
                EXISTS (SELECT 1 FROM cqs_operation o WHERE o.lane = value ->> '$[0][1]')
             FROM jsonb_each(?1)",
        )
        .bind(json_text(&letters)?)
        .bind(queue)
        .bind(now.as_ms())
        .execute(&mut *self.conn)
        .await?;
        sqlx::query(
            "INSERT INTO cqs_dead_group (lane, queue, cause, failed, retried, handed_over, sample_urn)
             SELECT value ->> '$[0][1]', ?2, value ->> '$[1]', count(*), 0, sum(value ->> '$[0][15]'), min(value ->> '$[0][5]')
             FROM jsonb_each(?1)
             WHERE EXISTS (SELECT 1 FROM cqs_operation o WHERE o.lane = value ->> '$[0][1]')
             GROUP BY value ->> '$[0][1]', value ->> '$[1]'
             ON CONFLICT DO UPDATE SET failed = failed + excluded.failed, handed_over = handed_over + excluded.handed_over,
                sample_urn = min(sample_urn, excluded.sample_urn)",
        )
        .bind(json_text(&letters)?)
        .bind(queue)
        .execute(&mut *self.conn)
        .await?;
        // One writer: what came in since is what was just inserted.
        sqlx::query(
            "INSERT INTO cqs_undelivered (queue, urn, dto_type, dead)
             SELECT queue, urn, dto_type, max(id) FROM cqs_dead WHERE id > ?1 AND is_parent = 0
             GROUP BY queue, urn, dto_type
             ON CONFLICT DO UPDATE SET dead = excluded.dead",
        )
        .bind(before)
        .execute(&mut *self.conn)
        .await?;
        Ok(())
    }

    async fn dead_groups(&mut self, lane: i64, limit: usize) -> Result<Vec<FailureGroup>, StoreError> {
        let rows = sqlx::query(
            "SELECT q.name, g.cause, g.failed, g.retried, g.handed_over, g.sample_urn
             FROM cqs_dead_group g CROSS JOIN cqs_queue q ON q.queue = g.queue
             WHERE g.lane = ?1 ORDER BY g.failed DESC, q.name, g.cause LIMIT ?2",
        )
        .bind(lane)
        .bind(limit_int(limit))
        .fetch_all(&mut *self.conn)
        .await?;
        rows.iter().map(read_group).collect()
    }

    async fn undelivered_any(&mut self, queue: i64, _: i64) -> Result<bool, StoreError> {
        Ok(sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM cqs_undelivered WHERE queue = ?1)")
            .bind(queue)
            .fetch_one(&mut *self.conn)
            .await?)
    }

    async fn undelivered_among(&mut self, queue: i64, records: &[RecordKey]) -> Result<Vec<RecordKey>, StoreError> {
        let rows = sqlx::query(
            "SELECT u.urn, u.dto_type FROM jsonb_each(?1) CROSS JOIN cqs_undelivered u
                ON u.queue = ?2 AND u.urn = value ->> 0 AND u.dto_type = value ->> 1",
        )
        .bind(records_json(records)?)
        .bind(queue)
        .fetch_all(&mut *self.conn)
        .await?;
        read_records("cqs_undelivered", &rows)
    }

    async fn undelivered_put(&mut self, queue: i64, records: &[RecordKey]) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO cqs_undelivered (queue, urn, dto_type)
             SELECT ?2, value ->> 0, value ->> 1 FROM jsonb_each(?1) WHERE true ON CONFLICT DO NOTHING",
        )
        .bind(records_json(records)?)
        .bind(queue)
        .execute(&mut *self.conn)
        .await?;
        Ok(())
    }

    async fn undelivered_clear_leased(&mut self, queue: i64, generation: i64, ids: &[i64]) -> Result<(), StoreError> {
        sqlx::query(
            "DELETE FROM cqs_undelivered
             WHERE queue = ?1 AND (urn, dto_type) IN (
                SELECT urn, dto_type FROM cqs_leased
                WHERE lease = ?2 AND id IN (SELECT value FROM jsonb_each(?3)) AND is_parent = 0)",
        )
        .bind(queue)
        .bind(generation)
        .bind(json_text(&ids)?)
        .execute(&mut *self.conn)
        .await?;
        Ok(())
    }

    async fn undelivered_clear(&mut self, queue: i64, records: &[RecordKey]) -> Result<(), StoreError> {
        sqlx::query(
            "DELETE FROM cqs_undelivered
             WHERE queue = ?2 AND (urn, dto_type) IN (SELECT value ->> 0, value ->> 1 FROM jsonb_each(?1))",
        )
        .bind(records_json(records)?)
        .bind(queue)
        .execute(&mut *self.conn)
        .await?;
        Ok(())
    }
}
