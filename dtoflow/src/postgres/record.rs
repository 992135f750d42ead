//! Statements over `dto`. Each works on a whole batch: `$1` is the tenant, the arrays are its rows' columns.

use std::collections::{HashMap, HashSet};

use domain::{DtoType, TenantId, Timestamp, Urn};
use futures::TryStreamExt as _;
use prost::bytes::Bytes;
use sqlx::PgConnection;

use super::row::{StoredRow, aliases_from_json, aliases_to_json, broken, id, index, store, stored, type_of};
use crate::{
    history,
    limits::{READ_BYTES_MAX, read_too_large},
    model::{Change, Content, ReadBatch, Stored, Touch, Version, WriteBatch},
    plan::{Current, Presence, Put},
    store::Result,
};

/// `$2` types, `$3` stores, `$4` ids, `$5` payloads. Bytes are compared where they lie; out come only those of types `$6`,
/// which are small. Locked in the order of the key, so that two writes never wait for each other.
const CURRENT: &str = "
    SELECT j.key, d.version, d.payload IS NULL, coalesce(d.payload = j.payload, false), d.aliases,
        CASE WHEN d.dto_type = ANY($6) THEN d.payload END
    FROM unnest($2::text[], $3::text[], $4::text[], $5::bytea[]) WITH ORDINALITY
        AS j (dto_type, store, id, payload, key)
    JOIN dto AS d ON d.dto_type = j.dto_type AND d.store = j.store AND d.id = j.id
    WHERE d.tenant = $1
    ORDER BY d.dto_type, d.store, d.id FOR UPDATE OF d";

/// `$2` types, `$3` stores, `$4` ids.
const VERSIONS: &str = "
    SELECT j.key, d.version
    FROM unnest($2::text[], $3::text[], $4::text[]) WITH ORDINALITY AS j (dto_type, store, id, key)
    JOIN dto AS d ON d.dto_type = j.dto_type AND d.store = j.store AND d.id = j.id
    WHERE d.tenant = $1 AND d.payload IS NOT NULL";

/// Records that are not there: whoever inserts the same one meets this one at the key. `$2` types, `$3` stores, `$4` ids,
/// `$5` payloads, `$6` tracking ids, `$7` aliases, `$8` now, `$9` the writer.
const INSERT: &str = "
    INSERT INTO dto (tenant, dto_type, store, id, version, updated_at, written_by, tracking_id, aliases, payload)
    SELECT $1, j.dto_type, j.store, j.id, 1, $8, $9, j.tracking_id, j.aliases, j.payload
    FROM unnest($2::text[], $3::text[], $4::text[], $5::bytea[], $6::text[], $7::text[])
        AS j (dto_type, store, id, payload, tracking_id, aliases)
    ORDER BY j.dto_type, j.store, j.id";

/// Records whose rows [`CURRENT`] locked. As for [`INSERT`], and `$10` versions.
const UPDATE: &str = "
    UPDATE dto AS d SET version = j.version, updated_at = $8, written_by = $9, tracking_id = j.tracking_id,
        aliases = j.aliases, payload = j.payload
    FROM unnest($2::text[], $3::text[], $4::text[], $5::bytea[], $6::text[], $7::text[], $10::bigint[])
        AS j (dto_type, store, id, payload, tracking_id, aliases, version)
    WHERE d.tenant = $1 AND d.dto_type = j.dto_type AND d.store = j.store AND d.id = j.id AND d.version = j.version - 1";

/// `$2` type, `$3` stores, `$4` ids, `$5` now. Locked in the order of the key first.
const TOUCH: &str = "
    WITH found AS MATERIALIZED (
        SELECT d.store, d.id FROM unnest($3::text[], $4::text[]) AS j (store, id)
        JOIN dto AS d ON d.store = j.store AND d.id = j.id
        WHERE d.tenant = $1 AND d.dto_type = $2 AND d.payload IS NOT NULL
        ORDER BY d.store, d.id FOR UPDATE OF d)
    UPDATE dto AS d SET updated_at = $5 FROM found
    WHERE d.tenant = $1 AND d.dto_type = $2 AND d.store = found.store AND d.id = found.id
    RETURNING d.store, d.id";

/// `$2` types, `$3` stores, `$4` ids, `$5` known versions.
const READ: &str = "
    SELECT j.key, d.version, d.updated_at, d.written_by, d.tracking_id, CASE WHEN d.version > j.known THEN d.payload END
    FROM unnest($2::text[], $3::text[], $4::text[], $5::bigint[]) WITH ORDINALITY AS j (dto_type, store, id, known, key)
    JOIN dto AS d ON d.dto_type = j.dto_type AND d.store = j.store AND d.id = j.id
    WHERE d.tenant = $1 AND d.payload IS NOT NULL";

/// Keys of records as arrays to be bound.
#[derive(Default)]
struct Keys<'a> {
    dto_types: Vec<&'static str>,
    stores: Vec<&'a str>,
    ids: Vec<&'a str>,
}

impl<'a> Keys<'a> {
    fn of(urns: impl Iterator<Item = &'a Urn>) -> Self {
        let mut keys = Self::default();
        for urn in urns {
            keys.dto_types.push(type_of(urn));
            keys.stores.push(store(urn.store()));
            keys.ids.push(id(urn));
        }
        keys
    }
}

