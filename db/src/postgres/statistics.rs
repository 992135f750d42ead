//! Statistics of tables that grow faster than PostgreSQL looks at them by itself.
//!
//! Plans are made by what is known of a table and kept by their connection until it is looked at again, which PostgreSQL does
//! once a minute at best. Within that minute a queue grows from nothing to a million rows, and a plan made for ten rows,
//! all of one tenant, walks over everything that the tenant has. So whoever serves asks every second which tables have grown
//! to twice of what is known, and has those looked at: a table that grows from a thousand rows to a million is looked at ten
//! times, one that stays as it is never.

use sqlx::AssertSqlSafe;

use super::{PostgresDb, unit};
use crate::DbError;

/// Rows below which no plan is bad.
const ROWS_MIN: i64 = 1_000;
/// Pages likewise: half a megabyte is read from end to end in less than a millisecond.
const PAGES_MIN: i64 = 64;

/// The product's tables that hold `$1` rows, or `$2` pages, and twice of what is known. Pages, too, because rows that are gone and
/// cannot be removed make a table long that holds few. None of it costs a look into the table.
const GROWN: &str = "
SELECT format('%I.%I', s.schemaname, s.relname) FROM pg_stat_user_tables s JOIN pg_class c ON c.oid = s.relid
WHERE s.schemaname = current_schema() AND (s.relname LIKE 'cqs\\_%' OR s.relname LIKE 'dto\\_%' OR s.relname = 'dto')
    AND (s.n_live_tup > $1 + 2 * greatest(c.reltuples, 0)
        OR pg_relation_size(c.oid) / current_setting('block_size')::bigint > $2 + 2 * c.relpages)
ORDER BY s.relname";

impl PostgresDb {
    /// Has PostgreSQL look at the tables that have grown a lot since it did; which ones. A look reads a sample, of some
    /// 30,000 rows at most, and keeps nobody from reading or writing. A table that somebody else looks at is passed over.
    ///
    /// # Errors
    ///
    /// Where the database does not answer.
    pub async fn look_at_grown(&self) -> Result<Vec<String>, DbError> {
        // Not counted among the units of work: nobody waits for it.
        unit::write(self.inner.writers.clone(), |conn, _| {
            Box::pin(async move {
                let grown: Vec<String> =
                    sqlx::query_scalar(GROWN).bind(ROWS_MIN).bind(PAGES_MIN).fetch_all(&mut *conn).await?;
                for table in &grown {
                    let look = AssertSqlSafe(format!("ANALYZE (SKIP_LOCKED) {table}"));
                    sqlx::raw_sql(look).execute(&mut *conn).await?;
                }
                Ok(grown)
            })
        })
        .await
    }
}
