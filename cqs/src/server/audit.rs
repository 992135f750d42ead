//! The audit log is appended to by the gateway and the trigger services, and read by the gateway.

use domain::{ErrorCode, OperatorSubject, Reason, Refusal, ServiceIdentity, ServiceName, Timestamp, TrackingId};
use proto::{cqs::v1 as wire, parse_field, timestamp_from_wire, timestamp_to_wire};
use tonic::Request;

use super::{CqsServer, allowed, count_in, page_after, page_from, page_size, plain_text, tenants};
use crate::{
    AuditFilter, StoreError,
    model::{AuditOutcome, AuditRow, SealedRow},
    store::FollowAsk,
};

/// Entries of one append.
const APPEND_MAX: usize = 100;
/// Longest action, in bytes.
const ACTION_MAX_BYTES: usize = 64;
/// Longest detail, in bytes.
const DETAIL_MAX_BYTES: usize = 1_000;
/// Longest name of a reader, in bytes.
const READER_MAX_BYTES: usize = 64;
/// Rows of a page when the caller names no number.
const PAGE_DEFAULT: usize = 100;
/// Rows of a page at most: each is under 3 KiB.
const PAGE_MAX: i32 = 500;

impl CqsServer {
    pub(super) async fn append_audit(
        &self,
        request: Request<wire::AppendAuditRequest>,
    ) -> Result<wire::AppendAuditResponse, StoreError> {
        let caller = allowed(&request, "AppendAudit")?;
        let request = request.into_inner();
        count_in("entries", request.entries.len(), 1..=APPEND_MAX)?;
        let at = self.parts.clock.now();
        let entries = request.entries.into_iter().enumerate();
        let rows = entries
            .map(|(index, entry)| entry_from_wire(&format!("entries[{index}]"), entry, (caller.service(), at)))
            .collect::<Result<Vec<_>, _>>()?;
        self.store.append_audit(rows).await?;
        Ok(wire::AppendAuditResponse {})
    }

    pub(super) async fn list_audit(
        &self,
        request: Request<wire::ListAuditRequest>,
    ) -> Result<wire::ListAuditResponse, StoreError> {
        allowed(&request, "ListAudit")?;
        let request = request.into_inner();
        let size = page_size(request.page_size, PAGE_DEFAULT, PAGE_MAX)?;
        let tracking_id =
            if request.tracking_id.is_empty() { None } else { Some(parse_field("tracking_id", &request.tracking_id)?) };
        let filter = AuditFilter {
            tenants: tenants(&request.tenant_ids)?,
            tracking_id,
            operator_subject: filter_text::<OperatorSubject>("operator_subject", request.operator_subject)?,
            action: filter_action(request.action)?,
            outcome: outcome_from_wire(request.outcome)?,
            since: request.since.as_ref().map(|at| timestamp_from_wire("since", at)).transpose()?,
            until: request.until.as_ref().map(|at| timestamp_from_wire("until", at)).transpose()?,
            before: page_from(&request.page_token)?,
            // One more than shown says whether there is a next page.
            limit: size + 1,
        };
        let mut rows = self.store.audit(filter).await?;
        let more = rows.len() > size;
        rows.truncate(size);
        let last = rows.last().filter(|_| more).map(|sealed| sealed.row.id);
        Ok(wire::ListAuditResponse {
            entries: rows.into_iter().map(entry_to_wire).collect(),
            next_page_token: page_after(last),
        })
    }
}

impl CqsServer {
    /// Rows are appended in the order of their ids, so whoever follows misses none.
    pub(super) async fn follow_audit(
        &self,
        request: Request<wire::FollowAuditRequest>,
    ) -> Result<wire::FollowAuditResponse, StoreError> {
        allowed(&request, "FollowAudit")?;
        let request = request.into_inner();
        if request.reader.is_empty() {
            return Err(Refusal::field("reader", "is required").into());
        }
        plain_text("reader", &request.reader, READER_MAX_BYTES)?;
        let limit = page_size(request.page_size, PAGE_DEFAULT, PAGE_MAX)?;
        let ask = FollowAsk { reader: request.reader, done: request.done_id, limit };
        let rows = self.store.follow_audit(ask).await?;
        Ok(wire::FollowAuditResponse { entries: rows.into_iter().map(entry_to_wire).collect() })
    }
}

