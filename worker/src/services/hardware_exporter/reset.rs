//! What follows when an access point was reset: it is said, and where that is switched on, the pictures of its
//! unconfirmed labels are announced again, for one hop. Nothing is withdrawn, and nothing confirmed is sent.
//!
//! A reset is found by probes of this process, so once per process that serves the access point; announcing twice does no
//! more than waking labels that wait already.

use domain::{AliasName, DtoType, ServiceName, Timestamp, Urn, limits::TOUCH_MAX};
use proto::{
    cqs::v1::{AuditEntry, AuditOutcome},
    dtoflow::v1::TouchDtoRequest,
};

use super::{
    lanes::Reset,
    plan::{Decision, State},
};
use crate::runtime::{AliasQuery, CallError, Context, LabelRef, Platform, Reads};

/// What to do after a reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AfterReset {
    /// Only say so. What was on its way is found lost by the next look, and sent again.
    Wait,
    /// Announce the unconfirmed labels' pictures again, so that they are looked after at once.
    Announce,
}

/// Says that an access point was reset, and announces what shall be. A failure is logged: the labels are looked after all
/// the same, only later.
pub(super) async fn announce(context: Context<'_>, access_point: &Urn, reset: Reset, after: AfterReset) {
    let reason = format!(
        "access point {access_point} was reset: up since {}, which was {} when it was asked before",
        reset.since, reset.before
    );
    if after == AfterReset::Wait {
        tracing::warn!(seen = %reset.seen, "{reason}");
        return;
    }
    match touch_unconfirmed(context, access_point, reset, &reason).await {
        Ok(touched) => tracing::warn!(seen = %reset.seen, touched, "{reason}; unconfirmed labels announced again"),
        Err(error) => tracing::error!(%error, "{reason}; its labels could not be announced again"),
    }
}

async fn touch_unconfirmed(
    context: Context<'_>,
    access_point: &Urn,
    reset: Reset,
    reason: &str,
) -> Result<i32, CallError> {
    let id = access_point.record_id().map(ToString::to_string).unwrap_or_default();
    let tracking_id = format!("reset:{id}:{}", reset.since.as_ms() / 1_000);
    let (dto_type, alias) = (DtoType::StoreEsl, AliasName::ByAccessPoint);
    let query = AliasQuery { dto_type, alias, parent: access_point.clone() };
    let (mut touched, mut page) = (0, String::new());
    loop {
        let answer = context.platform.list_by_alias(&[&query], TOUCH_MAX, &page).await?;
        let labels: Vec<LabelRef> = answer
            .entries
            .iter()
            .filter_map(|entry| LabelRef::of(&Urn::record(DtoType::StoreEsl, &entry.dto_id).ok()?))
            .collect();
        let dto_id: Vec<String> = unconfirmed(context.platform, labels, context.clock.now()).await?;
        if !dto_id.is_empty() {
            touched += context
                .platform
                .touch(TouchDtoRequest {
                    dto_type: DtoType::EslImage.to_string(),
                    dto_id,
                    reason: reason.to_owned(),
                    tracking_id: tracking_id.clone(),
                    sla_timestamp: None,
                    operator_subject: String::new(),
                })
                .await?;
        }
        page = answer.next_page_token;
        if page.is_empty() {
            break;
        }
    }
    let entry = AuditEntry {
        tenant_id: access_point.tenant().to_string(),
        action: "announce after reset".to_owned(),
        tracking_id,
        reason: reason.to_owned(),
        outcome: AuditOutcome::Accepted.into(),
        detail: format!("{touched} unconfirmed labels announced again by {}", ServiceName::HardwareExporter),
        ..AuditEntry::default()
    };
    context.platform.append_audit(entry).await?;
    Ok(touched)
}

/// The pictures of those labels that are not confirmed.
async fn unconfirmed(platform: &Platform, labels: Vec<LabelRef>, now: Timestamp) -> Result<Vec<String>, CallError> {
    let mut reads = Reads::default();
    for label in &labels {
        for dto_type in [DtoType::EslImage, DtoType::StoreEsl, DtoType::StoreEslStatus] {
            reads.want(dto_type, label.record(dto_type));
        }
    }
    let read = reads.fetch(platform).await?;
    let waits = |label: &&LabelRef| {
        matches!(State::of(label, &read).map(|state| state.decide(now)), Ok(Decision::Carry(_) | Decision::Broken(..)))
    };
    Ok(labels.iter().filter(waits).map(|label| label.record(DtoType::EslImage).to_string()).collect())
}
