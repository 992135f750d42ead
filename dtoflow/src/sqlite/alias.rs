//! Statements over `dto_alias` and `dto_alias_count`. `?1` is the tenant.

use domain::{Parent, TenantId};
use serde::Serialize;
use sqlx::SqliteConnection;

use super::row::{broken, index, store};
use crate::{
    alias_list::AliasIndex,
    columns::{alias_found, limit_int, store_count},
    model::{AliasFound, AliasListAsk, AliasLook, Page, StoreCount, StoreListAsk},
    plan::{AliasChange, Place},
    store::Result,
};

/// Rows [type, alias, base, store, id].
pub(super) const REMOVE: &str = "
    DELETE FROM dto_alias
    WHERE tenant = ?1 AND (dto_type, alias, base, store, id) IN (
        SELECT j.value ->> 0, j.value ->> 1, j.value ->> 2, j.value ->> 3, j.value ->> 4 FROM jsonb_each(?2) AS j)";

/// Rows as for [`REMOVE`]. An entry that is there already is an index gone wrong, and fails.
pub(super) const ADD: &str = "
    INSERT INTO dto_alias (tenant, dto_type, alias, base, store, id)
    SELECT ?1, j.value ->> 0, j.value ->> 1, j.value ->> 2, j.value ->> 3, j.value ->> 4 FROM jsonb_each(?2) AS j";

/// Rows [type, alias, base, store].
pub(super) const COUNTS: &str = "
    SELECT j.key, c.entries
    FROM jsonb_each(?2) AS j CROSS JOIN dto_alias_count AS c
      ON c.tenant = ?1 AND c.dto_type = j.value ->> 0 AND c.alias = j.value ->> 1 AND c.base = j.value ->> 2
     AND c.store = j.value ->> 3";

/// Rows [type, alias, base, store, entries]. The writer is alone, so what it read it may write.
pub(super) const COUNTS_PUT: &str = "
    INSERT INTO dto_alias_count (tenant, dto_type, alias, base, store, entries)
    SELECT ?1, j.value ->> 0, j.value ->> 1, j.value ->> 2, j.value ->> 3, j.value ->> 4 FROM jsonb_each(?2) AS j
    WHERE true
    ON CONFLICT (tenant, dto_type, alias, base, store) DO UPDATE SET entries = excluded.entries";

/// Rows [type, alias, base, store].
pub(super) const COUNTS_REMOVE: &str = "
    DELETE FROM dto_alias_count
    WHERE tenant = ?1 AND (dto_type, alias, base, store) IN (
        SELECT j.value ->> 0, j.value ->> 1, j.value ->> 2, j.value ->> 3 FROM jsonb_each(?2) AS j)";

/// `?2` type, `?3` alias, `?4` a JSON array of bases; over all stores.
pub(super) const COUNTS_OVER_STORES: &str = "
    SELECT j.key, sum(c.entries)
    FROM jsonb_each(?4) AS j CROSS JOIN dto_alias_count AS c
      ON c.tenant = ?1 AND c.dto_type = ?2 AND c.alias = ?3 AND c.base = j.value
    GROUP BY j.key";

/// `?2` type, `?3` alias, `?4` base, `?5` after this store, `?6` at most so many.
pub(super) const STORES: &str = "
    SELECT store, entries FROM dto_alias_count
    WHERE tenant = ?1 AND dto_type = ?2 AND alias = ?3 AND base = ?4 AND store > ?5
    ORDER BY store LIMIT ?6";

/// `?2` type, `?3` alias, `?4` base, `?5` store, `?6` after this id, `?7` at most so many.
pub(super) const LIST: &str = "
    SELECT id FROM dto_alias
    WHERE tenant = ?1 AND dto_type = ?2 AND alias = ?3 AND base = ?4 AND store = ?5 AND id > ?6
    ORDER BY id LIMIT ?7";

/// `?2` type, `?3` alias, `?4` rows [base, store]: everything under them, of which the caller knows that it is little.
pub(super) const LIST_WHOLE: &str = "
    SELECT j.key, a.id
    FROM jsonb_each(?4) AS j CROSS JOIN dto_alias AS a
      ON a.tenant = ?1 AND a.dto_type = ?2 AND a.alias = ?3 AND a.base = j.value ->> 0 AND a.store = j.value ->> 1
    ORDER BY j.key, a.id";

#[derive(Serialize)]
struct PlaceRow<'a>(&'static str, &'static str, &'a str, &'a str);

