//! Statements over `dto`. Each works on a whole batch: `?1` is the tenant, `?2` a JSON array of rows.

use std::collections::HashMap;

use domain::{TenantId, Timestamp, Urn};
use futures::TryStreamExt as _;
use prost::bytes::Bytes;
use serde::Serialize;
use sqlx::SqliteConnection;

use super::row::{StoredRow, aliases_from_json, aliases_to_json, id, index, store, stored, type_of};
use crate::{
    history,
    limits::{READ_BYTES_MAX, read_too_large},
    model::{Change, Content, ReadBatch, Stored, Touch, Version, WriteBatch},
    plan::{Current, Presence, Put},
    store::Result,
};

/// Rows [type, store, id, offset, length]; `?3` all payloads. Bytes are compared where they lie; out come only those of
/// types `?4` and `?5`, which are small.
pub(super) const CURRENT: &str = "
    SELECT j.key, d.version, d.payload IS NULL,
           coalesce(length(d.payload) = (j.value ->> 4) AND d.payload = substr(?3, j.value ->> 3, j.value ->> 4), 0),
           d.aliases, CASE WHEN d.dto_type IN (?4, ?5) THEN d.payload END
    FROM jsonb_each(?2) AS j CROSS JOIN dto AS d
      ON d.tenant = ?1 AND d.dto_type = j.value ->> 0 AND d.store = j.value ->> 1 AND d.id = j.value ->> 2";

/// Rows [type, store, id].
pub(super) const VERSIONS: &str = "
    SELECT j.key, d.version
    FROM jsonb_each(?2) AS j CROSS JOIN dto AS d
      ON d.tenant = ?1 AND d.dto_type = j.value ->> 0 AND d.store = j.value ->> 1 AND d.id = j.value ->> 2
    WHERE d.payload IS NOT NULL";

/// Rows [type, store, id, offset or null, length or null, version, tracking id or null, aliases]; `?3` all payloads,
/// `?4` now, `?5` the writer.
pub(super) const PUT: &str = "
    INSERT INTO dto (tenant, dto_type, store, id, version, updated_at, written_by, tracking_id, aliases, payload)
    SELECT ?1, j.value ->> 0, j.value ->> 1, j.value ->> 2, j.value ->> 5, ?4, ?5, j.value ->> 6, j.value ->> 7,
           substr(?3, j.value ->> 3, j.value ->> 4)
    FROM jsonb_each(?2) AS j WHERE true
    ON CONFLICT (tenant, dto_type, store, id) DO UPDATE SET
        version = excluded.version, updated_at = excluded.updated_at, written_by = excluded.written_by,
        tracking_id = excluded.tracking_id, aliases = excluded.aliases, payload = excluded.payload";

/// Rows [type, store, id]; `?3` now. The rowids are looked up first, so that the outer loop is never the table.
pub(super) const TOUCH: &str = "
    UPDATE dto SET updated_at = ?3
    WHERE rowid IN (
        SELECT d.rowid FROM jsonb_each(?2) AS j CROSS JOIN dto AS d
          ON d.tenant = ?1 AND d.dto_type = j.value ->> 0 AND d.store = j.value ->> 1 AND d.id = j.value ->> 2
        WHERE d.payload IS NOT NULL)
    RETURNING store, id";

/// Rows [type, store, id, known version].
pub(super) const READ: &str = "
    SELECT j.key, d.version, d.updated_at, d.written_by, d.tracking_id,
           CASE WHEN d.version > (j.value ->> 3) THEN d.payload END
    FROM jsonb_each(?2) AS j CROSS JOIN dto AS d
      ON d.tenant = ?1 AND d.dto_type = j.value ->> 0 AND d.store = j.value ->> 1 AND d.id = j.value ->> 2
    WHERE d.payload IS NOT NULL";

/// Where a payload lies in the blob: SQL's offsets begin at 1.
type Extent = (usize, usize);

/// The payloads of a batch one behind the other.
#[derive(Default)]
struct Payloads(Vec<u8>);

impl Payloads {
    fn push(&mut self, content: &Content) -> Option<Extent> {
        match content {
            Content::Put { payload, .. } => {
                let extent = (self.0.len() + 1, payload.len());
                self.0.extend_from_slice(payload);
                Some(extent)
            }
            Content::Delete => None,
        }
    }
}

type CurrentRow = (i64, Version, bool, bool, String, Option<Vec<u8>>);

