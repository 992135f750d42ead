//! The gates of `SelfEnqueue` and `ReEnqueue`, and what makes two requests the same.

use domain::{ErrorCode, Refusal, SplitItem, TenantId, Urn};

use crate::model::{Operation, Queue, Terms};

/// A store under `by_eccmodel`, say: nothing would be found there, or something else than the name says.
const NO_PLACE: &str = "nothing is found by this alias under such a parent";

/// Refuses unless every item is a parent of a shape the queue declared, all under one tenant. Gives the tenant.
pub(crate) fn injected(queue: &Queue, items: &[SplitItem], scope: Option<&Urn>) -> Result<TenantId, Refusal> {
    let Some(first) = items.first() else {
        return Err(Refusal::field("items", "must hold at least one parent"));
    };
    for (index, item) in items.iter().enumerate() {
        if !item.target.is_parent() {
            return Err(denied(format!("items[{index}].dto_id"), "a record cannot be injected, only a parent"));
        }
        if !queue.splits(item) {
            return Err(denied(
                format!("items[{index}]"),
                "the queue did not declare that it splits parents of this shape",
            ));
        }
    }
    if let Some(index) = items.iter().position(|item| !item.parent_fits()) {
        return Err(denied(format!("items[{index}].parent_id"), NO_PLACE));
    }
    let tenant = first.target.urn().tenant();
    for (index, item) in items.iter().enumerate() {
        if item.target.urn().tenant() != tenant {
            return Err(denied(format!("items[{index}].parent_id"), "all parents must lie under one tenant"));
        }
    }
    if scope.is_some_and(|scope| scope.tenant() != tenant) {
        return Err(denied("scope".to_owned(), "must lie under the tenant of the items"));
    }
    Ok(tenant.clone())
}

/// Refuses unless all children lie under the item's tenant, parents among them have a declared shape, and the item is not
/// its own child (it would be split for ever).
pub(crate) fn children(queue: &Queue, item: &SplitItem, children: &[SplitItem]) -> Result<(), Refusal> {
    for (index, child) in children.iter().enumerate() {
        let field = || format!("items[{index}]");
        if child.target.urn().tenant() != item.target.urn().tenant() {
            return Err(denied(field(), "must lie under the tenant of the item"));
        }
        if child.target.is_parent() && !queue.splits(child) {
            return Err(denied(field(), "the queue did not declare that it splits parents of this shape"));
        }
        if !child.parent_fits() {
            return Err(denied(field(), NO_PLACE));
        }
        if child == item {
            return Err(Refusal::field(field(), "is the item itself"));
        }
    }
    Ok(())
}

fn denied(field: String, message: &str) -> Refusal {
    Refusal::new(ErrorCode::PermissionDenied, message).at(field)
}

/// The field in which a request differs from the accepted one of the same tracking id; none: it is the same request.
/// The operator may differ (a colleague repeats the call); default SLA timestamps do not differ.
pub(crate) fn difference(accepted: &Operation, asked: &Operation) -> Option<&'static str> {
    if accepted.queue != asked.queue {
        return Some("queue_name");
    }
    if accepted.items_digest != asked.items_digest {
        return Some("items");
    }
    if accepted.reason != asked.reason {
        return Some("reason");
    }
    if accepted.trigger != asked.trigger {
        return Some("trigger");
    }
    if accepted.scope != asked.scope {
        return Some("scope");
    }
    // Two defaults are alike, whatever moment they were computed at; a chosen time is part of the request.
    (accepted.sla_chosen != asked.sla_chosen).then_some("sla_timestamp")
}

/// Likewise, of what else the operator chose.
pub(crate) fn terms_difference(accepted: &Terms, asked: &Terms) -> Option<&'static str> {
    if accepted.limits != asked.limits {
        return Some("limits");
    }
    if accepted.stop_when != asked.stop_when {
        return Some("stop_when");
    }
    (accepted.plan_id != asked.plan_id).then_some("plan_id")
}
