//! The checker checked: a sound state passes, and each defect put into it is found by the invariant meant for it.

use std::{fs, path::Path};

use sqlx::{
    ConnectOptions as _, Connection as _, SqliteConnection,
    sqlite::{SqliteConnectOptions, SqliteSynchronous},
};
use tempfile::TempDir;

use crate::{copy::migrate, tables::Tables};

/// A small sound state: one operation (lane 2) with 5 labels in queue 1 (2 done, 1 dead, 1 waiting, 1 leased) and its
/// parent done; one ordinary change waiting; one lease of a store in the exclusive queue 2; a label with its link.
const SOUND: &str = "
INSERT INTO cqs_queue (queue, name, subscriptions, shapes, exclusive_by_store) VALUES (1, 'ecc-image-render-service', '[]', '[]', 0), (2, 'hardware-exporter', '[]', '[]', 1);
INSERT INTO cqs_lane (lane, tenant, kind, tracking_id, created_at) VALUES (1, 'T', 'ordinary', '', 0), (2, 'T', 'operation', 'op', 0);
INSERT INTO cqs_waiting (id, queue, lane, store, is_parent, dto_type, urn, alias, sla, tracking_id, attempts, alone, lapses_alone, cursor) VALUES
    (10, 1, 2, '', 0, 'ecclink.v1', 't/T/s/S/ecclinks/A', '', 70, '', 0, 0, 0, ''),
    (11, 1, 1, '', 0, 'ecclink.v1', 't/T/s/S/ecclinks/A', '', 60, '', 0, 0, 0, '');
INSERT INTO cqs_lease VALUES (5, 1, 2, '', 'ecc-image-render-service', 'w', 99), (6, 2, 1, 'S', 'hardware-exporter', 'w', 99);
INSERT INTO cqs_leased VALUES
    (5, 12, 0, 'ecclink.v1', 't/T/s/S/ecclinks/B', '', 70, '', 0, 0, 0, '', 0),
    (6, 13, 0, 'eslimage.v1', 't/T/s/S/eslimages/B', '', 70, '', 0, 0, 0, '', 0);
INSERT INTO cqs_dead (row_id, queue, lane, is_parent, dto_type, urn, alias, sla, tracking_id, attempts, cursor, cause, at)
    VALUES (9, 1, 2, 0, 'ecclink.v1', 't/T/s/S/ecclinks/C', '', 70, '', 0, '', 'broken', 80);
INSERT INTO cqs_dead_group (lane, queue, cause, failed, retried, sample_urn) VALUES (2, 1, 'broken', 1, 0, 't/T/s/S/ecclinks/C');
INSERT INTO cqs_head (queue, lane, store, bulk, ready_labels, label_sla) VALUES (1, 1, '', 0, 1, 60), (1, 2, '', 1, 1, 70);
INSERT INTO cqs_operation (tenant, tracking_id, lane, queue, trigger_name, scope, reason, operator_subject, accepted_at, sla, items_digest, items_enqueued)
    VALUES ('T', 'op', 2, 'ecc-image-render-service', 'model-refresh', '', 'r', 'o', 0, 70, '', 1);
INSERT INTO cqs_audit (at, service, operator_subject, tenant, action, tracking_id, reason, request_digest, outcome, error_code, detail)
    VALUES (0, 'ecc-image-render-service', 'o', 'T', 'SelfEnqueue', 'op', 'r', '', 'accepted', '', '');
INSERT INTO cqs_ledger (lane, queue, is_parent, enqueued, done, unchanged, failed, coalesced, cancelled, waiting, leased) VALUES
    (2, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0), (2, 1, 0, 4, 2, 1, 0, 0, 0, 2, 0);
INSERT INTO cqs_ledger_delta (lane, queue, is_parent, enqueued, done, unchanged, failed, coalesced, cancelled, waiting, leased)
    VALUES (2, 1, 0, 1, 0, 0, 1, 0, 0, -1, 1);
INSERT INTO dto VALUES ('T', 'ecclink.v1', 'S', 'A', 1, 0, 'svc:record-import', NULL, '[]', x'0a014912014d');
INSERT INTO dto_alias VALUES
    ('T', 'ecclink.v1', 'by_store', '', 'S', 'A'), ('T', 'ecclink.v1', 'by_storeesl', 'esls/A', 'S', 'A'),
    ('T', 'ecclink.v1', 'by_item', 'items/I', 'S', 'A'), ('T', 'ecclink.v1', 'by_eccmodel', 'eccmodels/M', 'S', 'A');
