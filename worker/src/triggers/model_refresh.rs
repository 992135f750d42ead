//! `TriggerModelRefresh`: every label linked to one ECC model of a store is rendered again.
//!
//! A dry run takes the same way as the live call up to the injection, so whatever refuses the one refuses the other.
//! (Only a chosen SLA timestamp that differs from an accepted request's is seen by the live call alone: the ledger does
//! not show who chose the accepted one.)

use daemon::identity::Caller;
use domain::{
    AliasName, DtoType, ErrorCode, OperatorSubject, ParentShape, Reason, RecordId, Refusal, ServiceName, SplitItem,
    StoreId, Target, TenantId, Timestamp, TrackingId, Trigger, Urn,
};
use proto::{
    cqs::v1::{AuditEntry, Operation, SelfEnqueueRequest},
    ecc_image_render::v1::{TriggerModelRefreshRequest, TriggerModelRefreshResponse},
    parse_field, split_item_to_wire, timestamp_from_wire, timestamp_to_wire,
};

use super::{
    audit::{Denied, platform_failure, request_digest},
    calls::Calls,
};

const RPC: &str = "ecc_image_render.v1.EccImageRenderTriggers/TriggerModelRefresh";
const TRIGGER: Trigger = Trigger::ModelRefresh;
/// The parent it injects.
const SHAPE: ParentShape = ParentShape { dto_type: DtoType::EccLink, alias: Some(AliasName::ByEccModel) };
/// Labels shown as samples.
const SAMPLES: i32 = 10;

/// A valid request.
#[derive(Debug)]
struct Ask {
    tenant: TenantId,
    store: StoreId,
    model: RecordId,
    reason: Reason,
    tracking_id: TrackingId,
    operator: OperatorSubject,
    /// None: now, as CQS defaults.
    sla: Option<Timestamp>,
    sla_is_default: bool,
}

impl Ask {
    fn parse(request: &TriggerModelRefreshRequest) -> Result<Self, Refusal> {
        Ok(Self {
            tenant: parse_field("tenant_id", &request.tenant_id)?,
            store: parse_field("store_id", &request.store_id)?,
            model: parse_field("model_id", &request.model_id)?,
            reason: parse_field("reason", &request.reason)?,
            tracking_id: parse_field("tracking_id", &request.tracking_id)?,
            operator: parse_field("operator_subject", &request.operator_subject)?,
            sla: request.sla_timestamp.map(|sla| timestamp_from_wire("sla_timestamp", &sla)).transpose()?,
            sla_is_default: request.sla_is_default,
        })
    }

    /// The model: what the operation's scope names and its parent is.
    fn scope(&self) -> Urn {
        Urn::in_store(&self.tenant, &self.store, DtoType::EccModel, &self.model)
    }

    /// Which field differs from an operation that has the tracking id already; none when it is the same request.
    fn difference(&self, accepted: &Operation) -> Option<&'static str> {
        let same_start = ServiceName::EccImageRender.as_str() == accepted.queue_name;
        if !same_start || accepted.trigger != TRIGGER.as_str() {
            return Some("tracking_id");
        }
        if accepted.scope != self.scope().to_string() {
            let store = accepted.scope.parse::<Urn>().ok().and_then(|urn| urn.store().cloned());
            return Some(if store.as_ref() == Some(&self.store) { "model_id" } else { "store_id" });
        }
        (accepted.reason != self.reason.as_str()).then_some("reason")
    }

    fn injection(&self) -> SelfEnqueueRequest {
        let parent = SplitItem { dto_type: SHAPE.dto_type, target: Target::Parent(self.scope()), alias: SHAPE.alias };
        SelfEnqueueRequest {
            queue_name: ServiceName::EccImageRender.as_str().to_owned(),
            items: vec![split_item_to_wire(&parent)],
            reason: self.reason.as_str().to_owned(),
            tracking_id: self.tracking_id.to_string(),
            sla_timestamp: self.sla.map(timestamp_to_wire),
            operator_subject: self.operator.to_string(),
            trigger: TRIGGER.to_string(),
            scope: self.scope().to_string(),
            sla_is_default: self.sla_is_default,
        }
    }
}

