//! Controls of an operation: what stops or slows it, who did that, and when it ends by itself.

use domain::{OperatorSubject, Reason, TenantId, Timestamp};

/// Someone did something. Nobody: the system did it by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Act {
    /// When.
    pub at: Timestamp,
    /// Who; none: the system.
    pub by: Option<OperatorSubject>,
    /// Why.
    pub reason: String,
}

/// A person's pause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pause {
    /// Who, when and why.
    pub act: Act,
    /// When it ends by itself; none: never.
    pub until: Option<Timestamp>,
}

/// The system's own stop: the failure ratio is over its budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    /// When.
    pub at: Timestamp,
    /// What was counted.
    pub cause: String,
}

/// How fast and how much at once, in each queue of its flow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// Labels leased per second at most; none: no limit.
    pub throttle_per_s: Option<i64>,
    /// Labels leased at the same time at most; none: no limit.
    pub max_in_flight: Option<i64>,
}

/// Limits that a person set on the running operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limited {
    /// Who, when and why.
    pub act: Act,
    /// When those of the request hold again; none: never.
    pub until: Option<Timestamp>,
}

/// When an operation stops itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StopWhen {
    /// Failed labels, in percent of the handled and failed ones of a queue, above which it stops; 0 to 99.
    pub failure_ratio_percent: i64,
    /// Not before so many were handled or failed there; at least 1.
    pub min_sample: i64,
}

/// Counts of a queue from which the failure budget is measured: those at the last resume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StopFrom {
    /// Key of the queue.
    pub queue: i64,
    /// Labels handled by then.
    pub done: i64,
    /// Labels failed by then.
    pub failed: i64,
}

/// Where the approval stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalState {
    /// Nothing is leased until somebody else approves.
    Awaiting,
    /// Somebody else approved.
    Approved,
    /// Somebody declined; the operation is cancelled.
    Declined,
    /// Nobody decided in time; the operation is cancelled.
    Expired,
}

impl ApprovalState {
    /// The text in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Awaiting => "awaiting",
            Self::Approved => "approved",
            Self::Declined => "declined",
            Self::Expired => "expired",
        }
    }
}

/// An approval by a second person, as the request needed one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    /// Where it stands.
    pub state: ApprovalState,
    /// Labels the request was counted for.
    pub label_count: i64,
    /// When an undecided one expires.
    pub expires_at: Timestamp,
    /// Who decided.
    pub decided: Option<Act>,
}

/// What the request asked for; part of its identity.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Terms {
    /// Limits from the start.
    pub limits: Limits,
    /// When it stops itself.
    pub stop_when: Option<StopWhen>,
    /// The plan it carries out; empty: none.
    pub plan_id: String,
}

/// The controls of one operation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Control {
    /// Grows with every change of this.
    pub revision: i64,
    /// What the request asked for.
    pub terms: Terms,
    /// A person's pause.
    pub paused: Option<Pause>,
    /// The system's own stop.
    pub held: Option<Hold>,
    /// From where the failure budget is measured.
    pub stop_from: Vec<StopFrom>,
    /// Cancelled for good.
    pub cancelled: Option<Act>,
    /// Limits as they hold.
    pub limits: Limits,
    /// Who set them; none: the request.
    pub limited: Option<Limited>,
    /// The approval it needed; none: none.
    pub approval: Option<Approval>,
}

/// What the choice of a lane and the arrival of rows need of the controls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Gate {
    /// Nothing of the lane is leased.
    pub closed: bool,
    /// Nothing more comes to wait in it: what arrives is cancelled.
    pub cancelled: bool,
    /// Limits in each queue.
    pub limits: Limits,
    /// Whether failures are measured against a budget.
    pub stops: bool,
}

impl Control {
    /// Whether it waits for a second person.
    pub fn awaits_approval(&self) -> bool {
        self.approval.as_ref().is_some_and(|approval| approval.state == ApprovalState::Awaiting)
    }

    /// What follows for the lane.
    pub fn gate(&self) -> Gate {
        let stopped = self.paused.is_some() || self.held.is_some() || self.awaits_approval();
        Gate {
            closed: stopped || self.cancelled.is_some(),
            cancelled: self.cancelled.is_some(),
            limits: self.limits,
            stops: self.terms.stop_when.is_some(),
        }
    }

    /// When the first of it ends by itself.
    pub fn ends_at(&self) -> Option<Timestamp> {
        if self.cancelled.is_some() {
            return None;
        }
        let approval = self.approval.as_ref().filter(|_| self.awaits_approval()).map(|approval| approval.expires_at);
        let pause = self.paused.as_ref().and_then(|pause| pause.until);
        let limits = self.limited.as_ref().and_then(|limited| limited.until);
        [approval, pause, limits].into_iter().flatten().min()
    }
}

/// What becomes of one limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitChange {
    /// It stays as it is.
    Keep,
    /// There is none any more.
    Lift,
    /// It is this, at least 1.
    To(i64),
}

impl LimitChange {
    /// What it makes of a limit.
    pub fn of(self, limit: Option<i64>) -> Option<i64> {
        match self {
            Self::Keep => limit,
            Self::Lift => None,
            Self::To(limit) => Some(limit),
        }
    }
}