fn payload_of(content: &Content) -> Option<&[u8]> {
    match content {
        Content::Put { payload, .. } => Some(payload),
        Content::Delete => None,
    }
}

type CurrentRow = (i64, Version, bool, bool, String, Option<Vec<u8>>);

pub(super) async fn current(conn: &mut PgConnection, batch: &WriteBatch) -> Result<Vec<Option<Current>>> {
    let keys = Keys::of(batch.changes.iter().map(|change| &change.urn));
    let payloads: Vec<Option<&[u8]>> = batch.changes.iter().map(|change| payload_of(&change.content)).collect();
    let rows: Vec<CurrentRow> = sqlx::query_as(CURRENT)
        .bind(batch.tenant.as_str())
        .bind(keys.dto_types)
        .bind(keys.stores)
        .bind(keys.ids)
        .bind(payloads)
        .bind(history::TOLD.map(DtoType::as_str).as_slice())
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
    conn: &mut PgConnection,
    tenant: &TenantId,
    urns: &[Urn],
) -> Result<HashMap<Urn, Version>> {
    if urns.is_empty() {
        return Ok(HashMap::new());
    }
    let keys = Keys::of(urns.iter());
    let rows: Vec<(i64, Version)> = sqlx::query_as(VERSIONS)
        .bind(tenant.as_str())
        .bind(keys.dto_types)
        .bind(keys.stores)
        .bind(keys.ids)
        .fetch_all(conn)
        .await?;
    Ok(rows.into_iter().filter_map(|(key, version)| Some((urns.get(index(key))?.clone(), version))).collect())
}

pub(super) async fn put(conn: &mut PgConnection, batch: &WriteBatch, puts: &[Put], now: Timestamp) -> Result<()> {
    let (fresh, known): (Vec<&Put>, Vec<&Put>) = puts.iter().partition(|put| put.version == 1);
    for (sql, puts) in [(INSERT, fresh), (UPDATE, known)] {
        if puts.is_empty() {
            continue;
        }
        let changes: Vec<(&Change, Version)> =
            puts.iter().filter_map(|put| Some((batch.changes.get(put.change)?, put.version))).collect();
        let keys = Keys::of(changes.iter().map(|(change, _)| &change.urn));
        let payloads: Vec<Option<&[u8]>> = changes.iter().map(|(change, _)| payload_of(&change.content)).collect();
        let tracking_ids: Vec<Option<&str>> =
            changes.iter().map(|(change, _)| change.tracking_id.as_ref().map(domain::TrackingId::as_str)).collect();
        let aliases: Vec<String> = changes
            .iter()
            .map(|(change, _)| Ok(serde_json::to_string(&aliases_to_json(change.content.aliases()))?))
            .collect::<Result<_>>()?;
        let versions: Vec<Version> = changes.iter().map(|(_, version)| *version).collect();
        let mut query = sqlx::query(sql)
            .bind(batch.tenant.as_str())
            .bind(keys.dto_types)
            .bind(keys.stores)
            .bind(keys.ids)
            .bind(payloads)
            .bind(tracking_ids)
            .bind(aliases)
            .bind(now.as_ms())
            .bind(batch.writer.to_string());
        if sql == UPDATE {
            query = query.bind(versions);
        }
        let written = query.execute(&mut *conn).await?.rows_affected();
        if usize::try_from(written).ok() != Some(changes.len()) {
            let cause = format!("{written} of {} records written", changes.len());
            return Err(broken("dto", "version", batch.tenant.to_string(), cause));
        }
    }
    Ok(())
}

pub(super) async fn touch(conn: &mut PgConnection, touch: &Touch, now: Timestamp) -> Result<Vec<bool>> {
    let keys = Keys::of(touch.urns.iter());
    let touched: Vec<(String, String)> = sqlx::query_as(TOUCH)
        .bind(touch.tenant.as_str())
        .bind(touch.dto_type.as_str())
        .bind(keys.stores.clone())
        .bind(keys.ids.clone())
        .bind(now.as_ms())
        .fetch_all(conn)
        .await?;
    let touched: HashSet<(&str, &str)> = touched.iter().map(|(store, id)| (store.as_str(), id.as_str())).collect();
    Ok(keys.stores.iter().zip(&keys.ids).map(|(store, id)| touched.contains(&(*store, *id))).collect())
}

pub(super) async fn read(conn: &mut PgConnection, batch: ReadBatch) -> Result<Vec<Option<Stored>>> {
    let keys = Keys::of(batch.keys.iter().map(|key| &key.urn));
    let known: Vec<Version> = batch.keys.iter().map(|key| key.known_version).collect();
    let mut found: Vec<Option<Stored>> = batch.keys.iter().map(|_| None).collect();
    let mut bytes = 0;
    let mut rows = sqlx::query_as::<_, StoredRow>(READ)
        .bind(batch.tenant.as_str())
        .bind(keys.dto_types)
        .bind(keys.stores)
        .bind(keys.ids)
        .bind(known)
        .fetch(conn);
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
