//! What stops or slows an operation, as JSON.

use domain::{Refusal, ServiceName};
use proto::cqs::v1::{
    Act as WireAct, Approval as WireApproval, ApprovalState, BlockCause, Blocked as WireBlocked, ControlAction,
    OperationControls, OperationLimits, StopWhen as WireStopWhen,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{body, wire};

/// Who did something, when and why.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Act {
    /// When, RFC 3339.
    at: Option<String>,
    /// The operator; null when the platform did it by itself.
    operator: Option<String>,
    /// Why.
    reason: String,
}

impl Act {
    pub(super) fn of(wire: &WireAct) -> Self {
        Self {
            at: wire::time(wire.at.as_ref()),
            operator: Some(wire.operator_subject.clone()).filter(|subject| !subject.is_empty()),
            reason: wire.reason.clone(),
        }
    }
}

/// How fast an operation may go. They hold in each stage by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Limits {
    /// Labels a second that may be begun; 0 or left out: no limit.
    #[serde(default, deserialize_with = "body::whole")]
    #[schema(minimum = 0, maximum = 1_000_000)]
    pub(crate) throttle_per_s: i32,
    /// Labels that may be in workers' hands at once; 0 or left out: no limit.
    #[serde(default, deserialize_with = "body::whole")]
    #[schema(minimum = 0, maximum = 1_000_000)]
    pub(crate) max_in_flight: i32,
}

impl Limits {
    pub(super) fn to_wire(self) -> Result<OperationLimits, Refusal> {
        for (field, value) in
            [("limits.throttle_per_s", self.throttle_per_s), ("limits.max_in_flight", self.max_in_flight)]
        {
            if !(0..=1_000_000).contains(&value) {
                return Err(Refusal::field(field, "must be a whole number from 0 to 1,000,000"));
            }
        }
        Ok(OperationLimits { throttle_per_s: self.throttle_per_s, max_in_flight: self.max_in_flight })
    }
}

/// When an operation stops itself (`HELD`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct StopWhen {
    /// It stops when more than this share of the labels handled in a stage failed, in percent.
    #[serde(deserialize_with = "body::whole")]
    #[schema(minimum = 0, maximum = 99)]
    pub(crate) failure_ratio_percent: i32,
    /// Not before so many labels were handled or failed in the stage.
    #[serde(deserialize_with = "body::whole")]
    #[schema(minimum = 1, maximum = 1_000_000)]
    pub(crate) min_sample: i32,
}

impl StopWhen {
    pub(super) fn to_wire(self) -> Result<WireStopWhen, Refusal> {
        if !(0..=99).contains(&self.failure_ratio_percent) {
            return Err(Refusal::field("stop_when.failure_ratio_percent", "must be a whole number from 0 to 99"));
        }
        if !(1..=1_000_000).contains(&self.min_sample) {
            return Err(Refusal::field("stop_when.min_sample", "must be a whole number from 1 to 1,000,000"));
        }
        Ok(WireStopWhen { failure_ratio_percent: self.failure_ratio_percent, min_sample: self.min_sample })
    }

    pub(super) fn of(wire: WireStopWhen) -> Self {
        Self { failure_ratio_percent: wire.failure_ratio_percent, min_sample: wire.min_sample }
    }
}

/// Where an approval stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) enum ApprovalStateName {
    /// Nobody has decided yet.
    Awaiting,
    /// Another operator approved it, or someone broke the glass.
    Approved,
    /// An operator declined it; it is cancelled.
    Declined,
    /// Nobody decided in time; it is cancelled.
    Expired,
}

/// The approval an operation needs.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Approval {
    /// Where it stands.
    state: ApprovalStateName,
    /// Labels it was asked for; an approval names this number.
    labels: i64,
    /// When the operation is cancelled unless somebody approved, RFC 3339.
    expires_at: Option<String>,
    /// Who decided; null while nobody has.
    decided: Option<Act>,
}

impl Approval {
    fn of(wire: &WireApproval) -> Self {
        let state = match wire.state() {
            ApprovalState::Approved => ApprovalStateName::Approved,
            ApprovalState::Declined => ApprovalStateName::Declined,
            ApprovalState::Expired => ApprovalStateName::Expired,
            ApprovalState::Awaiting | ApprovalState::Unspecified => ApprovalStateName::Awaiting,
        };
        Self {
            state,
            labels: wire.label_count,
            expires_at: wire::time(wire.expires_at.as_ref()),
            decided: wire.decided.as_ref().map(Act::of),
        }
    }
}

