//! Statements of the re-index: the rules row, a walk over the records in the order in which they first came.

use std::collections::BTreeMap;

use sqlx::PgConnection;

use super::row::{WalkedRow, aliases_to_json, walked};
use crate::{
    alias::AliasKey,
    store::Result,
    unit::{IndexedRecord, RulesRow},
};

/// One process re-indexes at a time; another one finds what is left.
const LOCK: &str = "SELECT pg_advisory_xact_lock(x'72650010'::int, 0)";

const FIND: &str = "SELECT version, target, done FROM dto_alias_rules WHERE one = 1";

const PUT: &str = "
    INSERT INTO dto_alias_rules (one, version, target, done) VALUES (1, $1, $2, $3)
    ON CONFLICT (one) DO UPDATE SET version = excluded.version, target = excluded.target, done = excluded.done";

/// Locked, so that no write changes the aliases of a record meanwhile.
const WALK: &str = "
    SELECT position, tenant, dto_type, store, id, payload, aliases FROM dto
    WHERE position > $1 AND payload IS NOT NULL ORDER BY position LIMIT $2 FOR UPDATE";

/// `$1` positions, `$2` aliases.
const ALIASES_PUT: &str = "
    UPDATE dto SET aliases = j.aliases FROM unnest($1::bigint[], $2::text[]) AS j (position, aliases)
    WHERE dto.position = j.position";

pub(super) async fn find(conn: &mut PgConnection) -> Result<Option<RulesRow>> {
    sqlx::query(LOCK).execute(&mut *conn).await?;
    let row: Option<(i64, i64, i64)> = sqlx::query_as(FIND).fetch_optional(conn).await?;
    Ok(row.map(|(version, target, done)| RulesRow { version, target, done }))
}

pub(super) async fn put(conn: &mut PgConnection, rules: RulesRow) -> Result<()> {
    sqlx::query(PUT).bind(rules.version).bind(rules.target).bind(rules.done).execute(conn).await?;
    Ok(())
}

pub(super) async fn walk(conn: &mut PgConnection, position: i64, limit: usize) -> Result<Vec<IndexedRecord>> {
    let rows: Vec<WalkedRow> =
        sqlx::query_as(WALK).bind(position).bind(i64::try_from(limit).unwrap_or(i64::MAX)).fetch_all(conn).await?;
    rows.into_iter().map(walked).collect()
}

pub(super) async fn aliases_put(conn: &mut PgConnection, aliases: &[(i64, Vec<AliasKey>)]) -> Result<()> {
    if aliases.is_empty() {
        return Ok(());
    }
    let texts: BTreeMap<i64, String> = aliases
        .iter()
        .map(|(position, aliases)| Ok((*position, serde_json::to_string(&aliases_to_json(aliases))?)))
        .collect::<Result<_>>()?;
    let (positions, texts): (Vec<i64>, Vec<String>) = texts.into_iter().unzip();
    sqlx::query(ALIASES_PUT).bind(positions).bind(texts).execute(conn).await?;
    Ok(())
}
