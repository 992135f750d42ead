//! Every statement of the PostgreSQL twins names one tenant by equality, so that it runs unchanged where the tables are
//! distributed by tenant; those that look over all tenants are listed here with their reasons.

use std::collections::BTreeSet;

use tests::source::sources;

/// Where the twins' statements stand.
const TWINS: &[&str] = &["cqs/src/postgres/", "dtoflow/src/postgres/"];

/// Tables without a tenant: small, the same for all, on every node of a distributed database.
const SHARED_TABLES: &[&str] =
    &["cqs_tenant", "cqs_queue", "cqs_brake", "cqs_audit_anchor", "cqs_audit_reader", "dto_alias_rules"];

/// Statements over all tenants, by how they begin, each with its reason. Where work hangs on them they only read.
const OVER_ALL_TENANTS: &[(&str, &str)] = &[
    ("SELECT tenant, lane, kind, first_sla FROM cqs_place WHERE queue = $1 AND kind = $2", CHOICE),
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
    ("SELECT id, tenant, tracking_id, lane, queue, trigger_name", LISTS),
    ("SELECT id, at, service, operator_subject, tenant, action", LISTS),
    ("SELECT a.id, a.at, a.service, a.operator_subject, a.tenant, a.action", LISTS),
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

/// One line, single spaces.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty())
}

/// Tables of tenants that a statement reads or writes, as often as it names them there.
fn tenants_tables(statement: &str) -> usize {
    let all: Vec<&str> = words(statement).collect();
    all.windows(2)
        .filter(|pair| matches!(pair[0], "FROM" | "JOIN" | "INTO" | "UPDATE" | "USING"))
        .filter(|pair| pair[1].starts_with("cqs_") || pair[1] == "dto" || pair[1].starts_with("dto_"))
        .filter(|pair| !SHARED_TABLES.contains(&pair[1]))
        // Sequences are read like tables.
        .filter(|pair| !matches!(pair[1], "cqs_generation" | "cqs_dead_id"))
        .count()
}

fn names_one_tenant(statement: &str) -> bool {
    let by_equality = ["tenant = $1", "VALUES ($1", "SELECT $1"].iter().any(|form| statement.contains(form));
    by_equality && words(statement).filter(|word| *word == "tenant").count() >= tenants_tables(statement)
}

#[test]
fn each_statement_names_its_tenant_or_says_why_not() {
    let mut wrong = Vec::new();
    let mut listed = BTreeSet::new();
    let mut seen = 0;
    for file in sources().iter().filter(|file| TWINS.iter().any(|twin| file.path.starts_with(twin))) {
        for statement in file.literals.iter().map(|literal| flat(literal)) {
            let begins = statement.split(' ').next().unwrap_or_default();
            if !matches!(begins, "SELECT" | "INSERT" | "UPDATE" | "DELETE" | "WITH") || tenants_tables(&statement) == 0
            {
                continue;
            }
            seen += 1;
            if names_one_tenant(&statement) {
                continue;
            }
            match OVER_ALL_TENANTS.iter().find(|(beginning, _)| statement.starts_with(beginning)) {
                Some((beginning, _)) => {
                    listed.insert(*beginning);
                }
                None => wrong.push(format!("{}: {statement}", file.path)),
            }
        }
    }
    assert!(seen > 100, "only {seen} statements were found: the check looks in the wrong place");
    assert!(wrong.is_empty(), "these name no single tenant and are not listed: {wrong:#?}");
    let unused: Vec<_> = OVER_ALL_TENANTS.iter().filter(|(beginning, _)| !listed.contains(beginning)).collect();
    assert!(unused.is_empty(), "listed, but not there: {unused:#?}");
}

#[test]
fn the_rule_knows_a_statement_without_a_tenant() {
    for good in [
        "SELECT 1 FROM cqs_lane WHERE tenant = $1 AND lane = $2",
        "INSERT INTO cqs_lane (tenant, lane) VALUES ($1, $2)",
        "SELECT 1 FROM cqs_lease l JOIN cqs_leased r ON r.tenant = l.tenant WHERE l.tenant = $1",
    ] {
        assert!(names_one_tenant(good), "{good}");
    }
    for bad in [
        "SELECT 1 FROM cqs_lane WHERE lane = $1",
        "SELECT tenant FROM cqs_lane WHERE lane = $1",
        "SELECT 1 FROM cqs_lane WHERE tenant = ANY($1)",
        "SELECT 1 FROM cqs_lease l JOIN cqs_leased r ON r.lease = l.generation WHERE l.tenant = $1",
    ] {
        assert!(!names_one_tenant(bad), "{bad}");
    }
}
