//! No statement scans a table: each finds its rows by a key.

use db::{
    DbError,
    sqlite::{OpenOptions, SqliteDb},
};

use super::{alias, history, record, rules};

#[tokio::test]
async fn no_statement_scans_a_table() {
    let place = tempfile::tempdir().unwrap();
    let db = SqliteDb::open(OpenOptions::new(place.path().join("test.db"))).await.unwrap();
    for sql in [
        record::CURRENT,
        record::VERSIONS,
        record::PUT,
        record::TOUCH,
        record::READ,
        alias::REMOVE,
        alias::ADD,
        alias::COUNTS,
        alias::COUNTS_PUT,
        alias::COUNTS_REMOVE,
        alias::COUNTS_OVER_STORES,
        alias::STORES,
        alias::LIST,
        alias::LIST_WHOLE,
        history::ADD,
        history::CUT,
        history::LIST,
        rules::FIND,
        rules::PUT,
        rules::WALK,
        rules::ALIASES_PUT,
    ] {
        let plan: Vec<(i64, i64, i64, String)> = db
            .read(move |conn| {
                Box::pin(async move {
                    let explain = sqlx::AssertSqlSafe(format!("EXPLAIN QUERY PLAN {sql}"));
                    Ok::<_, DbError>(sqlx::query_as(explain).fetch_all(conn).await?)
                })
            })
            .await
            .unwrap();
        for (_, _, _, step) in plan {
            // What is bound with the statement, or made of it row by row, is no table.
            let is_bound = step.starts_with("SCAN j") || ["SCAN edge", "SCAN CONSTANT ROW"].contains(&step.as_str());
            let scans = step.starts_with("SCAN") && !is_bound;
            assert!(!scans, "{step} in {sql}");
        }
    }
}
