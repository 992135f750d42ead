//! Between rows and types: keys, alias lists, positions; what cannot be read back names its table, column and key.

use db::DbError;
use domain::{AliasName, RecordId, StoreId, Urn};

use crate::{
    alias::AliasKey,
    store::{Result, StoreError},
};

/// The store column: empty for tenant-scoped records.
pub(super) fn store(store: Option<&StoreId>) -> &str {
    store.map_or("", StoreId::as_str)
}

/// The id column; every URN that reaches a statement names a record.
pub(super) fn id(urn: &Urn) -> &str {
    urn.record_id().map_or("", RecordId::as_str)
}

/// The aliases column.
pub(super) fn aliases_to_json(aliases: &[AliasKey]) -> Vec<(&'static str, &str)> {
    aliases.iter().map(|key| (key.alias.as_str(), key.base.as_str())).collect()
}

/// The aliases column, read back.
pub(super) fn aliases_from_json(text: &str, id: impl Fn() -> String) -> Result<Vec<AliasKey>> {
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
pub(super) fn broken(table: &'static str, column: &'static str, id: String, cause: String) -> StoreError {
    DbError::BrokenRow { table, column, id, cause }.into()
}

/// The index of an element of an array, whose ordinality begins at 1.
pub(super) fn index(key: i64) -> usize {
    usize::try_from(key - 1).unwrap_or(usize::MAX)
}
