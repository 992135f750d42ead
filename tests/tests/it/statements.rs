//! Every statement of the PostgreSQL twins names one tenant by equality, so that it runs unchanged where the tables are
//! distributed by tenant; those that look over all tenants are listed here with their reasons.
//!
//! Whether a statement names it is not read from its words but asked of PostgreSQL: in its plan, each look into a table of
//! tenants has the tenant among its conditions, and each row that it inserts begins with it. So that no statement escapes,
//! whatever names such a table in the twins must be a statement that PostgreSQL understands, and nobody else may name one.

use std::collections::BTreeSet;

use cluster::Database;
use serde_json::Value;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection, Row as _};
use tests::source::{SourceFile, collect, sources, workspace_root};

/// Where the twins' statements stand.
const TWINS: &[&str] = &["cqs/src/postgres/", "dtoflow/src/postgres/"];

/// Tables without a tenant: small, the same for all, on every node of a distributed database.
pub(crate) const SHARED_TABLES: &[&str] =
    &["cqs_tenant", "cqs_queue", "cqs_brake", "cqs_audit_anchor", "cqs_audit_reader", "dto_alias_rules"];

/// Statements over all tenants, by how they begin, each with its reason; one statement each. Where work hangs on them they only read.
const OVER_ALL_TENANTS: &[(&str, &str)] = &[
    (
        "SELECT tenant, lane, kind, first_sla FROM cqs_place WHERE queue = $1 AND kind = $2 AND first_sla IS NOT NULL \
         AND NOT closed AND closed_until IS NULL AND (first_sla, lane) >",
        CHOICE,
    ),
    (
        "SELECT tenant, lane, kind, first_sla FROM cqs_place WHERE queue = $1 AND kind = $2 AND first_sla IS NOT NULL \
         AND NOT closed AND closed_until IS NULL AND lane >",
        CHOICE,
    ),
    ("SELECT p.queue, p.tenant, p.lane, p.kind, p.first_sla FROM cqs_queue q", UPKEEP),
    ("SELECT tenant, lane, closed_until FROM cqs_place WHERE queue = $1", DUE),
    ("SELECT min(closed_until) FROM cqs_place", DUE),
    ("SELECT tenant, id, due_at FROM cqs_waiting WHERE queue = $1", DUE),
    ("SELECT min(due_at) FROM cqs_waiting", DUE),
    ("SELECT tenant, generation, expires_at FROM cqs_lease WHERE queue = $1", DUE),
    ("SELECT min(expires_at) FROM cqs_lease", DUE),
    ("SELECT lane FROM cqs_control WHERE ends_at IS NOT NULL", DUE),
    ("SELECT tenant, lane FROM cqs_lane WHERE kind = 'split'", UPKEEP),
    ("SELECT tenant, lane FROM cqs_lane WHERE clearing", UPKEEP),
    ("SELECT tenant, generation FROM cqs_split WHERE at < $1", UPKEEP),
    ("SELECT tenant, generation FROM cqs_lapse WHERE at < $1", UPKEEP),
    ("SELECT DISTINCT tenant FROM (SELECT tenant FROM cqs_ledger_delta", UPKEEP),
    ("SELECT max(at) FROM cqs_pace", UPKEEP),
    ("SELECT tenant, lane FROM cqs_pace WHERE at < $1", UPKEEP),
    ("SELECT lane FROM cqs_operation WHERE finished_at IS NULL", UPKEEP),
    ("SELECT lane FROM cqs_operation o WHERE finished_at IS NOT NULL", UPKEEP),
    ("SELECT tenant, id FROM cqs_dead WHERE NOT of_operation", UPKEEP),
    ("SELECT tenant, lane, queue FROM cqs_retry WHERE NOT done", UPKEEP),
    ("SELECT p.queue, p.kind, sum(p.ready)::bigint", LISTS),
    ("SELECT queue, count(*) AS failed FROM (SELECT queue FROM cqs_dead", LISTS),
    ("SELECT count(*) FILTER (WHERE c.cancelled_at IS NOT NULL) AS cancelling", LISTS),
    (
        "SELECT id, tenant, tracking_id, lane, queue, trigger_name, scope, reason, operator_subject, accepted_at, sla, \
         sla_chosen, items_digest, items_enqueued, finished_at FROM cqs_operation WHERE tenant = ANY",
        LISTS,
    ),
    (
        "SELECT id, tenant, tracking_id, lane, queue, trigger_name, scope, reason, operator_subject, accepted_at, sla, \
         sla_chosen, items_digest, items_enqueued, finished_at FROM cqs_operation WHERE finished_at IS NULL",
        LISTS,
    ),
    ("SELECT id, at, service, operator_subject, tenant, action", LISTS),
    ("SELECT id, hash FROM cqs_audit ORDER BY id DESC LIMIT 1", CHAIN),
    ("SELECT max(id) FROM cqs_audit", CHAIN),
    ("DELETE FROM cqs_audit WHERE id IN", CHAIN),
    ("SELECT tenant, position FROM (SELECT tenant, position, at FROM dto_history", UPKEEP),
    ("SELECT position, tenant, dto_type, store, id, payload, aliases FROM dto WHERE position > $1", REINDEX),
    ("UPDATE dto SET aliases = j.aliases", REINDEX),
];
const CHOICE: &str = "the choice of the next lane; what it finds is locked, and claimed, by its tenant";
const DUE: &str = "what comes due, lapses or ends next, of whichever tenant; it is then locked by its tenant";
const UPKEEP: &str = "upkeep looks for work; each piece is then done by its tenant";
const LISTS: &str = "an operator's list over the tenants he may see, or an overview of the queues";
const CHAIN: &str =
    "the audit log is one chain over all tenants, appended to one after another and cut at its beginning";
