//! What follows when an access point was reset: it is said, and where that is switched on, the pictures of its
//! unconfirmed labels are announced again, for one hop. Nothing is withdrawn, and nothing confirmed is sent.
//!
//! Once per reset, whoever sees it: since when an access point is up stands in its own record, and who moves that on, from
//! the version it read, has the reset. Which worker looks, and whether one ran meanwhile, does not matter. A worker that ends
//! between the two leaves the labels to their next look.

use domain::{AliasName, DtoType, ServiceName, Timestamp, TrackingId, Urn, limits::TOUCH_MAX};
use prost::Message as _;
use proto::{
    cqs::v1::{AuditEntry, AuditOutcome},
    dtoflow::v1::TouchDtoRequest,
    records::v1::AccessPointStatus,
    timestamp_from_wire, timestamp_to_wire,
};

use super::{
    lanes::Boot,
    plan::{Decision, State},
};
use crate::runtime::{
    AliasQuery, CallError, Change, Context, LabelRef, Platform, Reads, RecordWrite, WriteState, write_many,
};

/// How far the moment an access point says it started may move without a reset, in milliseconds: calls take their time,
/// and none starts twice in half a minute.
const BOOT_TOLERANCE_MS: i64 = 30_000;
/// And besides one part in so many of the time since it was recorded: cheap clocks drift by a tenth of that.
const DRIFT_PART: i64 = 1_000;

/// What to do after a reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AfterReset {
    /// Only say so. What was on its way is found lost by the next look, and sent again.
    Wait,
    /// Announce the unconfirmed labels' pictures again, so that they are looked after at once.
    Announce,
}

/// What a probe saw of an access point.
#[derive(Debug)]
pub(super) struct Seen<'a> {
    pub(super) access_point: &'a Urn,
    pub(super) boot: Boot,
    /// Of the batch in which it was seen.
    pub(super) tracking_id: Option<TrackingId>,
}

/// A reset that is ours to act on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Reset {
    /// Since when the access point was up before.
    before: Timestamp,
    /// Since when it is up now.
    since: Timestamp,
    /// When that was seen.
    seen: Timestamp,
}

/// Records since when an access point is up. Where that shows a reset that nobody has acted on, says so and announces what
/// shall be; a failure of that is logged, for the labels are looked after all the same, only later. An error: nothing was
/// recorded.
pub(super) async fn noticed(context: Context<'_>, seen: Seen<'_>, after: AfterReset) -> Result<(), CallError> {
    let access_point = seen.access_point;
    let Some(reset) = claim(context, seen).await? else { return Ok(()) };
    let reason = format!(
        "access point {access_point} was reset: up since {}, which was {} when it was asked before",
        reset.since, reset.before
    );
    if after == AfterReset::Wait {
        tracing::warn!(seen = %reset.seen, "{reason}");
        return Ok(());
    }
    match touch_unconfirmed(context, access_point, reset, &reason).await {
        Ok(touched) => tracing::warn!(seen = %reset.seen, touched, "{reason}; unconfirmed labels announced again"),
        Err(error) => tracing::error!(%error, "{reason}; its labels could not be announced again"),
    }
    Ok(())
}

/// Moves the record on; the reset, where it shows one that nobody else has moved it on for.
async fn claim(
    context: Context<'_>,
    Seen { access_point, boot, tracking_id }: Seen<'_>,
) -> Result<Option<Reset>, CallError> {
    let dto_type = DtoType::AccessPointStatus;
    let Some(urn) = access_point.sibling(dto_type) else { return Ok(None) };
    let mut reads = Reads::default();
    reads.want(dto_type, urn.clone());
    let read = reads.fetch(context.platform).await?;
    // What cannot be read is no more than a look that was missed: written anew.
    let (known, version) = match read.record::<AccessPointStatus>(&urn) {
        Ok(found) => (found.record, vec![found.input]),
        Err(_) => (None, Vec::new()),
    };
    let before = known
        .as_ref()
        .and_then(|known| known.up_since.as_ref())
        .and_then(|at| timestamp_from_wire("up_since", at).ok());
    let elapsed_ms = before.map_or(0, |before| boot.seen.ms_since(before).max(0));
    let tolerance_ms = BOOT_TOLERANCE_MS.saturating_add(elapsed_ms / DRIFT_PART);
    if before.is_some_and(|before| boot.since.ms_since(before) <= tolerance_ms) {
        return Ok(None);
    }
    let status = AccessPointStatus {
        up_since: Some(timestamp_to_wire(boot.since)),
        seen_at: Some(timestamp_to_wire(boot.seen)),
        up_before: before.map(timestamp_to_wire),
    };
    let change = Change::Put(status.encode_to_vec());
    let write = RecordWrite { dto_type, urn, change, inputs: version, sla: boot.seen, tracking_id };
    let states = write_many(context.platform, context.lease, vec![write]).await?;
    let is_ours = matches!(states.as_slice(), [WriteState::Written(_)]);
    Ok(before.filter(|_| is_ours).map(|before| Reset { before, since: boot.since, seen: boot.seen }))
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
        matches!(
            State::of(label, &read).map(|state| state.decide(now)),
            Ok(Decision::Carry(_) | Decision::Leave(_) | Decision::Broken(..))
        )
    };
    Ok(labels.iter().filter(waits).map(|label| label.record(DtoType::EslImage).to_string()).collect())
}