fn place_row(place: &Place) -> PlaceRow<'_> {
    PlaceRow(place.dto_type.as_str(), place.alias.as_str(), &place.base, store(place.store.as_ref()))
}

pub(super) async fn change(conn: &mut SqliteConnection, tenant: &TenantId, change: &AliasChange) -> Result<()> {
    for (sql, entries) in [(REMOVE, &change.removed), (ADD, &change.added)] {
        if entries.is_empty() {
            continue;
        }
        let rows: Vec<_> = entries
            .iter()
            .map(|(place, id)| {
                let PlaceRow(dto_type, alias, base, store) = place_row(place);
                (dto_type, alias, base, store, id.as_str())
            })
            .collect();
        execute(conn, sql, tenant, &rows).await?;
    }
    counts_change(conn, tenant, change).await
}

async fn counts_change(conn: &mut SqliteConnection, tenant: &TenantId, change: &AliasChange) -> Result<()> {
    if change.deltas.is_empty() {
        return Ok(());
    }
    let places: Vec<_> = change.deltas.keys().map(place_row).collect();
    let mut counts: Vec<i64> = change.deltas.values().copied().collect();
    for (key, entries) in counts_of(conn, tenant, &places).await? {
        if let Some(count) = counts.get_mut(index(key)) {
            *count += entries;
        }
    }
    let mut kept = Vec::with_capacity(places.len());
    let mut empty = Vec::new();
    for (place, count) in places.iter().zip(counts) {
        let PlaceRow(dto_type, alias, base, store) = *place;
        match count {
            1.. => kept.push((dto_type, alias, base, store, count)),
            0 => empty.push((dto_type, alias, base, store)),
            _ => {
                let id = format!("{tenant} {dto_type} {alias} {base} {store}");
                return Err(broken("dto_alias_count", "entries", id, format!("would become {count}")));
            }
        }
    }
    if !kept.is_empty() {
        execute(conn, COUNTS_PUT, tenant, &kept).await?;
    }
    if !empty.is_empty() {
        execute(conn, COUNTS_REMOVE, tenant, &empty).await?;
    }
    Ok(())
}

async fn execute<T: Serialize>(
    conn: &mut SqliteConnection,
    sql: &'static str,
    tenant: &TenantId,
    rows: &[T],
) -> Result<()> {
    sqlx::query(sql).bind(tenant.as_str()).bind(serde_json::to_string(rows)?).execute(conn).await?;
    Ok(())
}

async fn counts_of(conn: &mut SqliteConnection, tenant: &TenantId, places: &[PlaceRow<'_>]) -> Result<Vec<(i64, i64)>> {
    Ok(sqlx::query_as(COUNTS).bind(tenant.as_str()).bind(serde_json::to_string(places)?).fetch_all(conn).await?)
}

pub(super) async fn stores(conn: &mut SqliteConnection, ask: StoreListAsk) -> Result<Page<StoreCount>> {
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

impl AliasIndex for SqliteConnection {
    async fn count(&mut self, look: &AliasLook, parents: &[Parent]) -> Result<Vec<i64>> {
        let mut counts = vec![0; parents.len()];
        let places: Vec<_> = parents
            .iter()
            .map(|parent| {
                PlaceRow(look.dto_type.as_str(), look.alias.as_str(), &parent.base, store(parent.store.as_ref()))
            })
            .collect();
        let mut set = |key: i64, count: i64| {
            if let Some(slot) = counts.get_mut(index(key)) {
                *slot = count;
            }
        };
        for (key, entries) in counts_of(self, &look.tenant, &places).await? {
            set(key, entries);
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
                .bind(serde_json::to_string(&bases)?)
                .fetch_all(self)
                .await?;
            for (key, sum) in sums {
                if let Some((parent, _)) = tenants.get(index(key)) {
                    set(i64::try_from(*parent).unwrap_or(i64::MAX), sum);
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
        let places: Vec<_> =
            parents.iter().map(|parent| (parent.base.as_str(), store(parent.store.as_ref()))).collect();
        let rows: Vec<(i64, String)> = sqlx::query_as(LIST_WHOLE)
            .bind(ask.look.tenant.as_str())
            .bind(ask.look.dto_type.as_str())
            .bind(ask.look.alias.as_str())
            .bind(serde_json::to_string(&places)?)
            .fetch_all(self)
            .await?;
        rows.iter().map(|(key, id)| alias_found(first + index(*key), id)).collect()
    }
}