const REINDEX: &str = "a changed alias rule, before serving, once: walks over all records";

/// Pieces that a macro puts together, by how they begin: the pages of the audit log, over the tenants that an operator may see.
const COMPOSED: &[&str] =
    &["SELECT a.id, a.at, a.service, a.operator_subject, a.tenant, a.action", "one.id < least($3, (SELECT later.id"];

/// Who else names these tables, and why.
const NAMED_ELSEWHERE: &[(&str, &str)] = &[
    ("app/src/bench/split.rs", "a measurement on SQLite compares with plain inserts"),
    ("db/src/postgres/statistics.rs", "asks how large tables are, not what is in them"),
];

/// One line, single spaces.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty())
}

/// A database of the present schema, and what it knows of its tables.
struct Schema {
    conn: PgConnection,
    /// Tables of which each row is a tenant's.
    tables: BTreeSet<String>,
    _place: Database,
}

impl Schema {
    async fn new() -> Self {
        let place = Database::new().expect("PostgreSQL is installed");
        let mut conn = PgConnection::connect(&place.url()).await.expect("it answers");
        for migration in migrations() {
            sqlx::raw_sql(AssertSqlSafe(migration)).execute(&mut conn).await.expect("a migration");
        }
        // Plans for whatever is bound.
        conn.execute("SET plan_cache_mode = force_generic_plan").await.expect("a setting");
        let tables: Vec<String> = sqlx::query_scalar("SELECT relname::text FROM pg_stat_user_tables")
            .fetch_all(&mut conn)
            .await
            .expect("its tables");
        let tables = tables.into_iter().filter(|table| !SHARED_TABLES.contains(&table.as_str())).collect();
        Self { conn, tables, _place: place }
    }

    /// Whether a text names a table of tenants, and not only by its name alone, as errors do.
    fn names(&self, text: &str) -> bool {
        !self.tables.contains(text) && words(text).any(|word| self.tables.contains(word))
    }