/// A text to filter by; none when empty.
fn filter_text<T>(field: &str, text: String) -> Result<Option<String>, Refusal>
where
    T: std::str::FromStr,
    T::Err: std::fmt::Display,
{
    checked::<T>(field, &text)?;
    Ok(Some(text).filter(|text| !text.is_empty()))
}

fn filter_action(text: String) -> Result<Option<String>, Refusal> {
    plain_text("action", &text, ACTION_MAX_BYTES)?;
    Ok(Some(text).filter(|text| !text.is_empty()))
}

/// The outcome to filter by; unspecified: any.
fn outcome_from_wire(outcome: i32) -> Result<Option<AuditOutcome>, Refusal> {
    match wire::AuditOutcome::try_from(outcome) {
        Ok(wire::AuditOutcome::Unspecified) => Ok(None),
        Ok(wire::AuditOutcome::Accepted) => Ok(Some(AuditOutcome::Accepted)),
        Ok(wire::AuditOutcome::Replayed) => Ok(Some(AuditOutcome::Replayed)),
        Ok(wire::AuditOutcome::Refused) => Ok(Some(AuditOutcome::Refused)),
        Err(_) => Err(Refusal::field("outcome", "is no outcome")),
    }
}

/// Checks a text that may be empty.
fn checked<T>(field: &str, text: &str) -> Result<(), Refusal>
where
    T: std::str::FromStr,
    T::Err: std::fmt::Display,
{
    if text.is_empty() { Ok(()) } else { parse_field::<T>(field, text).map(drop) }
}

fn entry_from_wire(
    field: &str,
    entry: wire::AuditEntry,
    (service, at): (ServiceName, Timestamp),
) -> Result<AuditRow, Refusal> {
    let at_field = |name: &str| format!("{field}.{name}");
    let outcome = match entry.outcome() {
        wire::AuditOutcome::Accepted => AuditOutcome::Accepted,
        wire::AuditOutcome::Replayed => AuditOutcome::Replayed,
        wire::AuditOutcome::Refused => AuditOutcome::Refused,
        wire::AuditOutcome::Unspecified => return Err(Refusal::field(at_field("outcome"), "is required")),
    };
    if entry.action.is_empty() {
        return Err(Refusal::field(at_field("action"), "is required"));
    }
    plain_text(&at_field("action"), &entry.action, ACTION_MAX_BYTES)?;
    plain_text(&at_field("detail"), &entry.detail, DETAIL_MAX_BYTES)?;
    checked::<OperatorSubject>(&at_field("operator_subject"), &entry.operator_subject)?;
    checked::<TrackingId>(&at_field("tracking_id"), &entry.tracking_id)?;
    checked::<Reason>(&at_field("reason"), &entry.reason)?;
    checked::<ErrorCode>(&at_field("error_code"), &entry.error_code)?;
    let digest_ok = entry.request_digest.is_empty()
        || (entry.request_digest.len() == 64 && entry.request_digest.bytes().all(|byte| byte.is_ascii_hexdigit()));
    if !digest_ok {
        return Err(Refusal::field(at_field("request_digest"), "must be 64 hex digits"));
    }
    let tenant =
        if entry.tenant_id.is_empty() { None } else { Some(parse_field(&at_field("tenant_id"), &entry.tenant_id)?) };
    Ok(AuditRow {
        id: 0,
        at,
        service,
        operator_subject: entry.operator_subject,
        tenant,
        action: entry.action,
        tracking_id: entry.tracking_id,
        reason: entry.reason,
        request_digest: entry.request_digest,
        outcome,
        error_code: entry.error_code,
        detail: entry.detail,
    })
}

fn entry_to_wire(SealedRow { row, hash }: SealedRow) -> wire::AuditEntry {
    let outcome = match row.outcome {
        AuditOutcome::Accepted => wire::AuditOutcome::Accepted,
        AuditOutcome::Replayed => wire::AuditOutcome::Replayed,
        AuditOutcome::Refused => wire::AuditOutcome::Refused,
    };
    wire::AuditEntry {
        id: row.id,
        at: Some(timestamp_to_wire(row.at)),
        service: ServiceIdentity(row.service).to_string(),
        operator_subject: row.operator_subject,
        tenant_id: row.tenant.as_ref().map(ToString::to_string).unwrap_or_default(),
        action: row.action,
        tracking_id: row.tracking_id,
        reason: row.reason,
        request_digest: row.request_digest,
        outcome: outcome.into(),
        error_code: row.error_code,
        detail: row.detail,
        hash,
    }
}
