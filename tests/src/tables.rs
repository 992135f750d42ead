//! The database read from outside: a read-only connection of its own, the table definitions of `migrations/`, and no
//! code of the system.

use std::{collections::BTreeMap, path::Path};

use sqlx::{
    ConnectOptions as _, Row as _, SqliteConnection,
    sqlite::{SqliteConnectOptions, SqliteRow},
};

/// A read-only look at the database file, or a copy of another engine's tables.
#[derive(Debug)]
pub struct Tables(pub(crate) SqliteConnection, pub(crate) Heads);

/// Whether heads are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heads {
    /// As counts, which the checker looks at.
    Counted,
    /// Not: it is a copy, and the engine it is of has other ones.
    Elsewhere,
}

/// Names a record.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordKey {
    /// Tenant.
    pub tenant: String,
    /// Store; empty for a tenant-scoped record.
    pub store: String,
    /// Last segment of its URN.
    pub id: String,
}

/// A stored record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRecord {
    /// Its version.
    pub version: i64,
    /// Milliseconds since 1970; also moved by a touch.
    pub updated_at: i64,
    /// The bytes as they came.
    pub payload: Vec<u8>,
}

/// Every record there is, by type and key.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Records(BTreeMap<String, BTreeMap<RecordKey, StoredRecord>>);

impl Tables {
    /// Opens the file, running process or not.
    pub async fn open(path: &Path) -> Self {
        let options = SqliteConnectOptions::new().filename(path).read_only(true);
        let conn = options.connect().await.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self(conn, Heads::Counted)
    }

    pub(crate) fn in_memory(conn: SqliteConnection) -> Self {
        Self(conn, Heads::Elsewhere)
    }

    /// Records of one tenant, or of all.
    pub async fn records(&mut self, tenant: Option<&str>) -> Records {
        let rows = sqlx::query(
            "SELECT dto_type, tenant, store, id, version, updated_at, payload FROM dto
             WHERE payload IS NOT NULL AND (?1 IS NULL OR tenant = ?1)",
        )
        .bind(tenant)
        .fetch_all(&mut self.0)
        .await
        .expect("the dto table");
        let mut records = Records::default();
        for row in rows {
            let key = RecordKey { tenant: row.get(1), store: row.get(2), id: row.get(3) };
            let record = StoredRecord { version: row.get(4), updated_at: row.get(5), payload: row.get(6) };
            records.0.entry(row.get(0)).or_default().insert(key, record);
        }
        records
    }
}

/// A lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// Of which queue.
    pub queue: String,
    /// Its generation.
    pub generation: i64,
    /// The service that holds it.
    pub owner: String,
    /// Of its operation; empty when it has none.
    pub tracking_id: String,
}

/// One entry of the audit log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    /// Position.
    pub id: i64,
    /// Which service called or appended.
    pub service: String,
    /// On whose behalf.
    pub operator_subject: String,
    /// The tenant, where one is known.
    pub tenant: String,
    /// What was asked.
    pub action: String,
    /// Of the request.
    pub tracking_id: String,
    /// Of the request.
    pub reason: String,
    /// `accepted`, `replayed` or `refused`.
    pub outcome: String,
    /// Of a refusal.
    pub error_code: String,
    /// More words.
    pub detail: String,
}

/// The columns of an [`AuditEntry`].
macro_rules! audit {
    ($condition:literal) => {
        concat!(
            "SELECT id, service, operator_subject, tenant, action, tracking_id, reason, outcome, error_code, detail
             FROM cqs_audit WHERE ",
            $condition,
            " ORDER BY id"
        )
    };
}

