//! Failures are listed and retried, and records looked for in the queues.

use daemon::identity::{Caller, caller};
use domain::{Refusal, ServiceName, TenantId, TrackingId, Urn};
use prost::Message as _;
use proto::{cqs::v1 as wire, parse_field, timestamp_from_wire, timestamp_to_wire};
use sha2::{Digest as _, Sha256};
use tonic::Request;

use super::{CqsServer, allowed, count_in, page_size};
use crate::{
    StoreError,
    failure_store::{FailureAsk, Retried, RetryAsk},
    model::{AuditOutcome, AuditRow, Failure, FateState, RecordFate},
    steps::retry::{ACTION, no_such_operation},
};

/// Failures of a page when the caller names no number.
const PAGE_DEFAULT: usize = 100;
/// Failures of a page at most: each is under 2 KiB.
const PAGE_MAX: i32 = 500;
/// Records looked for in one call: those of a dozen labels.
const FATES_MAX: usize = 100;
/// Longest cause that can be asked for, in characters: no shorter than the longest that is kept.
const CAUSE_MAX_CHARS: usize = domain::limits::CAUSE_MAX_BYTES;

impl CqsServer {
    pub(super) async fn list_failures(
        &self,
        request: Request<wire::ListFailuresRequest>,
    ) -> Result<wire::ListFailuresResponse, StoreError> {
        let caller = allowed(&request, "ListFailures")?;
        let request = request.into_inner();
        let tenant: TenantId = parse_field("tenant_id", &request.tenant_id)?;
        let tracking_id: TrackingId = parse_field("tracking_id", &request.tracking_id)?;
        let limit = page_size(request.page_size, PAGE_DEFAULT, PAGE_MAX)?;
        let after = place_from(&request.page_token)?;
        self.require_operation(&caller, &tenant, &tracking_id).await?;
        let ask = FailureAsk {
            tenant,
            tracking_id,
            queue: optional("queue_name", &request.queue_name)?,
            cause: cause(request.cause)?,
            after,
            limit,
        };
        let page = self.store.failures(ask).await?;
        Ok(wire::ListFailuresResponse {
            failures: page.failures.into_iter().map(failure_to_wire).collect(),
            next_page_token: page.next.map(|(queue, position)| format!("{queue:x}-{position:x}")).unwrap_or_default(),
        })
    }

    pub(super) async fn retry_failures(
        &self,
        request: Request<wire::RetryFailuresRequest>,
    ) -> Result<wire::RetryFailuresResponse, StoreError> {
        let caller = caller(&request)?;
        let request = request.into_inner();
        let digest = domain::hex(Sha256::digest(request.encode_to_vec()));
        match self.accept_retry(&caller, &request, &digest).await {
            Ok(done) => Ok(wire::RetryFailuresResponse {
                items: done.items,
                replayed: done.replayed,
                accepted_at: Some(timestamp_to_wire(done.accepted_at)),
                sla_timestamp: Some(timestamp_to_wire(done.sla)),
            }),
            Err(StoreError::Refused(refusal)) => {
                // In a unit of work of its own: the refused one left nothing behind.
                let row = self.refused_retry(&caller, &request, (&refusal, digest));
                self.store.append_audit(vec![row]).await?;
                Err(refusal.into())
            }
            Err(fault) => Err(fault),
        }
    }

    async fn accept_retry(
        &self,
        caller: &Caller,
        request: &wire::RetryFailuresRequest,
        digest: &str,
    ) -> Result<Retried, StoreError> {
        caller.require_rpc("cqs.v1.ChangeQueueService/RetryFailures")?;
        let ask = parse(caller, request, digest)?;
        self.require_operation(caller, &ask.tenant, &ask.parent).await?;
        let (tracking_id, parent, reason) = (ask.tracking_id.clone(), ask.parent.clone(), ask.reason.clone());
        let done = self.store.retry_failures(ask, self.parts.clock.now()).await?;
        self.parts.wakeups.wake(&done.woken);
        tracing::info!(%tracking_id, %parent, %reason, items = done.items, replayed = done.replayed, "RetryFailures accepted");
        Ok(done)
    }

    /// The audit row of a refused request; texts that cannot be parsed are left out.
    fn refused_retry(
        &self,
        caller: &Caller,
        request: &wire::RetryFailuresRequest,
        (refusal, request_digest): (&Refusal, String),
    ) -> AuditRow {
        fn parsed<T: std::str::FromStr + ToString>(text: &str) -> String {
            text.parse::<T>().map(|value| value.to_string()).unwrap_or_default()
        }
        AuditRow {
            id: 0,
            at: self.parts.clock.now(),
            service: caller.service(),
            operator_subject: parsed::<domain::OperatorSubject>(&request.operator_subject),
            tenant: request.tenant_id.parse().ok(),
            action: ACTION.to_owned(),
            tracking_id: parsed::<TrackingId>(&request.retry_tracking_id),
            reason: parsed::<domain::Reason>(&request.reason),
            request_digest,
            outcome: AuditOutcome::Refused,
            error_code: refusal.code.as_str().to_owned(),
            detail: super::refusal_detail(refusal),
        }
    }