    /// The plan of a statement, whatever is bound to it; or why PostgreSQL does not understand it.
    async fn plan(&mut self, statement: &str) -> Result<Value, sqlx::Error> {
        self.conn.execute(AssertSqlSafe(format!("PREPARE one AS {statement}"))).await?;
        let bound = "SELECT cardinality(parameter_types) FROM pg_prepared_statements WHERE name = 'one'";
        let bound: i32 = sqlx::raw_sql(bound).fetch_one(&mut self.conn).await?.try_get(0)?;
        let nulls = vec!["NULL"; usize::try_from(bound).expect("few")].join(", ");
        let nulls = if nulls.is_empty() { nulls } else { format!("({nulls})") };
        let explain = AssertSqlSafe(format!("EXPLAIN (VERBOSE, FORMAT JSON) EXECUTE one{nulls}"));
        let text: String = sqlx::raw_sql(explain).fetch_one(&mut self.conn).await?.try_get_unchecked(0)?;
        self.conn.execute("DEALLOCATE one").await?;
        let plans: Value = serde_json::from_str(&text).expect("PostgreSQL's JSON");
        Ok(plans[0]["Plan"].clone())
    }

    /// What a plan does in tables of tenants without one tenant.
    fn strays(&self, plan: &Value) -> Vec<String> {
        let mut strays = Vec::new();
        let text = |name: &str| plan[name].as_str().unwrap_or_default();
        let parts = || plan["Plans"].as_array().into_iter().flatten();
        if self.tables.contains(text("Relation Name")) {
            let conditions = ["Index Cond", "Recheck Cond", "Filter"].map(text);
            let inserts = text("Operation") == "Insert";
            if text("Node Type").ends_with("Scan") && !conditions.iter().any(|condition| has_tenant(condition)) {
                strays.push(format!("{} of {} by {conditions:?}", text("Node Type"), text("Relation Name")));
            }
            // The tenant is the first column of every table.
            if inserts && !parts().any(|part| first_output(part).is_some_and(|first| is_tenant(&first))) {
                strays.push(format!("Insert into {} of {plan}", text("Relation Name")));
            }
        }
        strays.extend(parts().flat_map(|part| self.strays(part)));
        strays
    }
}

/// Whether one of the things that must all hold is that the tenant is the one that was bound.
fn has_tenant(condition: &str) -> bool {
    let within = condition.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')).unwrap_or_default();
    let (mut depth, mut parts) = (0_i32, vec![String::new()]);
    for word in within.split(' ') {
        if depth == 0 && word == "AND" {
            parts.push(String::new());
            continue;
        }
        depth += word.chars().map(|c| i32::from(c == '(') - i32::from(c == ')')).sum::<i32>();
        let part = parts.last_mut().expect("never empty");
        part.push_str(word);
    }
    parts.iter().any(|part| {
        let bare = part.replace("($1)::text", "$1");
        let bare = bare.trim_start_matches('(').trim_end_matches(')');
        bare == "tenant=$1" || bare.split_once('.').is_some_and(|(of, rest)| rest == "tenant=$1" && words(of).eq([of]))
    })
}

/// What a part of a plan has in its first column; a subquery's is that of what is in it.
fn first_output(part: &Value) -> Option<String> {
    let first = part["Output"][0].as_str()?;
    if first.contains("*SELECT*") { first_output(&part["Plans"][0]) } else { Some(first.to_owned()) }
}

fn is_tenant(output: &str) -> bool {
    output == "$1" || output == "tenant" || output.ends_with(".tenant")
}

/// The migrations, in their order.
pub(crate) fn migrations() -> Vec<String> {
    let folder = workspace_root().join("migrations/postgres");
    let mut files = Vec::new();
    collect(&folder, "sql", &mut files);
    files.retain(|file| file.parent() == Some(&folder));
    files.sort();
    files.iter().map(|file| std::fs::read_to_string(file).expect("a migration is UTF-8")).collect()
}

fn is_twin(file: &SourceFile) -> bool {
    TWINS.iter().any(|twin| file.path.starts_with(twin)) && !file.is_test()
}

