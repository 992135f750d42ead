//! A trigger's request: what all of them carry, and what each says of its own.

use domain::{
    AliasName, DtoType, OperatorSubject, ParentShape, Reason, Refusal, SplitItem, Target, TenantId, Timestamp,
    TrackingId, Trigger, Urn,
};
use proto::{
    cqs::v1::{ApprovalRequired, AuditEntry, Operation, OperationLimits, SelfEnqueueRequest, StopWhen},
    parse_field, split_item_to_wire, timestamp_from_wire, timestamp_to_wire,
};

use super::audit::request_digest;

/// Stores of one page of a dry run's breakdown where the request names no size; what a person reads at once.
const BREAKDOWN_DEFAULT: i32 = 200;
/// Most stores of one page: what one look-up answers.
pub(super) const BREAKDOWN_MAX: i32 = 4_096;

/// The request of one trigger.
pub(super) trait TriggerRequest: prost::Message + Default {
    /// Its answer.
    type Response;
    /// The trigger.
    const TRIGGER: Trigger;
    /// The RPC, as the registry names it.
    const RPC: &'static str;
    /// The fields that every trigger has, as they came.
    fn common(&self) -> Common<'_>;
    /// What it is about.
    fn aim(&self, tenant: &TenantId) -> Result<Aim, Refusal>;
    /// The answer in its own message.
    fn response(answer: Answer) -> Self::Response;
}

/// The fields that every trigger has, as they came.
pub(super) struct Common<'a> {
    pub(super) tenant_id: &'a str,
    pub(super) reason: &'a str,
    pub(super) tracking_id: &'a str,
    pub(super) operator_subject: &'a str,
    pub(super) dry_run: bool,
    pub(super) sla_timestamp: Option<prost_types::Timestamp>,
    pub(super) sla_is_default: bool,
    pub(super) terms: Terms<'a>,
    /// Of the breakdown by store: size and token; 0 and empty for triggers of one store.
    pub(super) page: (i32, &'a str),
}

/// What CQS is told of how the operation shall run; passed on as it came, CQS checks it.
#[derive(Clone, Copy)]
pub(super) struct Terms<'a> {
    pub(super) limits: Option<&'a OperationLimits>,
    pub(super) stop_when: Option<&'a StopWhen>,
    pub(super) approval: Option<&'a ApprovalRequired>,
    pub(super) plan_id: &'a str,
}

/// The [`Common`] fields of a request, which have the same names in every message.
macro_rules! common {
    ($request:expr) => {
        common!($request, (0, ""))
    };
    ($request:expr, $page:expr) => {
        $crate::triggers::ask::Common {
            tenant_id: &$request.tenant_id,
            reason: &$request.reason,
            tracking_id: &$request.tracking_id,
            operator_subject: &$request.operator_subject,
            dry_run: $request.dry_run,
            sla_timestamp: $request.sla_timestamp,
            sla_is_default: $request.sla_is_default,
            terms: $crate::triggers::ask::Terms {
                limits: $request.limits.as_ref(),
                stop_when: $request.stop_when.as_ref(),
                approval: $request.approval.as_ref(),
                plan_id: &$request.plan_id,
            },
            page: $page,
        }
    };
}

/// An [`Answer`] in a trigger's own message: the fields that all have, and those given.
macro_rules! answer_to_wire {
    ($message:ident, $answer:expr, { $($field:ident: $value:expr),* $(,)? }) => {
        $message {
            items_enqueued: $answer.items_enqueued,
            labels: $answer.labels,
            sample_label_ids: $answer.sample_label_ids,
            replayed: $answer.replayed,
            sla_timestamp: $answer.sla_timestamp,
            accepted_at: $answer.accepted_at,
            $($field: $value),*
        }
    };
}
pub(super) use {answer_to_wire, common};

/// What a trigger is about.
#[derive(Debug)]
pub(super) struct Aim {
    /// What the operation's scope names, and the parent that is injected.
    pub(super) scope: Urn,
    /// The shape of that parent.
    pub(super) shape: ParentShape,
    /// The alias by which its links are counted under it.
    pub(super) links: AliasName,
    /// What must exist.
    pub(super) exists: Exists,
    /// The request's field that names it.
    pub(super) field: &'static str,
}

impl Aim {
    /// Everything of that type in a store.
    pub(super) fn whole_store(tenant: &TenantId, store_id: &str, dto_type: DtoType) -> Result<Self, Refusal> {
        Ok(Self {
            scope: Urn::Store(tenant.clone(), parse_field("store_id", store_id)?),
            shape: ParentShape { dto_type, alias: Some(AliasName::ByStore) },
            links: AliasName::ByStore,
            exists: Exists::AnyLabel,
            field: "store_id",
        })
    }
}

/// What must exist for a trigger to be accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exists {
    /// The record that the scope names.
    Record(DtoType),
    /// A label in the store that the scope names: nothing else says that there is such a store.
    AnyLabel,
}

/// A valid request.
#[derive(Debug)]
pub(super) struct Ask {
    pub(super) trigger: Trigger,
    pub(super) tenant: TenantId,
    pub(super) aim: Aim,
    pub(super) reason: Reason,
    pub(super) tracking_id: TrackingId,
    pub(super) operator: OperatorSubject,
    pub(super) dry_run: bool,
    /// None: now, as CQS defaults.
    sla: Option<Timestamp>,
    sla_is_default: bool,
    limits: Option<OperationLimits>,
    stop_when: Option<StopWhen>,
    approval: Option<ApprovalRequired>,
    plan_id: String,
    /// The page of the breakdown by store that a dry run answers.
    pub(super) page: Page,
}

