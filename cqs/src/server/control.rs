//! Control actions and the brake: who may, what exactly is asked, and an audit row for every refusal of a known caller.

use daemon::identity::{Caller, caller};
use domain::{OperatorSubject, Reason, Refusal, TenantId, TrackingId};
use prost::Message as _;
use proto::{
    cqs::v1::{self as wire, control_operation_request::Action as WireAction},
    parse_field, timestamp_from_wire, timestamp_to_wire,
};
use sha2::{Digest as _, Sha256};
use tonic::Request;

use super::{CqsServer, allowed, operation::operation_to_wire, refusal_detail};
use crate::{
    StoreError,
    model::{Act, Action, ActionKind, AuditOutcome, AuditRow, ControlAsk, LimitChange, Limits, Receipt, StopWhen},
    steps::brake::brake_action,
    store::{BrakeAsk, Controlled},
};

/// The largest rate, in-flight limit and sample: beyond any platform, so that sums stay far from overflow.
const LIMIT_MAX: i32 = 1_000_000;
/// The action's name in the audit log of a request that names none.
const NO_ACTION: &str = "control";

impl CqsServer {
    pub(super) async fn control_operation(
        &self,
        request: Request<wire::ControlOperationRequest>,
    ) -> Result<wire::ControlOperationResponse, StoreError> {
        let caller = caller(&request)?;
        let request = request.into_inner();
        let request_digest = domain::hex(Sha256::digest(request.encode_to_vec()));
        match self.control(&caller, &request, &request_digest).await {
            Ok(done) => {
                self.parts.wakeups.wake(&done.woken);
                Ok(wire::ControlOperationResponse {
                    operation: Some(operation_to_wire(done.report)),
                    receipt: done.receipt.map(receipt_to_wire),
                })
            }
            Err(StoreError::Refused(refusal)) => {
                let action = request.action.as_ref().map_or(NO_ACTION, |action| kind_of(action).as_str());
                let row = AuditRow {
                    operator_subject: valid::<OperatorSubject>(&request.operator_subject),
                    tenant: request.tenant_id.parse::<TenantId>().ok(),
                    action: action.to_owned(),
                    tracking_id: valid::<TrackingId>(&request.tracking_id),
                    reason: valid::<Reason>(&request.reason),
                    request_digest,
                    ..self.refused_row(&caller, &refusal)
                };
                // In a unit of work of its own: the refused one left nothing behind.
                self.store.append_audit(vec![row]).await?;
                Err(refusal.into())
            }
            Err(fault) => Err(fault),
        }
    }

    async fn control(
        &self,
        caller: &Caller,
        request: &wire::ControlOperationRequest,
        digest: &str,
    ) -> Result<Controlled, StoreError> {
        caller.require_rpc("cqs.v1.ChangeQueueService/ControlOperation")?;
        let action = request.action.as_ref().ok_or_else(|| Refusal::field("action", "is required"))?;
        let ask = ControlAsk {
            service: caller.service(),
            tenant: parse_field("tenant_id", &request.tenant_id)?,
            tracking_id: parse_field("tracking_id", &request.tracking_id)?,
            by: parse_field("operator_subject", &request.operator_subject)?,
            reason: parse_field("reason", &request.reason)?,
            action: action_from_wire(action)?,
            request_digest: digest.to_owned(),
        };
        self.store.control(ask, self.parts.clock.now()).await
    }

    pub(super) async fn set_brake(&self, request: Request<wire::SetBrakeRequest>) -> Result<wire::Brake, StoreError> {
        let caller = caller(&request)?;
        let request = request.into_inner();
        let request_digest = domain::hex(Sha256::digest(request.encode_to_vec()));
        match self.brake(&caller, &request, &request_digest).await {
            Err(StoreError::Refused(refusal)) => {
                let row = AuditRow {
                    operator_subject: valid::<OperatorSubject>(&request.operator_subject),
                    action: brake_action(request.on).to_owned(),
                    reason: valid::<Reason>(&request.reason),
                    request_digest,
                    ..self.refused_row(&caller, &refusal)
                };
                self.store.append_audit(vec![row]).await?;
                Err(refusal.into())
            }
            done => done,
        }
    }

    async fn brake(
        &self,
        caller: &Caller,
        request: &wire::SetBrakeRequest,
        digest: &str,
    ) -> Result<wire::Brake, StoreError> {
        caller.require_rpc("cqs.v1.ChangeQueueService/SetBrake")?;
        let ask = BrakeAsk {
            on: request.on,
            service: caller.service(),
            by: parse_field("operator_subject", &request.operator_subject)?,
            reason: parse_field("reason", &request.reason)?,
            request_digest: digest.to_owned(),
        };
        let (on, woken) = self.store.set_brake(ask, self.parts.clock.now()).await?;
        self.parts.wakeups.wake(&woken);
        Ok(wire::Brake { on: on.as_ref().map(act_to_wire) })
    }