INSERT INTO dto_alias_count SELECT tenant, dto_type, alias, base, store, 1 FROM dto_alias;
";

/// A defect, and a part of the name of what must find it.
const DEFECTS: &[(&str, &str)] = &[
    ("DELETE FROM cqs_waiting WHERE id = 10", "enqueued ="),
    ("DELETE FROM cqs_dead", "enqueued ="),
    ("DELETE FROM cqs_leased WHERE id = 12", "enqueued ="),
    ("UPDATE cqs_ledger SET done = done + 1, enqueued = enqueued + 1, waiting = waiting - 1, failed = failed + 1 WHERE is_parent = 0", "enqueued ="),
    ("UPDATE cqs_ledger SET unchanged = 9 WHERE is_parent = 0", "enqueued ="),
    ("UPDATE cqs_ledger SET handed_over = 1 WHERE is_parent = 0", "handed over"),
    ("UPDATE cqs_waiting SET handed_over = 1 WHERE id = 10", "handed over"),
    ("UPDATE cqs_leased SET handed_over = 1 WHERE id = 12", "handed over"),
    ("UPDATE cqs_ledger SET transferred = 3 WHERE is_parent = 0", "by evidence"),
    ("UPDATE cqs_ledger SET written = 1 WHERE is_parent = 1", "by evidence"),
    ("UPDATE cqs_ledger SET failed_handed_over = 1 WHERE is_parent = 0", "failures are counted as handed over"),
    ("UPDATE cqs_dead SET handed_over = 1", "failures are counted as handed over"),
    ("UPDATE cqs_dead_group SET handed_over = 1", "counted by cause"),
    ("DELETE FROM cqs_ledger_delta", "enqueued ="),
    ("INSERT INTO cqs_ledger (lane, queue, is_parent, enqueued, done, unchanged, failed, coalesced, cancelled, waiting, leased) VALUES (1, 1, 0, 1, 1, 0, 0, 0, 0, 0, 0)", "only operations"),
    ("UPDATE cqs_lane SET tracking_id = 'other' WHERE lane = 2", "an operation has a lane"),
    ("INSERT INTO cqs_audit (at, service, operator_subject, tenant, action, tracking_id, reason, request_digest, outcome, error_code, detail)
        SELECT at, service, operator_subject, tenant, action, tracking_id, reason, request_digest, outcome, error_code, detail FROM cqs_audit", "an operation has a lane"),
    ("UPDATE cqs_operation SET finished_at = 90", "finished exactly"),
    ("UPDATE cqs_lane SET cancelled_at = 90 WHERE lane = 2", "waits in a cancelled lane"),
    ("UPDATE cqs_lane SET cancelled_at = 90, clearing = 1 WHERE lane = 2", "waits in a cancelled lane"),
    ("UPDATE cqs_dead_group SET failed = 2", "counted by cause"),
    ("INSERT INTO cqs_lease VALUES (7, 1, 1, '', 'ecc-image-render-service', 'w', 99)", "a lease holds items"),
    ("DELETE FROM cqs_lease WHERE generation = 5", "has its lease"),
    ("INSERT INTO cqs_leased SELECT 6, 11, 0, dto_type, urn, '', 70, '', 0, 0, 0, '', 0 FROM cqs_waiting WHERE id = 11", "in one place"),
    ("DROP INDEX cqs_waiting_same;
        INSERT INTO cqs_waiting (id, queue, lane, store, is_parent, dto_type, urn, alias, sla, tracking_id, attempts, due_at, alone, lapses_alone, cursor)
        SELECT 99, queue, lane, store, is_parent, dto_type, urn, alias, sla, tracking_id, attempts, due_at, alone, lapses_alone, cursor FROM cqs_waiting WHERE id = 11", "is unique"),
    ("INSERT INTO cqs_leased VALUES (5, 20, 1, 'ecclink.v1', 't/T/s/S/eccmodels/M', 'by_eccmodel', 70, '', 0, 0, 0, '', 0), (5, 21, 1, 'ecclink.v1', 't/T/s/S/eccmodels/N', 'by_eccmodel', 70, '', 0, 0, 0, '', 0)", "leased alone"),
    ("UPDATE cqs_waiting SET urn = 't/U/s/S/ecclinks/A' WHERE id = 11", "a lane of its tenant"),
    ("UPDATE cqs_waiting SET lane = 3 WHERE id = 11", "a lane of its tenant"),
    ("DROP INDEX cqs_lane_ordinary; INSERT INTO cqs_lane (tenant, kind, tracking_id, created_at) VALUES ('T', 'ordinary', '', 0)", "one ordinary lane"),
    ("DROP INDEX cqs_lease_store; INSERT INTO cqs_lease SELECT 8, queue, lane, store, owner, worker_id, expires_at FROM cqs_lease WHERE generation = 6;
        INSERT INTO cqs_leased SELECT 8, 30, 0, dto_type, urn || 'x', '', 70, '', 0, 0, 0, '', 0 FROM cqs_leased WHERE id = 13", "one lease holds a store"),
    ("UPDATE cqs_leased SET urn = 't/T/s/R/eslimages/B' WHERE id = 13", "one lease holds a store"),
    ("UPDATE cqs_head SET ready_labels = 2 WHERE lane = 1", "heads count"),
    ("UPDATE cqs_head SET label_sla = 61 WHERE lane = 1", "heads count"),
    ("DELETE FROM cqs_head WHERE lane = 1", "heads count"),
    ("UPDATE cqs_waiting SET due_at = 100 WHERE id = 11", "heads count"),
    ("UPDATE cqs_head SET held = 1 WHERE lane = 1", "held exactly"),
    ("DELETE FROM dto_alias WHERE alias = 'by_item'", "alias counts"),
    ("UPDATE dto_alias_count SET entries = 2 WHERE alias = 'by_eccmodel'", "alias counts"),
    ("DELETE FROM dto_alias WHERE alias = 'by_item'; DELETE FROM dto_alias_count WHERE alias = 'by_item'", "alias entry missing"),
    ("INSERT INTO dto_alias VALUES ('T', 'ecclink.v1', 'by_item', 'items/J', 'S', 'A'); INSERT INTO dto_alias_count VALUES ('T', 'ecclink.v1', 'by_item', 'items/J', 'S', 1)", "alias entry without record"),
    ("UPDATE dto SET payload = NULL", "alias entry without record"),
    ("INSERT INTO dto VALUES ('T', 'storeeslstatus.v1', 'S', 'A', 1, 0, 'svc:hardware-exporter', NULL, '[]', x''); INSERT INTO dto_alias VALUES ('T', 'storeeslstatus.v1', 'by_store', '', 'S', 'A'); INSERT INTO dto_alias_count VALUES ('T', 'storeeslstatus.v1', 'by_store', '', 'S', 1)", "the exporter sends"),
];

/// A database of this schema in the sound state, as a file in a folder.
async fn sound() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let mut connection = open(&folder.path().join("reshelf.db")).await;
    migrate(&mut connection).await;
    run(&mut connection, SOUND.to_owned()).await;
    connection.close().await.expect("closed");
    folder
}

async fn open(path: &Path) -> SqliteConnection {
    // Nothing here has to survive a power cut.
    let options =
        SqliteConnectOptions::new().filename(path).create_if_missing(true).synchronous(SqliteSynchronous::Off);
    options.connect().await.expect("a database")
}

async fn run(connection: &mut SqliteConnection, sql: String) {
    let text = sqlx::AssertSqlSafe(sql.clone());
    sqlx::raw_sql(text).execute(connection).await.unwrap_or_else(|error| panic!("{error}\n{sql}"));
}

#[tokio::test]
async fn a_sound_state_passes() {
    let folder = sound().await;
    let wrong = Tables::open(&folder.path().join("reshelf.db")).await.check().await;
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test]
async fn every_defect_is_found() {
    let folder = sound().await;
    let path = folder.path().join("defect.db");
    for (defect, found_by) in DEFECTS {
        fs::copy(folder.path().join("reshelf.db"), &path).expect("a copy");
        let mut connection = open(&path).await;
        run(&mut connection, (*defect).to_owned()).await;
        connection.close().await.expect("closed");
        let wrong = Tables::open(&path).await.check().await;
        let found = wrong.iter().any(|text| text.contains(found_by));
        assert!(found, "{defect}\nmust be found by {found_by:?}: {wrong:#?}");
    }
}
