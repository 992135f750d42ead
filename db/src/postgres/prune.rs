//! Forgetting what is over: looked for over all tenants, deleted tenant by tenant, so that each deletion names one.

use std::collections::BTreeMap;

use domain::Timestamp;
use sqlx::PgConnection;

/// What finds rows that are over, and what deletes them.
#[derive(Debug, Clone, Copy)]
pub struct Prune {
    /// `$1` a time, `$2` how many at most: tenants and keys of rows from before that time.
    pub find: &'static str,
    /// `$1` a tenant, `$2` some of those keys, `$3` that time: deletes what is still from before it.
    pub forget: &'static str,
}

impl Prune {
    /// Forgets rows from before that time, of at most so many keys; how many rows went.
    ///
    /// # Errors
    ///
    /// Where a statement fails.
    pub async fn run(self, conn: &mut PgConnection, before: Timestamp, keys: i64) -> sqlx::Result<usize> {
        let old: Vec<(String, i64)> =
            sqlx::query_as(self.find).bind(before.as_ms()).bind(keys).fetch_all(&mut *conn).await?;
        let mut forgotten = 0;
        for (tenant, keys) in by_tenant(old) {
            let done =
                sqlx::query(self.forget).bind(tenant).bind(keys).bind(before.as_ms()).execute(&mut *conn).await?;
            forgotten += usize::try_from(done.rows_affected()).unwrap_or(usize::MAX);
        }
        Ok(forgotten)
    }
}

/// Keys by their tenants, in the order in which they came.
pub fn by_tenant(keys: impl IntoIterator<Item = (String, i64)>) -> BTreeMap<String, Vec<i64>> {
    let mut by_tenant: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    for (tenant, key) in keys {
        by_tenant.entry(tenant).or_default().push(key);
    }
    by_tenant
}