    /// The audit row of a refused call, without what it said.
    fn refused_row(&self, caller: &Caller, refusal: &Refusal) -> AuditRow {
        AuditRow {
            id: 0,
            at: self.parts.clock.now(),
            service: caller.service(),
            operator_subject: String::new(),
            tenant: None,
            action: String::new(),
            tracking_id: String::new(),
            reason: String::new(),
            request_digest: String::new(),
            outcome: AuditOutcome::Refused,
            error_code: refusal.code.as_str().to_owned(),
            detail: refusal_detail(refusal),
        }
    }

    pub(super) async fn get_brake(&self, request: Request<wire::GetBrakeRequest>) -> Result<wire::Brake, StoreError> {
        allowed(&request, "GetBrake")?;
        Ok(wire::Brake { on: self.store.brake().await?.as_ref().map(act_to_wire) })
    }
}

fn valid<T: std::str::FromStr + std::fmt::Display>(text: &str) -> String {
    text.parse::<T>().map(|parsed| parsed.to_string()).unwrap_or_default()
}

fn kind_of(action: &WireAction) -> ActionKind {
    match action {
        WireAction::Pause(_) => ActionKind::Pause,
        WireAction::Resume(_) => ActionKind::Resume,
        WireAction::Cancel(_) => ActionKind::Cancel,
        WireAction::SetLimits(_) => ActionKind::SetLimits,
        WireAction::Approve(_) => ActionKind::Approve,
        WireAction::Decline(_) => ActionKind::Decline,
    }
}

fn action_from_wire(action: &WireAction) -> Result<Action, Refusal> {
    Ok(match action {
        WireAction::Pause(pause) => {
            let until = pause.until.as_ref().map(|until| timestamp_from_wire("pause.until", until));
            Action::Pause { until: until.transpose()? }
        }
        WireAction::Resume(_) => Action::Resume,
        WireAction::Cancel(_) => Action::Cancel,
        WireAction::SetLimits(limits) => {
            let until = limits.until.as_ref().map(|until| timestamp_from_wire("set_limits.until", until));
            Action::SetLimits {
                throttle_per_s: limit_change("set_limits.throttle_per_s", limits.throttle_per_s)?,
                max_in_flight: limit_change("set_limits.max_in_flight", limits.max_in_flight)?,
                until: until.transpose()?,
            }
        }
        WireAction::Approve(approve) => Action::Approve { break_glass: approve.break_glass },
        WireAction::Decline(_) => Action::Decline,
    })
}

fn limit_change(field: &str, limit: Option<i32>) -> Result<LimitChange, Refusal> {
    Ok(match limit {
        None => LimitChange::Keep,
        Some(limit) => match limit_from_wire(field, limit)? {
            None => LimitChange::Lift,
            Some(limit) => LimitChange::To(limit),
        },
    })
}

/// 0: none.
fn limit_from_wire(field: &str, limit: i32) -> Result<Option<i64>, Refusal> {
    let limit = super::in_range(field, limit, 0..=LIMIT_MAX)?;
    Ok((limit > 0).then(|| i64::from(limit)))
}

/// Limits of a request; absent: none.
pub(super) fn limits_from_wire(limits: Option<&wire::OperationLimits>) -> Result<Limits, Refusal> {
    let Some(limits) = limits else { return Ok(Limits::default()) };
    Ok(Limits {
        throttle_per_s: limit_from_wire("limits.throttle_per_s", limits.throttle_per_s)?,
        max_in_flight: limit_from_wire("limits.max_in_flight", limits.max_in_flight)?,
    })
}

/// The failure budget of a request.
pub(super) fn stop_when_from_wire(stop_when: Option<&wire::StopWhen>) -> Result<Option<StopWhen>, Refusal> {
    let Some(stop_when) = stop_when else { return Ok(None) };
    let percent = super::in_range("stop_when.failure_ratio_percent", stop_when.failure_ratio_percent, 0..=99)?;
    let sample = super::in_range("stop_when.min_sample", stop_when.min_sample, 1..=LIMIT_MAX)?;
    Ok(Some(StopWhen { failure_ratio_percent: i64::from(percent), min_sample: i64::from(sample) }))
}

pub(super) fn limits_to_wire(limits: Limits) -> wire::OperationLimits {
    let number = |limit: Option<i64>| limit.and_then(|limit| i32::try_from(limit).ok()).unwrap_or_default();
    wire::OperationLimits { throttle_per_s: number(limits.throttle_per_s), max_in_flight: number(limits.max_in_flight) }
}

pub(super) fn act_to_wire(act: &Act) -> wire::Act {
    wire::Act {
        at: Some(timestamp_to_wire(act.at)),
        operator_subject: act.by.as_ref().map(ToString::to_string).unwrap_or_default(),
        reason: act.reason.clone(),
    }
}

fn receipt_to_wire(receipt: Receipt) -> wire::CancelReceipt {
    wire::CancelReceipt {
        not_started: receipt.not_started,
        in_flight: receipt.in_flight,
        already_effective: receipt.already_effective,
        unexpanded_parents: receipt.unexpanded_parents,
        handed_over: receipt.handed_over,
        quiet_by: receipt.quiet_by.map(timestamp_to_wire),
    }
}
