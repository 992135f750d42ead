//! Records, parents, outcomes and requests in few words, and requests on the wire.

use cqs::{
    announce::{Announce, Announcement},
    model::Terms,
    store::{InjectAsk, SplitAsk},
};
use domain::{DtoType, Outcome, ParentShape, ServiceName, SplitItem, Target, Timestamp};
use proto::{cqs::v1 as wire, split_item_to_wire, timestamp_to_wire};

use super::{ECC, Leased};

/// `"dto_type"` or `"dto_type alias"`.
pub fn shape(text: &str) -> ParentShape {
    let mut parts = text.split(' ');
    ParentShape {
        dto_type: parts.next().unwrap().parse().unwrap(),
        alias: parts.next().map(|alias| alias.parse().unwrap()),
    }
}

/// `"dto_type urn alias"`: a parent.
pub fn parent(text: &str) -> SplitItem {
    let mut parts = text.split(' ');
    SplitItem {
        dto_type: parts.next().unwrap().parse().unwrap(),
        target: Target::Parent(parts.next().unwrap().parse().unwrap()),
        alias: parts.next().map(|alias| alias.parse().unwrap()),
    }
}

/// A record by its URN.
pub fn record(urn: &str) -> SplitItem {
    let urn: domain::Urn = urn.parse().unwrap();
    SplitItem { dto_type: type_of(&urn), target: Target::Record(urn), alias: None }
}

fn type_of(urn: &domain::Urn) -> DtoType {
    match urn {
        domain::Urn::StoreRecord(_, _, collection, _) | domain::Urn::TenantRecord(_, collection, _) => {
            collection.dto_type()
        }
        domain::Urn::Tenant(_) | domain::Urn::Store(_, _) => panic!("{urn} names no record"),
    }
}

/// A change of a record, in the ordinary lane.
pub fn told(urn: &str, sla: Timestamp) -> Announcement {
    let urn: domain::Urn = urn.parse().unwrap();
    Announcement { dto_type: type_of(&urn), urn, sla, tracking_id: None, lane: None, announce: Announce::Always }
}

/// The trigger of the main job: model M of store S.
pub fn refresh(tracking_id: &str) -> InjectAsk {
    InjectAsk {
        service: ServiceName::EccImageRender,
        queue: ECC.parse().unwrap(),
        items: vec![parent("ecclink.v1 t/T/s/S/eccmodels/M by_eccmodel")],
        reason: "CHG-118: font fixed".parse().unwrap(),
        tracking_id: tracking_id.parse().unwrap(),
        sla: None,
        sla_is_default: false,
        operator_subject: Some("ann@example".parse().unwrap()),
        trigger: "model-refresh".to_owned(),
        scope: Some("t/T/s/S/eccmodels/M".parse().unwrap()),
        terms: Terms::default(),
        approval: None,
        request_digest: String::new(),
        check_only: false,
    }
}

/// A complete split into these children.
pub fn into(leased: &Leased, children: Vec<SplitItem>) -> SplitAsk {
    SplitAsk { lease: leased.lease.clone(), id: leased.rows[0].id, children, next_cursor: String::new(), sla: None }
}

/// Links `E{from}` to `E{to}` of store S, end excluded.
pub fn links(range: std::ops::Range<usize>) -> Vec<SplitItem> {
    range.map(|n| record(&format!("t/T/s/S/ecclinks/E{n}"))).collect()
}

pub fn retry() -> Outcome {
    Outcome::Retry { cause: "no answer".to_owned() }
}

pub fn failed(cause: &str) -> Outcome {
    Outcome::Failed { cause: cause.to_owned() }
}

/// The request that means what `ask` means.
pub fn inject_to_wire(ask: &InjectAsk) -> wire::SelfEnqueueRequest {
    wire::SelfEnqueueRequest {
        queue_name: ask.queue.to_string(),
        items: ask.items.iter().map(split_item_to_wire).collect(),
        reason: ask.reason.to_string(),
        tracking_id: ask.tracking_id.to_string(),
        sla_timestamp: ask.sla.map(timestamp_to_wire),
        operator_subject: ask.operator_subject.as_ref().map(ToString::to_string).unwrap_or_default(),
        trigger: ask.trigger.clone(),
        scope: ask.scope.as_ref().map(ToString::to_string).unwrap_or_default(),
        sla_is_default: ask.sla_is_default,
        limits: Some(wire::OperationLimits {
            throttle_per_s: limit_to_wire(ask.terms.limits.throttle_per_s),
            max_in_flight: limit_to_wire(ask.terms.limits.max_in_flight),
        }),
        stop_when: ask.terms.stop_when.map(|stop_when| wire::StopWhen {
            failure_ratio_percent: i32::try_from(stop_when.failure_ratio_percent).unwrap(),
            min_sample: i32::try_from(stop_when.min_sample).unwrap(),
        }),
        approval: ask.approval.as_ref().map(|approval| wire::ApprovalRequired {
            label_count: approval.label_count,
            expires_at: Some(timestamp_to_wire(approval.expires_at)),
        }),
        plan_id: ask.terms.plan_id.clone(),
        check_only: ask.check_only,
    }
}

fn limit_to_wire(limit: Option<i64>) -> i32 {
    limit.map_or(0, |limit| i32::try_from(limit).unwrap())
}