#[tokio::test]
async fn each_statement_names_its_tenant_or_says_why_not() {
    let mut schema = Schema::new().await;
    let (mut wrong, mut seen) = (Vec::new(), 0);
    let mut listed: Vec<&str> = Vec::new();
    for file in sources().iter().filter(|file| is_twin(file)) {
        // Quotes within a literal are escaped in the source.
        for statement in file.literals.iter().map(|literal| flat(literal).replace("\\\"", "\"")) {
            if !schema.names(&statement) || COMPOSED.iter().any(|piece| statement.starts_with(piece)) {
                continue;
            }
            seen += 1;
            let plan = match schema.plan(&statement).await {
                Ok(plan) => plan,
                Err(error) => {
                    wrong.push(format!("{}: {statement}: {error}", file.path));
                    continue;
                }
            };
            let strays = schema.strays(&plan);
            match OVER_ALL_TENANTS.iter().find(|(beginning, _)| statement.starts_with(beginning)) {
                _ if strays.is_empty() => {}
                Some((beginning, _)) => listed.push(beginning),
                None => wrong.push(format!("{}: {statement}: {strays:?}", file.path)),
            }
        }
    }
    assert!(seen > 100, "only {seen} statements were found: the check looks in the wrong place");
    assert!(wrong.is_empty(), "these name no single tenant and are not listed: {wrong:#?}");
    for (beginning, _) in OVER_ALL_TENANTS {
        let found = listed.iter().filter(|listed| *listed == beginning).count();
        assert_eq!(found, 1, "a line of the list is for one statement: {beginning}");
    }
}

#[tokio::test]
async fn nobody_but_the_twins_says_anything_to_their_tables() {
    let schema = Schema::new().await;
    let mut elsewhere = Vec::new();
    for file in sources().iter().filter(|file| !file.is_test() && !is_twin(file)) {
        // SQLite's twins have statements of their own; the test rooms look from outside.
        if file.path.contains("/sqlite/") || NAMED_ELSEWHERE.iter().any(|(path, _)| file.path == *path) {
            continue;
        }
        let statements = file.literals.iter().map(|literal| flat(literal));
        elsewhere.extend(statements.filter(|text| schema.names(text)).map(|text| format!("{}: {text}", file.path)));
    }
    assert!(elsewhere.is_empty(), "{elsewhere:#?}");
}

#[tokio::test]
async fn the_rule_knows_a_statement_without_a_tenant() {
    let mut schema = Schema::new().await;
    for good in [
        "SELECT 1 FROM cqs_lane WHERE tenant = $1 AND lane = $2",
        "INSERT INTO cqs_lapse (tenant, generation, lane, ids, at) VALUES ($1, $2, $3, $4, $5)",
        "SELECT 1 FROM cqs_lease l JOIN cqs_leased r ON r.tenant = l.tenant AND r.lease = l.generation WHERE l.tenant = $1",
    ] {
        let plan = schema.plan(good).await.expect(good);
        assert_eq!(schema.strays(&plan), Vec::<String>::new(), "{good}");
    }
    for bad in [
        "SELECT 1 FROM cqs_lane WHERE lane = $1",
        "SELECT tenant FROM cqs_lane WHERE lane = $1",
        "SELECT 1 FROM cqs_lane WHERE tenant = ANY($1::text[])",
        "SELECT 1 FROM cqs_lane WHERE tenant = $1 OR lane = $2",
        "SELECT 1 FROM cqs_lease l JOIN cqs_leased r ON r.lease = l.generation WHERE l.tenant = $1",
        "SELECT l.tenant, r.tenant FROM cqs_lease l, cqs_leased r WHERE r.lease = l.generation AND l.tenant = $1",
        "INSERT INTO cqs_lapse (tenant, generation, lane, ids, at) SELECT text 'T', $1, $2, $3, $4",
        "DELETE FROM cqs_lapse WHERE generation = $2 AND $1 = 'T'",
    ] {
        let plan = schema.plan(bad).await.expect(bad);
        assert!(!schema.strays(&plan).is_empty(), "{bad}");
    }
}
