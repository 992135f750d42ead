//! The audit log and what its chain hangs on.

use db::row::{Binds, ResultRow};
use domain::TrackingId;

use super::{Columns, limit_int, ms};
use crate::{
    StoreError,
    audit::chain::{Anchor, ChainHash, ChainHead},
    model::{AuditOutcome, AuditRow, SealedRow},
    unit::{AUDIT_DISORDER_MS, AuditFilter},
};

/// A row of `cqs_audit`.
pub(crate) fn read_audit<R: ResultRow>(row: &R) -> Result<SealedRow, StoreError> {
    let columns = Columns { table: "cqs_audit", row, key: "id" };
    let hash = columns.get("hash")?;
    let row = AuditRow {
        id: columns.get("id")?,
        at: columns.time("at")?,
        service: columns.parse("service")?,
        operator_subject: columns.get("operator_subject")?,
        tenant: columns.parse_if("tenant")?,
        action: columns.get("action")?,
        tracking_id: columns.get("tracking_id")?,
        reason: columns.get("reason")?,
        request_digest: columns.get("request_digest")?,
        outcome: columns.parse("outcome")?,
        error_code: columns.get("error_code")?,
        detail: columns.get("detail")?,
    };
    Ok(SealedRow { row, hash })
}

/// Where a page begins and ends, and what is in it, but for its parts: tenants and actions.
pub(crate) fn bind_filter<Q: Binds>(query: Q, filter: &AuditFilter) -> Q {
    query
        .with(filter.before)
        .with(limit_int(filter.limit))
        .with(filter.tracking_id.as_ref().map(TrackingId::as_str))
        .with(filter.operator_subject.as_deref())
        .with(filter.outcome.map(AuditOutcome::as_str))
        .with(ms(filter.since))
        .with(ms(filter.until))
        .with(AUDIT_DISORDER_MS)
}

/// A row of `cqs_audit_anchor`.
pub(crate) fn read_anchor<R: ResultRow>(row: &R) -> Result<Anchor, StoreError> {
    let columns = Columns { table: "cqs_audit_anchor", row, key: "kind" };
    let hash = ChainHash::from_hex(columns.get("hash")?).ok_or_else(|| columns.broken("hash"))?;
    let head = ChainHead { id: columns.get("id")?, hash };
    match columns.get("kind")? {
        "genesis" => Ok(Anchor::Genesis(head)),
        "cut" => Ok(Anchor::Cut(head)),
        _ => Err(columns.broken("kind")),
    }
}

/// The column `kind`, and what the others are made of.
pub(crate) fn anchor_columns(anchor: Anchor) -> (&'static str, ChainHead) {
    match anchor {
        Anchor::Genesis(head) => ("genesis", head),
        Anchor::Cut(head) => ("cut", head),
    }
}