/// What is known of an attempt, for its audit row: only what is valid.
pub(super) fn attempt(request: &TriggerModelRefreshRequest) -> AuditEntry {
    fn valid<T: std::str::FromStr>(text: &str) -> String {
        if text.parse::<T>().is_ok() { text.to_owned() } else { String::new() }
    }
    AuditEntry {
        operator_subject: valid::<OperatorSubject>(&request.operator_subject),
        tenant_id: valid::<TenantId>(&request.tenant_id),
        action: format!("trigger {TRIGGER}"),
        tracking_id: valid::<TrackingId>(&request.tracking_id),
        reason: valid::<Reason>(&request.reason),
        request_digest: request_digest(request),
        ..AuditEntry::default()
    }
}

/// Checks, counts, and injects unless it is a dry run.
pub(super) async fn trigger(
    calls: &Calls,
    caller: &Caller,
    request: &TriggerModelRefreshRequest,
) -> Result<TriggerModelRefreshResponse, Denied> {
    caller.require_rpc(RPC)?;
    // The standing of every service is in the registry; that operators are passed on by one only is this line's.
    if caller.service() != ServiceName::OperatorGateway {
        return Err(
            Refusal::new(ErrorCode::PermissionDenied, format!("{} may not call triggers", caller.identity())).into()
        );
    }
    let ask = Ask::parse(request)?;
    let scope = ask.scope();
    if !repeats(calls, &ask).await? && !calls.exists(DtoType::EccModel, &scope).await.map_err(platform_failure)? {
        let text = "is not an ECC model of this store";
        return Err(Refusal::new(ErrorCode::NotFound, text).at("model_id").into());
    }
    let labels = calls.count(SHAPE.dto_type, AliasName::ByEccModel, &scope).await.map_err(platform_failure)?;
    let samples =
        calls.first(SHAPE.dto_type, AliasName::ByEccModel, &scope, SAMPLES).await.map_err(platform_failure)?;
    let counted = TriggerModelRefreshResponse {
        labels,
        sample_label_ids: samples.iter().filter_map(Urn::record_id).map(ToString::to_string).collect(),
        ..TriggerModelRefreshResponse::default()
    };
    let (tracking_id, reason, operator) = (&ask.tracking_id, ask.reason.as_str(), &ask.operator);
    if request.dry_run {
        tracing::info!(%tracking_id, reason, %operator, %scope, labels, "{TRIGGER}: dry run");
        return Ok(counted);
    }
    let accepted = calls.self_enqueue(ask.injection()).await.map_err(injection_failure)?;
    tracing::info!(%tracking_id, reason, %operator, %scope, labels, replayed = accepted.replayed, "{TRIGGER}: accepted");
    Ok(TriggerModelRefreshResponse {
        items_enqueued: accepted.items_enqueued,
        replayed: accepted.replayed,
        sla_timestamp: accepted.sla_timestamp,
        accepted_at: accepted.accepted_at,
        ..counted
    })
}

/// Whether the request was accepted before; refuses when its tracking id names another one.
async fn repeats(calls: &Calls, ask: &Ask) -> Result<bool, Denied> {
    let differs = |field: &str| {
        let text = if field == "tracking_id" {
            "names an operation of another trigger".to_owned()
        } else {
            format!("differs from the request that tracking id {} names already", ask.tracking_id)
        };
        Denied::from(Refusal::new(ErrorCode::AlreadyExists, text).at(field))
    };
    match calls.operation(&ask.tenant, &ask.tracking_id).await {
        Ok(None) => Ok(false),
        Ok(Some(accepted)) => ask.difference(&accepted).map_or(Ok(true), |field| Err(differs(field))),
        // It started in another service's queue.
        Err(refusal) if refusal.code == ErrorCode::PermissionDenied => Err(differs("tracking_id")),
        Err(refusal) => Err(platform_failure(refusal)),
    }
}