/// A page of stores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Page {
    /// Most stores of it.
    pub(super) size: i32,
    /// From the answer before.
    pub(super) token: String,
}

/// What the trigger found and did.
#[derive(Debug, Default)]
pub(super) struct Answer {
    pub(super) items_enqueued: i32,
    /// Labels concerned now, exact.
    pub(super) labels: i64,
    pub(super) sample_label_ids: Vec<String>,
    pub(super) replayed: bool,
    pub(super) sla_timestamp: Option<prost_types::Timestamp>,
    pub(super) accepted_at: Option<prost_types::Timestamp>,
    /// Labels by store, one page, and the token of the next.
    pub(super) stores: Vec<(String, i64)>,
    pub(super) next_page_token: String,
    /// Stores with such labels, exact; 0 where that was not counted.
    pub(super) store_count: i64,
}

impl Ask {
    pub(super) fn parse<R: TriggerRequest>(request: &R) -> Result<Self, Refusal> {
        let common = request.common();
        let tenant = parse_field("tenant_id", common.tenant_id)?;
        let aim = request.aim(&tenant)?;
        Ok(Self {
            trigger: R::TRIGGER,
            tenant,
            aim,
            reason: parse_field("reason", common.reason)?,
            tracking_id: parse_field("tracking_id", common.tracking_id)?,
            operator: parse_field("operator_subject", common.operator_subject)?,
            dry_run: common.dry_run,
            sla: common.sla_timestamp.map(|sla| timestamp_from_wire("sla_timestamp", &sla)).transpose()?,
            sla_is_default: common.sla_is_default,
            limits: common.terms.limits.copied(),
            stop_when: common.terms.stop_when.copied(),
            approval: common.terms.approval.copied(),
            plan_id: common.terms.plan_id.to_owned(),
            page: Page::parse(&common)?,
        })
    }

    /// Which field differs from an operation that has the tracking id already; none when it is the same request.
    pub(super) fn difference(&self, accepted: &Operation) -> Option<&'static str> {
        let same_start = self.trigger.service().as_str() == accepted.queue_name;
        if !same_start || accepted.trigger != self.trigger.as_str() {
            return Some("tracking_id");
        }
        if accepted.scope != self.aim.scope.to_string() {
            let other = accepted.scope.parse::<Urn>().ok();
            let other_store = other.as_ref().is_some_and(|urn| urn.store() != self.aim.scope.store());
            return Some(if other_store { "store_id" } else { self.aim.field });
        }
        (accepted.reason != self.reason.as_str()).then_some("reason")
    }

    /// What is injected; by a dry run, only asked whether it would be.
    pub(super) fn injection(&self) -> SelfEnqueueRequest {
        let Aim { scope, shape, .. } = &self.aim;
        let parent = SplitItem { dto_type: shape.dto_type, target: Target::Parent(scope.clone()), alias: shape.alias };
        SelfEnqueueRequest {
            queue_name: self.trigger.service().as_str().to_owned(),
            items: vec![split_item_to_wire(&parent)],
            reason: self.reason.as_str().to_owned(),
            tracking_id: self.tracking_id.to_string(),
            sla_timestamp: self.sla.map(timestamp_to_wire),
            operator_subject: self.operator.to_string(),
            trigger: self.trigger.to_string(),
            scope: scope.to_string(),
            sla_is_default: self.sla_is_default,
            limits: self.limits,
            stop_when: self.stop_when,
            approval: self.approval,
            plan_id: self.plan_id.clone(),
            check_only: self.dry_run,
        }
    }
}

impl Page {
    fn parse(common: &Common<'_>) -> Result<Self, Refusal> {
        let (size, token) = common.page;
        if !common.dry_run && (size != 0 || !token.is_empty()) {
            let field = if token.is_empty() { "page_size" } else { "page_token" };
            return Err(Refusal::field(field, "belongs to a dry run: nothing else answers pages"));
        }
        let size = match size {
            0 => BREAKDOWN_DEFAULT,
            1..=BREAKDOWN_MAX => size,
            _ => return Err(Refusal::field("page_size", format!("must be 0 to {BREAKDOWN_MAX}"))),
        };
        Ok(Self { size, token: token.to_owned() })
    }
}

/// What is known of an attempt, for its audit row: only what is valid.
pub(super) fn attempt<R: TriggerRequest>(request: &R) -> AuditEntry {
    fn valid<T: std::str::FromStr>(text: &str) -> String {
        if text.parse::<T>().is_ok() { text.to_owned() } else { String::new() }
    }
    let common = request.common();
    AuditEntry {
        operator_subject: valid::<OperatorSubject>(common.operator_subject),
        tenant_id: valid::<TenantId>(common.tenant_id),
        action: format!("trigger {}", R::TRIGGER),
        tracking_id: valid::<TrackingId>(common.tracking_id),
        reason: valid::<Reason>(common.reason),
        request_digest: request_digest(request),
        ..AuditEntry::default()
    }
}
