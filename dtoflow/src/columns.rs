//! Between rows and types: keys, alias lists, positions; what cannot be read back names its table, column and key.

use db::DbError;
use domain::{AliasName, DtoType, RecordId, StoreId, TenantId, Timestamp, Urn};
use prost::bytes::Bytes;
use proto::records::v1::Evidence;

use crate::{
    alias::AliasKey,
    history::{Digest, HistoryCause, HistoryEntry, HistoryEvent},
    model::{AliasFound, StoreCount, StoreListAsk, Stored, Version},
    store::{Result, StoreError},
    unit::IndexedRecord,
};

/// The store column: empty for tenant-scoped records.
pub(crate) fn store(store: Option<&StoreId>) -> &str {
    store.map_or("", StoreId::as_str)
}

/// The id column; every URN that reaches a statement names a record.
pub(crate) fn id(urn: &Urn) -> &str {
    urn.record_id().map_or("", RecordId::as_str)
}

/// The type column; every URN that reaches a statement names a record.
pub(crate) fn type_of(urn: &Urn) -> &'static str {
    match urn {
        Urn::TenantRecord(_, collection, _) | Urn::StoreRecord(_, _, collection, _) => collection.dto_type().as_str(),
        Urn::Tenant(_) | Urn::Store(_, _) => "",
    }
}

/// The URN in a row.
fn urn_of(tenant: &TenantId, dto_type: DtoType, store: &str, id: &str) -> Result<Urn> {
    let broken = |column, cause: String| broken("dto", column, format!("{tenant} {dto_type} {store} {id}"), cause);
    let record = id.parse().map_err(|error| broken("id", format!("{error}")))?;
    if store.is_empty() {
        return Ok(Urn::in_tenant(tenant, dto_type, &record));
    }
    let store = store.parse().map_err(|error| broken("store", format!("{error}")))?;
    Ok(Urn::in_store(tenant, &store, dto_type, &record))
}

/// A record that is read: which key it answers, version, time, writer, tracking id, payload.
pub(crate) type StoredRow = (i64, Version, i64, String, Option<String>, Option<Vec<u8>>);

/// The record in a row.
pub(crate) fn stored(
    urn: &Urn,
    (_, version, updated_at, written_by, tracking_id, payload): StoredRow,
) -> Result<Stored> {
    let broken = |column, cause: String| broken("dto", column, urn.to_string(), cause);
    Ok(Stored {
        version,
        payload: payload.map(Bytes::from),
        updated_at: Timestamp::from_ms(updated_at),
        written_by: written_by.parse().map_err(|error| broken("written_by", format!("{error}")))?,
        tracking_id: tracking_id
            .map(|text| text.parse())
            .transpose()
            .map_err(|error| broken("tracking_id", format!("{error}")))?,
    })
}

/// A record that a re-index walks over: position, tenant, type, store, id, payload, aliases.
pub(crate) type WalkedRow = (i64, String, String, String, String, Vec<u8>, String);

/// The record in a row.
pub(crate) fn walked(row: WalkedRow) -> Result<IndexedRecord> {
    let (position, tenant, dto_type, store, id, payload, aliases) = row;
    let broken = |column, cause: String| broken("dto", column, format!("position {position}"), cause);
    let tenant: TenantId = tenant.parse().map_err(|error| broken("tenant", format!("{error}")))?;
    let dto_type: DtoType = dto_type.parse().map_err(|error| broken("dto_type", format!("{error}")))?;
    let urn = urn_of(&tenant, dto_type, &store, &id)?;
    let aliases = aliases_from_json(&aliases, || urn.to_string())?;
    Ok(IndexedRecord { position, tenant, dto_type, urn, payload: Bytes::from(payload), aliases })
}

/// The aliases column.
pub(crate) fn aliases_to_json(aliases: &[AliasKey]) -> Vec<(&'static str, &str)> {
    aliases.iter().map(|key| (key.alias.as_str(), key.base.as_str())).collect()
}

/// The aliases column, read back.
pub(crate) fn aliases_from_json(text: &str, id: impl Fn() -> String) -> Result<Vec<AliasKey>> {
    let broken = |cause: String| broken("dto", "aliases", id(), cause);
    let pairs: Vec<(String, String)> = serde_json::from_str(text).map_err(|error| broken(error.to_string()))?;
    let mut aliases = pairs
        .into_iter()
        .map(|(alias, base)| {
            let alias: AliasName = alias.parse().map_err(|error| broken(format!("{alias} {error}")))?;
            Ok(AliasKey { alias, base })
        })
        .collect::<Result<Vec<_>>>()?;
    aliases.sort_unstable();
    Ok(aliases)
}

/// A row that is not what the schema promises.
pub(crate) fn broken(table: &'static str, column: &'static str, id: String, cause: String) -> StoreError {
    DbError::BrokenRow { table, column, id, cause }.into()
}

/// An id that the index holds under a parent.
pub(crate) fn alias_found(parent: usize, id: &str) -> Result<AliasFound> {
    let id = id.parse().map_err(|error| broken("dto_alias", "id", id.to_owned(), format!("{error}")))?;
    Ok(AliasFound { parent, id })
}

/// A store with its count under the parent that was asked for.
pub(crate) fn store_count(ask: &StoreListAsk, (store, count): (String, i64)) -> Result<StoreCount> {
    let id = || format!("{} {} {} {}", ask.look.tenant, ask.look.dto_type, ask.look.alias, ask.base);
    let store = store.parse().map_err(|error| broken("dto_alias_count", "store", id(), format!("{error}")))?;
    Ok(StoreCount { store, count })
}

/// A row of `dto_history` as both engines give it: position, time, event, whether an operation's, writer, tracking id, old
/// digest, new digest, evidence.
pub(crate) type HistoryRow = (i64, i64, String, bool, String, Option<String>, Option<Vec<u8>>, Option<Vec<u8>>, i32);

/// The entry in a row; what cannot be read back names its column.
pub(crate) fn history_entry(row: HistoryRow) -> Result<HistoryEntry> {
    let (position, at, event, of_operation, written_by, tracking_id, old_digest, new_digest, evidence) = row;
    let broken =
        |column, cause: String| DbError::BrokenRow { table: "dto_history", column, id: position.to_string(), cause };
    let digest = |column, bytes: Option<Vec<u8>>| {
        let digest = bytes.map(|bytes| Digest::try_from(bytes.as_slice())).transpose();
        digest.map_err(|error| broken(column, error.to_string()))
    };
    Ok(HistoryEntry {
        position,
        at: Timestamp::from_ms(at),
        event: HistoryEvent::from_text(&event).ok_or_else(|| broken("event", event))?,
        cause: if of_operation { HistoryCause::Operation } else { HistoryCause::Change },
        written_by: written_by.parse().map_err(|error| broken("written_by", format!("{error}")))?,
        tracking_id: tracking_id
            .map(|text| text.parse())
            .transpose()
            .map_err(|error| broken("tracking_id", format!("{error}")))?,
        old_digest: digest("old_digest", old_digest)?,
        new_digest: digest("new_digest", new_digest)?,
        evidence: Evidence::try_from(evidence).map_err(|error| broken("evidence", error.to_string()))?,
    })
}

/// A count of rows as a statement takes it.
pub(crate) fn limit_int(most: usize) -> i64 {
    i64::try_from(most).unwrap_or(i64::MAX)
}
