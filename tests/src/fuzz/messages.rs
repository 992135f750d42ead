//! Messages of the contracts: decoded and turned into the domain's values, as their servers do.

use prost::Message as _;
use proto::{cqs::v1 as cqs, dtoflow::v1 as dtoflow, records::v1 as records};

use super::{Target, seeds};

fn items(items: &[cqs::SplitItem]) {
    for item in items {
        if let Ok(value) = proto::split_item_from_wire("items[0]", item) {
            assert_eq!(proto::split_item_to_wire(&value), *item, "an item is written as it was read");
        }
    }
}

fn outcomes(outcomes: &[cqs::ItemOutcome]) {
    for outcome in outcomes {
        if let Ok((id, value)) = proto::outcome_from_wire("outcomes[0]", outcome) {
            let written = proto::outcome_to_wire(id, &value);
            assert_eq!((written.id, written.outcome), (outcome.id, outcome.outcome));
            assert!(outcome.cause.starts_with(&written.cause) || written.cause.is_empty());
        }
    }
}

pub(super) fn messages() -> Target {
    let seeds = seeds::cases("messages.jsonl").iter().map(seeds::bytes).collect();
    Target::new(seeds, |bytes| {
        if let Ok(request) = cqs::SelfEnqueueRequest::decode(bytes) {
            items(&request.items);
            if let Some(sla) = &request.sla_timestamp {
                let _ = proto::timestamp_from_wire("sla_timestamp", sla);
            }
        }
        if let Ok(request) = cqs::ReEnqueueRequest::decode(bytes) {
            items(&request.items);
            let _ = proto::lease_from_wire(&request.queue_name, request.lease_generation);
        }
        if let Ok(request) = cqs::CompleteRequest::decode(bytes) {
            outcomes(&request.outcomes);
        }
        if let Ok(notification) = cqs::DtoChangeNotification::decode(bytes) {
            let _ = proto::notification_from_wire(notification);
        }
        if let Ok(shape) = cqs::ParentShape::decode(bytes)
            && let Ok(value) = proto::shape_from_wire("shapes[0]", &shape)
        {
            assert_eq!(proto::shape_to_wire(value), shape, "a shape is written as it was read");
        }
        let _ = (dtoflow::PutManyRequest::decode(bytes), dtoflow::GetManyRequest::decode(bytes));
        let _ = (records::EccLink::decode(bytes), records::Design::decode(bytes));
    })
}