/// What a person may do to an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Lease nothing of it, until then or until a person resumes it.
    Pause {
        /// When it resumes by itself.
        until: Option<Timestamp>,
    },
    /// Go on after a pause or a hold.
    Resume,
    /// End it.
    Cancel,
    /// Other limits from now on, until then or for good.
    SetLimits {
        /// Of labels leased per second.
        throttle_per_s: LimitChange,
        /// Of labels leased at the same time.
        max_in_flight: LimitChange,
        /// When those of the request hold again.
        until: Option<Timestamp>,
    },
    /// Let a large one start.
    Approve {
        /// Without a second person.
        break_glass: bool,
    },
    /// Do not let it start; it is cancelled.
    Decline,
}

impl Action {
    /// Its kind.
    pub const fn kind(&self) -> ActionKind {
        match self {
            Self::Pause { .. } => ActionKind::Pause,
            Self::Resume => ActionKind::Resume,
            Self::Cancel => ActionKind::Cancel,
            Self::SetLimits { .. } => ActionKind::SetLimits,
            Self::Approve { .. } => ActionKind::Approve,
            Self::Decline => ActionKind::Decline,
        }
    }

    /// Its name in the audit log.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Approve { break_glass: true } => "break glass",
            other => other.kind().as_str(),
        }
    }
}

/// Kinds of actions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ActionKind {
    /// [`Action::Pause`]
    Pause,
    /// [`Action::Resume`]
    Resume,
    /// [`Action::Cancel`]
    Cancel,
    /// [`Action::SetLimits`]
    SetLimits,
    /// [`Action::Approve`]
    Approve,
    /// [`Action::Decline`]
    Decline,
}

impl ActionKind {
    /// Every kind.
    pub const ALL: [Self; 6] = [Self::Pause, Self::Resume, Self::Cancel, Self::SetLimits, Self::Approve, Self::Decline];

    /// Its name in the audit log.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Cancel => "cancel",
            Self::SetLimits => "set limits",
            Self::Approve => "approve",
            Self::Decline => "decline",
        }
    }
}

/// Where an operation stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// A second person must approve it.
    AwaitingApproval,
    /// Something of it waits or is leased.
    Running,
    /// A person paused it.
    Paused,
    /// It stopped itself.
    Held,
    /// Cancelled, and some of it is leased.
    Cancelling,
    /// Cancelled, and nothing of it is leased.
    Cancelled,
    /// Nothing is left and nothing failed.
    Succeeded,
    /// Nothing is left and something failed.
    FinishedWithFailures,
}

impl State {
    /// As in messages to people.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AwaitingApproval => "AWAITING_APPROVAL",
            Self::Running => "RUNNING",
            Self::Paused => "PAUSED",
            Self::Held => "HELD",
            Self::Cancelling => "CANCELLING",
            Self::Cancelled => "CANCELLED",
            Self::Succeeded => "SUCCEEDED",
            Self::FinishedWithFailures => "FINISHED_WITH_FAILURES",
        }
    }
}

/// Why something of an operation waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum BlockCause {
    /// A second person must approve it.
    AwaitingApproval,
    /// The brake is on.
    Brake,
    /// A person paused it.
    Paused,
    /// It stopped itself.
    Held,
    /// Its throttle lets nothing be leased until then.
    Throttled,
    /// As many labels are leased as may be.
    InFlightLimit,
    /// No worker of the queue asked for work lately.
    NoWorker,
    /// What waits is deferred or backing off.
    NotDue,
}

/// One cause for which something of an operation waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocked {
    /// What.
    pub cause: BlockCause,
    /// In which queue; none: in all.
    pub queue: Option<domain::QueueName>,
    /// When it ends by itself, as far as is known.
    pub until: Option<Timestamp>,
    /// Who or what, in words.
    pub detail: String,
}

/// How a cancelled operation stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Receipt {
    /// Labels cancelled while they waited, but for those handed over.
    pub not_started: i64,
    /// Labels cancelled while they waited for the confirmation of what had been handed over.
    pub handed_over: i64,
    /// Labels leased, which finish.
    pub in_flight: i64,
    /// Labels whose last stage was done before, with a change.
    pub already_effective: i64,
    /// Parents that were not split to the end.
    pub unexpanded_parents: i64,
    /// When nothing more happens, by the leases of this moment.
    pub quiet_by: Option<Timestamp>,
}

/// A lane in a queue, as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaceReport {
    /// Key of the queue.
    pub queue: i64,
    /// Rows ready.
    pub ready: i64,
    /// Rows deferred or backing off.
    pub delayed: i64,
    /// Labels leased.
    pub leased_labels: i64,
    /// A throttle lets nothing be leased until then.
    pub closed_until: Option<Timestamp>,
    /// Since when something has waited there without a break.
    pub waiting_since: Option<Timestamp>,
    /// When the earliest of the delayed rows comes due.
    pub next_due: Option<Timestamp>,
    /// Latest end of a lease of the lane there.
    pub leased_until: Option<Timestamp>,
}

impl PlaceReport {
    /// How far a twin needs to count rows that wait: more says nothing more to people.
    pub const COUNTED_MAX: i64 = 10_000;
}

/// How far an operation was in a queue at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// The operation's lane.
    pub lane: i64,
    /// Key of the queue.
    pub queue: i64,
    /// When.
    pub at: Timestamp,
    /// Labels handled or failed by then.
    pub gone: i64,
}

/// A control action on an operation.
#[derive(Debug, Clone)]
pub struct ControlAsk {
    /// The service that asks.
    pub service: domain::ServiceName,
    /// Its tenant.
    pub tenant: TenantId,
    /// Its name.
    pub tracking_id: domain::TrackingId,
    /// Who.
    pub by: OperatorSubject,
    /// Why.
    pub reason: Reason,
    /// What.
    pub action: Action,
    /// SHA-256 of the request, for the audit log.
    pub request_digest: String,
}
