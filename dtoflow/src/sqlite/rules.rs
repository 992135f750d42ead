//! Statements of the re-index: the rules row, a walk over the records in the order of their rowids.

use sqlx::SqliteConnection;

use super::row::{WalkedRow, aliases_to_json, walked};
use crate::{
    alias::AliasKey,
    store::Result,
    unit::{IndexedRecord, RulesRow},
};

pub(super) const FIND: &str = "SELECT version, target, done FROM dto_alias_rules WHERE one = 1";

pub(super) const PUT: &str = "
    INSERT INTO dto_alias_rules (one, version, target, done) VALUES (1, ?1, ?2, ?3)
    ON CONFLICT (one) DO UPDATE SET version = excluded.version, target = excluded.target, done = excluded.done";

pub(super) const WALK: &str = "
    SELECT rowid, tenant, dto_type, store, id, payload, aliases FROM dto
    WHERE rowid > ?1 AND payload IS NOT NULL ORDER BY rowid LIMIT ?2";

/// Rows [rowid, aliases].
pub(super) const ALIASES_PUT: &str = "
    UPDATE dto SET aliases = j.value ->> 1 FROM jsonb_each(?1) AS j WHERE dto.rowid = j.value ->> 0";

pub(super) async fn find(conn: &mut SqliteConnection) -> Result<Option<RulesRow>> {
    let row: Option<(i64, i64, i64)> = sqlx::query_as(FIND).fetch_optional(conn).await?;
    Ok(row.map(|(version, target, done)| RulesRow { version, target, done }))
}

pub(super) async fn put(conn: &mut SqliteConnection, rules: RulesRow) -> Result<()> {
    sqlx::query(PUT).bind(rules.version).bind(rules.target).bind(rules.done).execute(conn).await?;
    Ok(())
}

pub(super) async fn walk(conn: &mut SqliteConnection, position: i64, limit: usize) -> Result<Vec<IndexedRecord>> {
    let rows: Vec<WalkedRow> =
        sqlx::query_as(WALK).bind(position).bind(i64::try_from(limit).unwrap_or(i64::MAX)).fetch_all(conn).await?;
    rows.into_iter().map(walked).collect()
}

pub(super) async fn aliases_put(conn: &mut SqliteConnection, aliases: &[(i64, Vec<AliasKey>)]) -> Result<()> {
    if aliases.is_empty() {
        return Ok(());
    }
    let rows: Vec<_> = aliases.iter().map(|(rowid, aliases)| (rowid, aliases_to_json(aliases))).collect();
    sqlx::query(ALIASES_PUT).bind(serde_json::to_string(&rows)?).execute(conn).await?;
    Ok(())
}
