//! Statements over `dto_alias` and `dto_alias_count`. `$1` is the tenant.

use db::DbError;
use domain::{Parent, TenantId};
use sqlx::PgConnection;

use super::row::{index, store};
use crate::{
    alias_list::AliasIndex,
    columns::{alias_found, limit_int, store_count},
    model::{AliasFound, AliasListAsk, AliasLook, Page, StoreCount, StoreListAsk},
    plan::{AliasChange, Place},
    store::Result,
};

/// `$2` types, `$3` aliases, `$4` bases, `$5` stores, `$6` ids.
const REMOVE: &str = "
    DELETE FROM dto_alias AS a
    USING unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[]) AS j (dto_type, alias, base, store, id)
    WHERE a.tenant = $1 AND a.dto_type = j.dto_type AND a.alias = j.alias AND a.base = j.base AND a.store = j.store
        AND a.id = j.id";

/// As for [`REMOVE`]. An entry that is there already is an index gone wrong, and fails.
const ADD: &str = "
    INSERT INTO dto_alias (tenant, dto_type, alias, base, store, id)
    SELECT $1, j.* FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[]) AS j";

/// `$2` types, `$3` aliases, `$4` bases, `$5` stores.
const COUNTS: &str = "
    SELECT j.key, c.entries
    FROM unnest($2::text[], $3::text[], $4::text[], $5::text[]) WITH ORDINALITY AS j (dto_type, alias, base, store, key)
    JOIN dto_alias_count AS c
        ON c.dto_type = j.dto_type AND c.alias = j.alias AND c.base = j.base AND c.store = j.store
    WHERE c.tenant = $1";

/// As for [`COUNTS`], and `$6` differences. In the order of the key, so that two writes never wait for each other. A count
/// that would fall below zero is an index gone wrong, and fails at the table's CHECK.
const COUNTS_ADD: &str = "
    WITH deltas AS MATERIALIZED (
        SELECT * FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[])
            AS j (dto_type, alias, base, store, delta)
    )
    INSERT INTO dto_alias_count (tenant, dto_type, alias, base, store, entries)
    SELECT $1, dto_type, alias, base, store, 0 FROM deltas WHERE delta > 0 ORDER BY dto_type, alias, base, store
    ON CONFLICT DO NOTHING";

/// As for [`COUNTS_ADD`], whose rows are there by then.
const COUNTS_CHANGE: &str = "
    WITH found AS MATERIALIZED (
        SELECT c.dto_type, c.alias, c.base, c.store, j.delta
        FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[]) AS j (dto_type, alias, base, store, delta)
        JOIN dto_alias_count AS c
            ON c.dto_type = j.dto_type AND c.alias = j.alias AND c.base = j.base AND c.store = j.store
        WHERE c.tenant = $1
        ORDER BY c.dto_type, c.alias, c.base, c.store FOR UPDATE OF c
    )
    UPDATE dto_alias_count AS c SET entries = c.entries + found.delta FROM found
    WHERE c.tenant = $1 AND c.dto_type = found.dto_type AND c.alias = found.alias AND c.base = found.base
        AND c.store = found.store";

/// As for [`COUNTS`].
const COUNTS_REMOVE: &str = "
    DELETE FROM dto_alias_count AS c
    USING unnest($2::text[], $3::text[], $4::text[], $5::text[]) AS j (dto_type, alias, base, store)
    WHERE c.tenant = $1 AND c.dto_type = j.dto_type AND c.alias = j.alias AND c.base = j.base AND c.store = j.store
        AND c.entries = 0";

/// `$2` type, `$3` alias, `$4` bases; over all stores.
const COUNTS_OVER_STORES: &str = "
    SELECT j.key, sum(c.entries)::bigint
    FROM unnest($4::text[]) WITH ORDINALITY AS j (base, key) JOIN dto_alias_count AS c ON c.base = j.base
    WHERE c.tenant = $1 AND c.dto_type = $2 AND c.alias = $3
    GROUP BY j.key";