impl Tables {
    /// Rows that wait or are leased, by queue; queues without any are left out.
    pub async fn rows_by_queue(&mut self) -> BTreeMap<String, i64> {
        let rows = sqlx::query(
            "SELECT q.name, count(*) FROM (
                SELECT queue FROM cqs_waiting
                UNION ALL SELECT l.queue FROM cqs_leased r JOIN cqs_lease l ON l.generation = r.lease) item
             JOIN cqs_queue q ON q.queue = item.queue GROUP BY q.name",
        )
        .fetch_all(&mut self.0)
        .await
        .expect("the queues' tables");
        rows.iter().map(|row| (row.get(0), row.get(1))).collect()
    }

    async fn number(&mut self, query: &'static str) -> i64 {
        sqlx::query_scalar(query).fetch_one(&mut self.0).await.unwrap_or_else(|error| panic!("{query}: {error}"))
    }

    /// Notifications that ever came into any queue, those merged into waiting ones left out: ids only grow.
    pub async fn notifications_ever(&mut self) -> i64 {
        self.number("SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'cqs_waiting'").await
    }

    /// Parents there are, or ever were under an operation.
    pub async fn parents_ever(&mut self) -> i64 {
        self.number(
            "SELECT (SELECT count(*) FROM cqs_waiting WHERE is_parent = 1)
                + (SELECT count(*) FROM cqs_leased WHERE is_parent = 1)
                + (SELECT count(*) FROM cqs_dead WHERE is_parent = 1)
                + (SELECT count(*) FROM cqs_ledger WHERE is_parent = 1)
                + (SELECT count(*) FROM cqs_ledger_delta WHERE is_parent = 1)",
        )
        .await
    }

    /// Who follows the audit log.
    pub async fn audit_readers(&mut self) -> i64 {
        self.number("SELECT count(*) FROM cqs_audit_reader").await
    }

    /// Operations ever accepted.
    pub async fn operations(&mut self) -> i64 {
        self.number("SELECT count(*) FROM cqs_operation").await
    }

    /// Live leases, and those that lapsed and nobody took back yet.
    pub async fn leases(&mut self) -> Vec<Lease> {
        let rows = sqlx::query(
            "SELECT q.name, l.generation, l.owner, a.tracking_id FROM cqs_lease l
             JOIN cqs_queue q ON q.queue = l.queue JOIN cqs_lane a ON a.lane = l.lane ORDER BY l.generation",
        )
        .fetch_all(&mut self.0)
        .await
        .expect("the leases");
        rows.iter()
            .map(|row| Lease { queue: row.get(0), generation: row.get(1), owner: row.get(2), tracking_id: row.get(3) })
            .collect()
    }

    /// Rows in the dead letter.
    pub async fn dead(&mut self) -> i64 {
        self.number("SELECT count(*) FROM cqs_dead").await
    }

    /// Rows in the dead letter, by cause.
    pub async fn dead_by_cause(&mut self) -> BTreeMap<String, i64> {
        let rows = sqlx::query("SELECT cause, count(*) FROM cqs_dead GROUP BY cause").fetch_all(&mut self.0).await;
        rows.expect("the dead letter").iter().map(|row| (row.get(0), row.get(1))).collect()
    }

    /// Position of the newest audit entry.
    pub async fn audit_entries(&mut self) -> i64 {
        self.number("SELECT coalesce(max(id), 0) FROM cqs_audit").await
    }

    /// Audit entries after a position.
    pub async fn audit_after(&mut self, position: i64) -> Vec<AuditEntry> {
        let rows = sqlx::query(audit!("id > ?1")).bind(position).fetch_all(&mut self.0).await;
        rows.expect("the audit log").iter().map(AuditEntry::of).collect()
    }

    /// Audit entries of a tracking id.
    pub async fn audit_of(&mut self, tracking_id: &str) -> Vec<AuditEntry> {
        let rows = sqlx::query(audit!("tracking_id = ?1")).bind(tracking_id).fetch_all(&mut self.0).await;
        rows.expect("the audit log").iter().map(AuditEntry::of).collect()
    }
}

impl AuditEntry {
    fn of(row: &SqliteRow) -> Self {
        Self {
            id: row.get("id"),
            service: row.get("service"),
            operator_subject: row.get("operator_subject"),
            tenant: row.get("tenant"),
            action: row.get("action"),
            tracking_id: row.get("tracking_id"),
            reason: row.get("reason"),
            outcome: row.get("outcome"),
            error_code: row.get("error_code"),
            detail: row.get("detail"),
        }
    }
}

impl Records {
    /// Every record with its type.
    pub fn all(&self) -> impl Iterator<Item = (&str, &RecordKey, &StoredRecord)> {
        self.0
            .iter()
            .flat_map(|(dto_type, records)| records.iter().map(move |(key, record)| (dto_type.as_str(), key, record)))
    }

    /// Records of one type.
    pub fn of(&self, dto_type: &str) -> impl Iterator<Item = (&RecordKey, &StoredRecord)> {
        self.0.get(dto_type).into_iter().flatten()
    }

    /// One record's bytes.
    pub fn get(&self, dto_type: &str, tenant: &str, store: &str, id: &str) -> Option<&[u8]> {
        let key = RecordKey { tenant: tenant.to_owned(), store: store.to_owned(), id: id.to_owned() };
        self.0.get(dto_type)?.get(&key).map(|record| record.payload.as_slice())
    }
}