/// A refusal of the injection, in the operator's fields. CQS has audited it.
fn injection_failure(mut refusal: Refusal) -> Denied {
    match refusal.code {
        ErrorCode::AlreadyExists => {
            if matches!(refusal.field.as_str(), "items" | "scope") {
                "model_id".clone_into(&mut refusal.field);
            } else if matches!(refusal.field.as_str(), "queue_name" | "trigger" | "") {
                "tracking_id".clone_into(&mut refusal.field);
            }
            Denied::Elsewhere(refusal)
        }
        _ => platform_failure(refusal),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> TriggerModelRefreshRequest {
        TriggerModelRefreshRequest {
            tenant_id: "T".into(),
            store_id: "S".into(),
            model_id: "M".into(),
            reason: "CHG-1: new fonts".into(),
            tracking_id: "CHG-1".into(),
            operator_subject: "ops@example".into(),
            ..Default::default()
        }
    }

    #[test]
    fn each_wrong_field_is_named() {
        type Spoil = fn(&mut TriggerModelRefreshRequest);
        let wrong: [(&str, Spoil); 9] = [
            ("tenant_id", |request| request.tenant_id.clear()),
            ("store_id", |request| request.store_id = "a/b".into()),
            ("model_id", |request| request.model_id = "..".into()),
            ("reason", |request| request.reason = " ".into()),
            ("reason", |request| request.reason = "a\nb".into()),
            ("tracking_id", |request| request.tracking_id = "a b".into()),
            ("tracking_id", |request| request.tracking_id = "x".repeat(129)),
            ("operator_subject", |request| request.operator_subject.clear()),
            ("sla_timestamp", |request| {
                request.sla_timestamp = Some(prost_types::Timestamp { seconds: i64::MAX, nanos: 0 });
            }),
        ];
        for (field, spoil) in wrong {
            let mut request = request();
            spoil(&mut request);
            let refusal = Ask::parse(&request).unwrap_err();
            assert_eq!((refusal.code, refusal.field.as_str()), (ErrorCode::InvalidArgument, field));
        }
    }

    #[test]
    fn it_injects_exactly_the_decision_records_parent() {
        let injection = Ask::parse(&request()).unwrap().injection();
        let [item] = injection.items.as_slice() else { panic!("one parent") };
        assert_eq!((item.dto_type.as_str(), item.alias_name.as_str()), ("ecclink.v1", "by_eccmodel"));
        let parent = proto::cqs::v1::split_item::Urn::ParentId("t/T/s/S/eccmodels/M".into());
        assert_eq!(item.urn, Some(parent));
        assert_eq!(injection.sla_timestamp, None);
    }

    #[test]
    fn another_request_under_the_same_tracking_id_is_told_apart_by_field() {
        let ask = Ask::parse(&request()).unwrap();
        let accepted = Operation {
            queue_name: "ecc-image-render-service".into(),
            trigger: "model-refresh".into(),
            scope: "t/T/s/S/eccmodels/M".into(),
            reason: "CHG-1: new fonts".into(),
            ..Default::default()
        };
        assert_eq!(ask.difference(&accepted), None);
        let other = |spoil: fn(&mut Operation)| {
            let mut operation = accepted.clone();
            spoil(&mut operation);
            ask.difference(&operation)
        };
        assert_eq!(other(|operation| operation.scope = "t/T/s/S/eccmodels/N".into()), Some("model_id"));
        assert_eq!(other(|operation| operation.scope = "t/T/s/R/eccmodels/M".into()), Some("store_id"));
        assert_eq!(other(|operation| operation.reason = "CHG-2".into()), Some("reason"));
        assert_eq!(other(|operation| operation.trigger = "touch".into()), Some("tracking_id"));
    }

    #[test]
    fn an_audit_row_holds_only_what_is_valid() {
        let entry = attempt(&TriggerModelRefreshRequest { reason: "a\u{7}".into(), ..request() });
        assert_eq!((entry.reason.as_str(), entry.tracking_id.as_str()), ("", "CHG-1"));
        assert_eq!(entry.request_digest.len(), 64);
    }
}