/// `$2` type, `$3` alias, `$4` base, `$5` after this store, `$6` at most so many.
const STORES: &str = "
    SELECT store, entries FROM dto_alias_count
    WHERE tenant = $1 AND dto_type = $2 AND alias = $3 AND base = $4 AND store > $5 AND entries > 0
    ORDER BY store LIMIT $6";

/// `$2` type, `$3` alias, `$4` base, `$5` store, `$6` after this id, `$7` at most so many.
const LIST: &str = "
    SELECT id FROM dto_alias
    WHERE tenant = $1 AND dto_type = $2 AND alias = $3 AND base = $4 AND store = $5 AND id > $6
    ORDER BY id LIMIT $7";

/// `$2` type, `$3` alias, `$4` bases, `$5` stores: everything under them, of which the caller knows that it is little.
const LIST_WHOLE: &str = "
    SELECT j.key, a.id
    FROM unnest($4::text[], $5::text[]) WITH ORDINALITY AS j (base, store, key)
    JOIN dto_alias AS a ON a.base = j.base AND a.store = j.store
    WHERE a.tenant = $1 AND a.dto_type = $2 AND a.alias = $3
    ORDER BY j.key, a.id";

/// Places as arrays to be bound.
#[derive(Default)]
struct Places<'a> {
    dto_types: Vec<&'static str>,
    aliases: Vec<&'static str>,
    bases: Vec<&'a str>,
    stores: Vec<&'a str>,
}

impl<'a> Places<'a> {
    fn of(places: impl Iterator<Item = &'a Place>) -> Self {
        let mut arrays = Self::default();
        for place in places {
            arrays.dto_types.push(place.dto_type.as_str());
            arrays.aliases.push(place.alias.as_str());
            arrays.bases.push(&place.base);
            arrays.stores.push(store(place.store.as_ref()));
        }
        arrays
    }
}

pub(super) async fn change(conn: &mut PgConnection, tenant: &TenantId, change: &AliasChange) -> Result<()> {
    for (sql, entries) in [(REMOVE, &change.removed), (ADD, &change.added)] {
        if entries.is_empty() {
            continue;
        }
        let places = Places::of(entries.iter().map(|(place, _)| place));
        let ids: Vec<&str> = entries.iter().map(|(_, id)| id.as_str()).collect();
        sqlx::query(sql)
            .bind(tenant.as_str())
            .bind(places.dto_types)
            .bind(places.aliases)
            .bind(places.bases)
            .bind(places.stores)
            .bind(ids)
            .execute(&mut *conn)
            .await?;
    }
    counts_change(conn, tenant, change).await
}

async fn counts_change(conn: &mut PgConnection, tenant: &TenantId, change: &AliasChange) -> Result<()> {
    if change.deltas.is_empty() {
        return Ok(());
    }
    let deltas: Vec<i64> = change.deltas.values().copied().collect();
    let mut changed = 0;
    for sql in [COUNTS_ADD, COUNTS_CHANGE] {
        let places = Places::of(change.deltas.keys());
        let done = sqlx::query(sql)
            .bind(tenant.as_str())
            .bind(places.dto_types)
            .bind(places.aliases)
            .bind(places.bases)
            .bind(places.stores)
            .bind(&deltas)
            .execute(&mut *conn)
            .await?;
        changed = done.rows_affected();
    }
    if usize::try_from(changed).ok() != Some(deltas.len()) {
        // Another write took an empty count away between the two statements.
        return Err(DbError::Conflict("a count went away".to_owned()).into());
    }
    if deltas.iter().any(|delta| *delta < 0) {
        let places = Places::of(change.deltas.keys());
        sqlx::query(COUNTS_REMOVE)
            .bind(tenant.as_str())
            .bind(places.dto_types)
            .bind(places.aliases)
            .bind(places.bases)
            .bind(places.stores)
            .execute(conn)
            .await?;
    }
    Ok(())
}