/// What stops or slows an operation, and who did that.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct Controls {
    /// The pause that holds; null: not paused by a person.
    paused: Option<Act>,
    /// When that pause ends by itself, RFC 3339; null: only when someone resumes it.
    paused_until: Option<String>,
    /// When it stopped itself, and what was counted; null: it did not, or was resumed since.
    held: Option<Act>,
    /// Null: not cancelled. One that is declined or whose approval expires is cancelled, too.
    cancelled: Option<Act>,
    /// While it is being cancelled: when nothing more happens, RFC 3339.
    quiet_by: Option<String>,
    /// As they hold; null: none.
    limits: Option<Limits>,
    /// Who set them; null: the request did.
    limited: Option<Act>,
    /// When the limits of the request hold again, RFC 3339; null: never.
    limited_until: Option<String>,
    /// The approval it needs; null: none.
    approval: Option<Approval>,
}

impl Controls {
    pub(super) fn of(wire: &OperationControls) -> Self {
        let act = |wire: &Option<WireAct>| wire.as_ref().map(Act::of);
        let limits = wire
            .limits
            .map(|limits| Limits { throttle_per_s: limits.throttle_per_s, max_in_flight: limits.max_in_flight });
        Self {
            paused: act(&wire.paused),
            paused_until: wire::time(wire.paused_until.as_ref()),
            held: act(&wire.held),
            cancelled: act(&wire.cancelled),
            quiet_by: wire::time(wire.quiet_by.as_ref()),
            limits: limits.filter(|limits| limits.throttle_per_s > 0 || limits.max_in_flight > 0),
            limited: act(&wire.limited),
            limited_until: wire::time(wire.limited_until.as_ref()),
            approval: wire.approval.as_ref().map(Approval::of),
        }
    }
}

/// Why something of an operation waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) enum BlockedCause {
    /// A person paused it.
    Paused,
    /// It stopped itself.
    Held,
    /// The brake is on.
    Brake,
    /// Another operator must approve it.
    AwaitingApproval,
    /// Its throttle lets nothing more begin before `until`.
    Throttled,
    /// As many of its labels are in hand as its limit allows.
    InFlightLimit,
    /// Everything that waits there is deferred or backing off; the earliest is due at `until`.
    NotDue,
    /// No worker of the service asks for work.
    NoWorker,
    /// A cause this gateway does not know yet; `detail` says it.
    Other,
}

/// One cause for which something of an operation waits.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Blocked {
    /// What.
    cause: BlockedCause,
    /// At which service; null: everywhere.
    service: Option<String>,
    /// When it ends by itself, RFC 3339; null: it does not, or nobody knows.
    until: Option<String>,
    /// Who or what, in words.
    detail: String,
}

impl Blocked {
    pub(super) fn of(wire: &WireBlocked) -> Self {
        let cause = match wire.cause() {
            BlockCause::Paused => BlockedCause::Paused,
            BlockCause::Held => BlockedCause::Held,
            BlockCause::Brake => BlockedCause::Brake,
            BlockCause::AwaitingApproval => BlockedCause::AwaitingApproval,
            BlockCause::Throttled => BlockedCause::Throttled,
            BlockCause::InFlightLimit => BlockedCause::InFlightLimit,
            BlockCause::NotDue => BlockedCause::NotDue,
            BlockCause::NoWorker => BlockedCause::NoWorker,
            BlockCause::Unspecified => BlockedCause::Other,
        };
        Self {
            cause,
            service: wire.queue_name.parse::<ServiceName>().ok().map(|service| service.to_string()),
            until: wire::time(wire.until.as_ref()),
            detail: wire.detail.clone(),
        }
    }
}

/// What may be done with an operation now; the last segment of the path that does it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum AllowedAction {
    /// `POST …/pause`
    Pause,
    /// `POST …/resume`
    Resume,
    /// `POST …/cancel`
    Cancel,
    /// `PATCH …`
    SetLimits,
    /// `POST …/approve`
    Approve,
    /// `POST …/decline`
    Decline,
}

impl AllowedAction {
    pub(super) fn of(wire: ControlAction) -> Option<Self> {
        match wire {
            ControlAction::Pause => Some(Self::Pause),
            ControlAction::Resume => Some(Self::Resume),
            ControlAction::Cancel => Some(Self::Cancel),
            ControlAction::SetLimits => Some(Self::SetLimits),
            ControlAction::Approve => Some(Self::Approve),
            ControlAction::Decline => Some(Self::Decline),
            ControlAction::Unspecified => None,
        }
    }
}
