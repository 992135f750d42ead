//! `SelfEnqueue`: its gates in order, and an audit row for every refusal of an authenticated caller.

use daemon::identity::{Caller, caller};
use domain::{OperatorSubject, Reason, Refusal, SplitItem, TrackingId, Urn, limits};
use prost::Message as _;
use proto::{cqs::v1 as wire, parse_field, split_item_from_wire, timestamp_from_wire, timestamp_to_wire};
use sha2::{Digest as _, Sha256};
use tonic::Request;

use super::{
    CqsServer,
    control::{limits_from_wire, stop_when_from_wire},
    count_in, plain_text, refusal_detail,
};
use crate::{
    StoreError,
    model::{AuditOutcome, AuditRow, Terms},
    store::{ApprovalAsk, InjectAsk, Injected},
};

/// Longest name of a trigger, in bytes.
const TRIGGER_MAX_BYTES: usize = 64;
/// Longest plan id, in bytes.
const PLAN_ID_MAX_BYTES: usize = 128;
/// The action's name in the audit log.
const ACTION: &str = crate::steps::self_enqueue::ACTION;

impl CqsServer {
    pub(super) async fn self_enqueue(
        &self,
        request: Request<wire::SelfEnqueueRequest>,
    ) -> Result<wire::SelfEnqueueResponse, StoreError> {
        let caller = caller(&request)?;
        let request = request.into_inner();
        let digest = domain::hex(Sha256::digest(request.encode_to_vec()));
        match self.accept(&caller, &request, &digest).await {
            Ok(done) => Ok(wire::SelfEnqueueResponse {
                items_enqueued: i32::try_from(done.items_enqueued).unwrap_or(i32::MAX),
                replayed: done.replayed,
                accepted_at: Some(timestamp_to_wire(done.accepted_at)),
                sla_timestamp: Some(timestamp_to_wire(done.sla)),
            }),
            Err(StoreError::Refused(refusal)) => {
                // In a unit of work of its own: the refused one left nothing behind.
                let row = self.refused(&caller, &request, (&refusal, digest));
                self.store.append_audit(vec![row]).await?;
                Err(refusal.into())
            }
            Err(fault) => Err(fault),
        }
    }

    async fn accept(
        &self,
        caller: &Caller,
        request: &wire::SelfEnqueueRequest,
        digest: &str,
    ) -> Result<Injected, StoreError> {
        caller.require_rpc("cqs.v1.ChangeQueueService/SelfEnqueue")?;
        let ask = parse(caller, request, digest)?;
        let (queue, tracking_id, reason) = (ask.queue.clone(), ask.tracking_id.clone(), ask.reason.clone());
        let operator = ask.operator_subject.clone();
        let done = self.store.self_enqueue(ask, self.parts.clock.now()).await?;
        self.parts.wakeups.wake(&done.woken);
        tracing::info!(
            %tracking_id,
            tenant = %done.tenant,
            %reason,
            %queue,
            operator = operator.as_ref().map_or("", |subject| subject.as_str()),
            trigger = request.trigger,
            items_enqueued = done.items_enqueued,
            replayed = done.replayed,
            check_only = request.check_only,
            "SelfEnqueue accepted"
        );
        Ok(done)
    }

    /// The audit row of a refused request. Texts that could not be parsed are left out: the log shows nothing that a
    /// caller smuggled in.
    fn refused(
        &self,
        caller: &Caller,
        request: &wire::SelfEnqueueRequest,
        (refusal, request_digest): (&Refusal, String),
    ) -> AuditRow {
        let subject = request.operator_subject.parse::<OperatorSubject>();
        AuditRow {
            id: 0,
            at: self.parts.clock.now(),
            service: caller.service(),
            operator_subject: subject.map(|subject| subject.to_string()).unwrap_or_default(),
            tenant: named_urn(request).map(|urn| urn.tenant().clone()),
            action: ACTION.to_owned(),
            tracking_id: request.tracking_id.parse::<TrackingId>().map(|id| id.to_string()).unwrap_or_default(),
            reason: request.reason.parse::<Reason>().map(|reason| reason.to_string()).unwrap_or_default(),
            request_digest,
            outcome: AuditOutcome::Refused,
            error_code: refusal.code.as_str().to_owned(),
            detail: refusal_detail(refusal),
        }
    }
}

/// The first URN that the request names, for the tenant of its audit row.
fn named_urn(request: &wire::SelfEnqueueRequest) -> Option<Urn> {
    let first = request.items.first().and_then(|item| item.urn.as_ref()).and_then(|urn| match urn {
        wire::split_item::Urn::DtoId(text) | wire::split_item::Urn::ParentId(text) => text.parse().ok(),
    });
    first.or_else(|| request.scope.parse().ok())
}

/// The gates that need no store, in order: reason, tracking id, count, queue, items, the rest.
fn parse(caller: &Caller, request: &wire::SelfEnqueueRequest, digest: &str) -> Result<InjectAsk, Refusal> {
    let reason = parse_field("reason", &request.reason)?;
    let tracking_id = parse_field("tracking_id", &request.tracking_id)?;
    count_in("items", request.items.len(), 1..=limits::SELF_ENQUEUE_ITEMS_MAX)?;
    let queue = parse_field("queue_name", &request.queue_name)?;
    caller.require_queue(&queue)?;
    let items = request
        .items
        .iter()
        .enumerate()
        .map(|(index, item)| split_item_from_wire(&format!("items[{index}]"), item))
        .collect::<Result<Vec<SplitItem>, _>>()?;
    let sla = request.sla_timestamp.as_ref().map(|sla| timestamp_from_wire("sla_timestamp", sla)).transpose()?;
    plain_text("trigger", &request.trigger, TRIGGER_MAX_BYTES)?;
    let none_if_empty = |text: &str| !text.is_empty();
    let operator_subject = Some(request.operator_subject.as_str())
        .filter(|text| none_if_empty(text))
        .map(|text| parse_field("operator_subject", text))
        .transpose()?;
    let scope = Some(request.scope.as_str())
        .filter(|text| none_if_empty(text))
        .map(|text| parse_field("scope", text))
        .transpose()?;
    plain_text("plan_id", &request.plan_id, PLAN_ID_MAX_BYTES)?;
    let terms = Terms {
        limits: limits_from_wire(request.limits.as_ref())?,
        stop_when: stop_when_from_wire(request.stop_when.as_ref())?,
        plan_id: request.plan_id.clone(),
    };
    let approval = request.approval.as_ref().map(approval_from_wire).transpose()?;
    Ok(InjectAsk {
        service: caller.service(),
        queue,
        items,
        reason,
        tracking_id,
        sla,
        sla_is_default: request.sla_is_default,
        operator_subject,
        trigger: request.trigger.clone(),
        scope,
        terms,
        approval,
        request_digest: digest.to_owned(),
        check_only: request.check_only,
    })
}

fn approval_from_wire(approval: &wire::ApprovalRequired) -> Result<ApprovalAsk, Refusal> {
    if approval.label_count < 0 {
        return Err(Refusal::field("approval.label_count", "must not be negative"));
    }
    let expires_at =
        approval.expires_at.as_ref().ok_or_else(|| Refusal::field("approval.expires_at", "is required"))?;
    Ok(ApprovalAsk {
        label_count: approval.label_count,
        expires_at: timestamp_from_wire("approval.expires_at", expires_at)?,
    })
}
