//! Whether a trigger's request may start: one decision, for the dry run and the live call alike.
//!
//! Both have asked the service the same dry run before; what it counted is held against the plan here. So whatever
//! refuses the live call up to this point refuses the dry run, and the other way round.

use domain::{ErrorCode, Refusal, Timestamp};
use proto::cqs::v1::ApprovalRequired;
use serde::Serialize;
use utoipa::ToSchema;

use super::trigger_call::{Answer, Asked};
use crate::{
    plan::{Counted, Drift, PLAN_LIFETIME_MS, PlanScope},
    state::Gateway,
};

/// What a request may do, and why.
#[derive(Debug)]
pub(super) struct Admission {
    /// What is concerned now.
    pub(super) counted: Counted,
    /// Against the plan that the request names.
    pub(super) drift: Option<Drift>,
    /// Whether a second operator must agree.
    pub(super) approval: ApprovalNeed,
}

/// Whether a second operator must approve it before anything happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct ApprovalNeed {
    /// True: it would wait, `AWAITING_APPROVAL`, until another operator approves it.
    pub(super) needed: bool,
    /// More labels than this need it.
    #[schema(example = 50_000)]
    pub(super) above_labels: i64,
}

impl Admission {
    /// What CQS is told of the approval: who decides until when over how much.
    pub(super) fn approval_required(&self, now: Timestamp) -> Option<ApprovalRequired> {
        self.approval.needed.then(|| ApprovalRequired {
            label_count: self.counted.labels,
            // As long as a plan is good for.
            expires_at: Some(proto::timestamp_to_wire(now.plus_ms(PLAN_LIFETIME_MS))),
        })
    }
}

impl Asked {
    /// What a plan of this request is of.
    pub(super) fn plan_scope(&self) -> PlanScope<'_> {
        PlanScope {
            trigger: self.trigger,
            tenant: &self.tenant,
            store: self.place.store.as_ref(),
            record: self.place.record.as_ref(),
        }
    }

    /// What was counted, as a plan says it.
    pub(super) fn counted(&self, seen: &Answer) -> Counted {
        match &self.place.store {
            Some(store) => {
                Counted { labels: seen.labels, stores: [(store.to_string(), seen.labels)].into(), more_stores: false }
            }
            None => Counted {
                labels: seen.labels,
                stores: seen.stores.iter().cloned().collect(),
                more_stores: !seen.next_page_token.is_empty(),
            },
        }
    }
}

/// Decides over a request that the service would accept. A request that was accepted before is not decided anew.
pub(super) fn decide(gateway: &Gateway, asked: &Asked, seen: &Answer) -> Result<Admission, Refusal> {
    let counted = asked.counted(seen);
    let drift = match &asked.plan {
        Some(plan) if !seen.replayed => {
            let read = gateway.plans.read(&plan.id, &asked.plan_scope(), gateway.clock.now())?;
            if !asked.page_token.is_empty() {
                return Err(
                    Refusal::new(ErrorCode::InvalidArgument, "is compared over the first page only").at("plan_id")
                );
            }
            let drift = Drift::between(&read.counted, &counted);
            drift.within(plan.max_drift)?;
            Some(drift)
        }
        _ => None,
    };
    let above_labels = gateway.policy.approval_above_labels;
    let needed = !seen.replayed && seen.labels > above_labels;
    Ok(Admission { counted, drift, approval: ApprovalNeed { needed, above_labels } })
}