    pub(super) async fn get_record_fates(
        &self,
        request: Request<wire::GetRecordFatesRequest>,
    ) -> Result<wire::GetRecordFatesResponse, StoreError> {
        allowed(&request, "GetRecordFates")?;
        let request = request.into_inner();
        count_in("dto_ids", request.dto_ids.len(), 1..=FATES_MAX)?;
        let mut urns: Vec<Urn> = Vec::with_capacity(request.dto_ids.len());
        for (index, text) in request.dto_ids.iter().enumerate() {
            let field = format!("dto_ids[{index}]");
            let urn: Urn = parse_field(&field, text)?;
            if urns.first().is_some_and(|first| first.tenant() != urn.tenant()) {
                return Err(Refusal::field(field, "lies under another tenant than dto_ids[0]").into());
            }
            urns.push(urn);
        }
        urns.sort_unstable();
        urns.dedup();
        let fates = self.store.record_fates(urns).await?;
        Ok(wire::GetRecordFatesResponse { fates: fates.into_iter().map(fate_to_wire).collect() })
    }

    /// Refuses an operation that the caller may not know of as if it did not exist.
    async fn require_operation(
        &self,
        caller: &Caller,
        tenant: &TenantId,
        tracking_id: &TrackingId,
    ) -> Result<(), StoreError> {
        if caller.service() == ServiceName::OperatorGateway {
            return Ok(());
        }
        let found = self.store.operation(tenant.clone(), tracking_id.clone(), self.parts.clock.now()).await?;
        match found.filter(|report| caller.queue().as_ref() == Some(&report.operation.queue)) {
            Some(_) => Ok(()),
            None => Err(no_such_operation().into()),
        }
    }
}

fn optional<T>(field: &str, text: &str) -> Result<Option<T>, Refusal>
where
    T: std::str::FromStr,
    T::Err: std::fmt::Display,
{
    if text.is_empty() { Ok(None) } else { parse_field(field, text).map(Some) }
}

fn cause(text: String) -> Result<Option<String>, Refusal> {
    // PostgreSQL keeps no NUL, and no cause has one.
    if text.chars().count() > CAUSE_MAX_CHARS || text.contains('\0') {
        return Err(Refusal::field("cause", format!("must be at most {CAUSE_MAX_CHARS} characters, none of them NUL")));
    }
    Ok(Some(text).filter(|text| !text.is_empty()))
}

/// A page token: key of a queue and a position, in hexadecimal.
fn place_from(token: &str) -> Result<Option<(i64, i64)>, Refusal> {
    if token.is_empty() {
        return Ok(None);
    }
    let number = |text: &str| i64::from_str_radix(text, 16).ok().filter(|number| *number > 0);
    let place = token.split_once('-').and_then(|(queue, position)| number(queue).zip(number(position)));
    place.map(Some).ok_or_else(|| Refusal::field("page_token", "is not a token of this list"))
}

fn parse(caller: &Caller, request: &wire::RetryFailuresRequest, digest: &str) -> Result<RetryAsk, Refusal> {
    let sla = request.sla_timestamp.as_ref().map(|sla| timestamp_from_wire("sla_timestamp", sla)).transpose()?;
    Ok(RetryAsk {
        service: caller.service(),
        reason: parse_field("reason", &request.reason)?,
        tracking_id: parse_field("retry_tracking_id", &request.retry_tracking_id)?,
        tenant: parse_field("tenant_id", &request.tenant_id)?,
        parent: parse_field("tracking_id", &request.tracking_id)?,
        queue: optional("queue_name", &request.queue_name)?,
        cause: cause(request.cause.clone())?,
        operator_subject: optional("operator_subject", &request.operator_subject)?,
        sla,
        request_digest: digest.to_owned(),
    })
}

fn failure_to_wire(failure: Failure) -> wire::Failure {
    let urn = failure.urn.to_string();
    wire::Failure {
        queue_name: failure.queue.to_string(),
        dto_type: failure.dto_type.to_string(),
        urn: Some(if failure.is_parent { wire::failure::Urn::ParentId(urn) } else { wire::failure::Urn::DtoId(urn) }),
        cause: failure.cause,
        attempts: failure.attempts,
        failed_at: Some(timestamp_to_wire(failure.at)),
        retried_by: failure.retried_by.map(|id| id.to_string()).unwrap_or_default(),
        handed_over: failure.handed_over,
    }
}

fn fate_to_wire(fate: RecordFate) -> wire::RecordFate {
    let (state, cause, due_at, failed_at) = match fate.state {
        FateState::Waiting { due_at, cause } => (wire::RecordFateState::Waiting, cause, due_at, None),
        FateState::Leased => (wire::RecordFateState::Leased, String::new(), None, None),
        FateState::Dead { cause, at } => (wire::RecordFateState::Failed, cause, None, Some(at)),
    };
    // A row whose time has come keeps why it waited; it is not what it waits for.
    let cause = if due_at.is_none() && failed_at.is_none() { String::new() } else { cause };
    wire::RecordFate {
        dto_type: fate.dto_type.to_string(),
        dto_id: fate.urn.to_string(),
        queue_name: fate.queue.to_string(),
        state: state.into(),
        cause,
        attempts: fate.attempts,
        sla_timestamp: Some(timestamp_to_wire(fate.sla)),
        due_at: due_at.map(timestamp_to_wire),
        failed_at: failed_at.map(timestamp_to_wire),
        tracking_id: fate.tracking_id.map(|id| id.to_string()).unwrap_or_default(),
    }
}