pub(super) async fn stores(conn: &mut PgConnection, ask: StoreListAsk) -> Result<Page<StoreCount>> {
    let rows: Vec<(String, i64)> = sqlx::query_as(STORES)
        .bind(ask.look.tenant.as_str())
        .bind(ask.look.dto_type.as_str())
        .bind(ask.look.alias.as_str())
        .bind(&ask.base)
        .bind(store(ask.after.as_ref()))
        .bind(limit_int(ask.limit + 1))
        .fetch_all(conn)
        .await?;
    let entries = rows.into_iter().map(|row| store_count(&ask, row)).collect::<Result<Vec<_>>>()?;
    Ok(Page::cut(entries, ask.limit))
}

impl AliasIndex for PgConnection {
    async fn count(&mut self, look: &AliasLook, parents: &[Parent]) -> Result<Vec<i64>> {
        let mut counts = vec![0; parents.len()];
        let (bases, stores): (Vec<&str>, Vec<&str>) =
            parents.iter().map(|parent| (parent.base.as_str(), store(parent.store.as_ref()))).unzip();
        let rows: Vec<(i64, i64)> = sqlx::query_as(COUNTS)
            .bind(look.tenant.as_str())
            .bind(vec![look.dto_type.as_str(); parents.len()])
            .bind(vec![look.alias.as_str(); parents.len()])
            .bind(bases)
            .bind(stores)
            .fetch_all(&mut *self)
            .await?;
        for (key, entries) in rows {
            if let Some(slot) = counts.get_mut(index(key)) {
                *slot = entries;
            }
        }
        let tenants: Vec<(usize, &str)> = parents
            .iter()
            .enumerate()
            .filter(|(_, parent)| parent.store.is_none())
            .map(|(index, parent)| (index, parent.base.as_str()))
            .collect();
        if !tenants.is_empty() {
            let bases: Vec<&str> = tenants.iter().map(|(_, base)| *base).collect();
            let sums: Vec<(i64, i64)> = sqlx::query_as(COUNTS_OVER_STORES)
                .bind(look.tenant.as_str())
                .bind(look.dto_type.as_str())
                .bind(look.alias.as_str())
                .bind(bases)
                .fetch_all(self)
                .await?;
            for (key, sum) in sums {
                if let Some(slot) = tenants.get(index(key)).and_then(|(parent, _)| counts.get_mut(*parent)) {
                    *slot = sum;
                }
            }
        }
        Ok(counts)
    }

    async fn part(
        &mut self,
        ask: &AliasListAsk,
        (parent, after): (usize, &str),
        most: usize,
    ) -> Result<Vec<AliasFound>> {
        let Some(place) = ask.parents.get(parent) else { return Ok(Vec::new()) };
        let ids: Vec<String> = sqlx::query_scalar(LIST)
            .bind(ask.look.tenant.as_str())
            .bind(ask.look.dto_type.as_str())
            .bind(ask.look.alias.as_str())
            .bind(&place.base)
            .bind(store(place.store.as_ref()))
            .bind(after)
            .bind(limit_int(most))
            .fetch_all(self)
            .await?;
        ids.iter().map(|id| alias_found(parent, id)).collect()
    }

    async fn whole(&mut self, ask: &AliasListAsk, first: usize, parents: &[Parent]) -> Result<Vec<AliasFound>> {
        let (bases, stores): (Vec<&str>, Vec<&str>) =
            parents.iter().map(|parent| (parent.base.as_str(), store(parent.store.as_ref()))).unzip();
        let rows: Vec<(i64, String)> = sqlx::query_as(LIST_WHOLE)
            .bind(ask.look.tenant.as_str())
            .bind(ask.look.dto_type.as_str())
            .bind(ask.look.alias.as_str())
            .bind(bases)
            .bind(stores)
            .fetch_all(self)
            .await?;
        rows.iter().map(|(key, id)| alias_found(first + index(*key), id)).collect()
    }
}