pub(super) async fn current(conn: &mut SqliteConnection, batch: &WriteBatch) -> Result<Vec<Option<Current>>> {
    let mut payloads = Payloads::default();
    let keys: Vec<_> = batch
        .changes
        .iter()
        .map(|change| {
            let extent = payloads.push(&change.content);
            let (offset, length) = (extent.map(|extent| extent.0), extent.map(|extent| extent.1));
            (change.dto_type.as_str(), store(change.urn.store()), id(&change.urn), offset, length)
        })
        .collect();
    let [picture, status] = history::TOLD;
    let rows: Vec<CurrentRow> = sqlx::query_as(CURRENT)
        .bind(batch.tenant.as_str())
        .bind(serde_json::to_string(&keys)?)
        .bind(payloads.0)
        .bind(picture.as_str())
        .bind(status.as_str())
        .fetch_all(conn)
        .await?;
    let mut current: Vec<Option<Current>> = batch.changes.iter().map(|_| None).collect();
    for (key, version, deleted, same, aliases, payload) in rows {
        let Some((slot, change)) = current.get_mut(index(key)).zip(batch.changes.get(index(key))) else { continue };
        let presence = match (deleted, same) {
            (true, _) => Presence::Deleted,
            (false, true) => Presence::Same,
            (false, false) => Presence::Other,
        };
        let aliases = aliases_from_json(&aliases, || change.urn.to_string())?;
        *slot = Some(Current { version, presence, aliases, payload: payload.map(Bytes::from) });
    }
    Ok(current)
}

pub(super) async fn versions(
    conn: &mut SqliteConnection,
    tenant: &TenantId,
    urns: &[Urn],
) -> Result<HashMap<Urn, Version>> {
    if urns.is_empty() {
        return Ok(HashMap::new());
    }
    let keys: Vec<_> = urns.iter().map(|urn| (type_of(urn), store(urn.store()), id(urn))).collect();
    let rows: Vec<(i64, Version)> =
        sqlx::query_as(VERSIONS).bind(tenant.as_str()).bind(serde_json::to_string(&keys)?).fetch_all(conn).await?;
    Ok(rows.into_iter().filter_map(|(key, version)| Some((urns.get(index(key))?.clone(), version))).collect())
}

#[derive(Serialize)]
struct PutRow<'a>(
    &'static str,
    &'a str,
    &'a str,
    Option<usize>,
    Option<usize>,
    Version,
    Option<&'a str>,
    Vec<(&'static str, &'a str)>,
);

pub(super) async fn put(conn: &mut SqliteConnection, batch: &WriteBatch, puts: &[Put], now: Timestamp) -> Result<()> {
    if puts.is_empty() {
        return Ok(());
    }
    let mut payloads = Payloads::default();
    let rows: Vec<PutRow<'_>> = puts
        .iter()
        .filter_map(|put| {
            let change: &Change = batch.changes.get(put.change)?;
            let extent = payloads.push(&change.content);
            Some(PutRow(
                change.dto_type.as_str(),
                store(change.urn.store()),
                id(&change.urn),
                extent.map(|extent| extent.0),
                extent.map(|extent| extent.1),
                put.version,
                change.tracking_id.as_ref().map(domain::TrackingId::as_str),
                aliases_to_json(change.content.aliases()),
            ))
        })
        .collect();
    sqlx::query(PUT)
        .bind(batch.tenant.as_str())
        .bind(serde_json::to_string(&rows)?)
        .bind(payloads.0)
        .bind(now.as_ms())
        .bind(batch.writer.to_string())
        .execute(conn)
        .await?;
    Ok(())
}

pub(super) async fn touch(conn: &mut SqliteConnection, touch: &Touch, now: Timestamp) -> Result<Vec<bool>> {
    let keys: Vec<_> = touch.urns.iter().map(|urn| (touch.dto_type.as_str(), store(urn.store()), id(urn))).collect();
    let touched: Vec<(String, String)> = sqlx::query_as(TOUCH)
        .bind(touch.tenant.as_str())
        .bind(serde_json::to_string(&keys)?)
        .bind(now.as_ms())
        .fetch_all(conn)
        .await?;
    let touched: std::collections::HashSet<(&str, &str)> =
        touched.iter().map(|(store, id)| (store.as_str(), id.as_str())).collect();
    Ok(keys.iter().map(|(_, store, id)| touched.contains(&(*store, *id))).collect())
}

pub(super) async fn read(conn: &mut SqliteConnection, batch: ReadBatch) -> Result<Vec<Option<Stored>>> {
    let keys: Vec<_> = batch
        .keys
        .iter()
        .map(|key| (type_of(&key.urn), store(key.urn.store()), id(&key.urn), key.known_version))
        .collect();
    let mut found: Vec<Option<Stored>> = batch.keys.iter().map(|_| None).collect();
    let mut bytes = 0;
    let keys = serde_json::to_string(&keys)?;
    let mut rows = sqlx::query_as::<_, StoredRow>(READ).bind(batch.tenant.as_str()).bind(keys).fetch(conn);
    while let Some(row) = rows.try_next().await? {
        let key = index(row.0);
        let Some((slot, asked)) = found.get_mut(key).zip(batch.keys.get(key)) else { continue };
        let record = stored(&asked.urn, row)?;
        bytes += record.payload.as_ref().map_or(0, Bytes::len);
        if bytes > READ_BYTES_MAX {
            return Err(read_too_large());
        }
        *slot = Some(record);
    }
    Ok(found)
}
