//! The one brake over all operations.

use domain::{ErrorCode, Refusal, Timestamp};

use crate::{
    StoreError,
    announce::Woken,
    model::{Act, AuditOutcome, AuditRow},
    store::BrakeAsk,
    unit::Unit,
};

use super::changes::Changes;

/// The action's name in the audit log.
pub(crate) const fn brake_action(on: bool) -> &'static str {
    if on { "brake on" } else { "brake off" }
}

/// Puts the brake on or takes it off. Again by the same person for the same reason, and off again, change nothing; on while
/// somebody has it on is refused, so that who stopped all and why stays told until it is off.
pub(crate) async fn set_brake<U: Unit>(
    unit: &mut U,
    ask: BrakeAsk,
    now: Timestamp,
) -> Result<(Option<Act>, Woken), StoreError> {
    let was = unit.brake_find().await?;
    let act = Act { at: now, by: Some(ask.by.clone()), reason: ask.reason.to_string() };
    let brake = ask.on.then_some(act);
    let changed = match (&was, &brake) {
        (None, None) => false,
        (Some(was), Some(new)) if (&was.by, &was.reason) == (&new.by, &new.reason) => false,
        (Some(was), Some(_)) => return Err(on_already(was).into()),
        (None, Some(_)) | (Some(_), None) => true,
    };
    let mut changes = Changes::default();
    if changed {
        unit.brake_put(brake.as_ref()).await?;
        if brake.is_none() {
            for queue in unit.queue_list().await? {
                changes.wake(&queue);
            }
        }
    }
    let row = AuditRow {
        id: 0,
        at: now,
        service: ask.service,
        operator_subject: ask.by.to_string(),
        // It concerns all of them.
        tenant: None,
        action: brake_action(ask.on).to_owned(),
        tracking_id: String::new(),
        reason: ask.reason.to_string(),
        request_digest: ask.request_digest,
        outcome: if changed { AuditOutcome::Accepted } else { AuditOutcome::Replayed },
        error_code: String::new(),
        detail: was.as_ref().map_or("was off".to_owned(), |was| format!("was on since {}", was.at)),
    };
    unit.audit_append(&[row]).await?;
    tracing::warn!(on = ask.on, by = %ask.by, reason = %ask.reason, changed, "brake set");
    let stands = if changed { brake } else { was };
    Ok((stands, changes.write(unit, now).await?))
}

fn on_already(was: &Act) -> Refusal {
    let by = was.by.as_ref().map_or("a service".to_owned(), ToString::to_string);
    let message = format!("the brake is on already, by {by} since {}: {}; nothing was changed", was.at, was.reason);
    Refusal::new(ErrorCode::FailedPrecondition, message).at("on")
}

/// Who put the brake on; none: it is off.
pub(crate) async fn brake<U: Unit>(unit: &mut U) -> Result<Option<Act>, StoreError> {
    unit.brake_find().await
}
