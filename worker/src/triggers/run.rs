//! The way every trigger takes: check, count, inject.
//!
//! A dry run takes the same way as the live call up to the injection, so whatever refuses the one refuses the other.
//! (Only a chosen SLA timestamp that differs from an accepted request's is seen by the live call alone: the ledger does
//! not show who chose the accepted one.) Counts come from the alias index, whatever their size; only a dry run looks at
//! samples and at the single stores.

use daemon::identity::Caller;
use domain::{AliasName, DtoType, ErrorCode, Refusal, ServiceName, Urn};
use tonic::{Request, Response, Status};

use super::{
    ask::{Answer, Ask, Exists, TriggerRequest, attempt},
    audit::{Denied, platform_failure, refuse},
    calls::Calls,
};

/// Labels shown as samples.
const SAMPLES: i32 = 10;

/// Answers one call.
pub(super) async fn answer<R: TriggerRequest>(
    calls: &Calls,
    request: Request<R>,
) -> Result<Response<R::Response>, Status> {
    let caller = daemon::identity::caller(&request).map_err(|refusal| proto::status_from_refusal(&refusal))?;
    let request = request.into_inner();
    match run(calls, &caller, &request).await {
        Ok(answer) => Ok(Response::new(R::response(answer))),
        Err(denied) => Err(refuse(calls, attempt(&request), denied).await),
    }
}

/// Checks, counts, and injects unless it is a dry run.
async fn run<R: TriggerRequest>(calls: &Calls, caller: &Caller, request: &R) -> Result<Answer, Denied> {
    caller.require_rpc(R::RPC)?;
    // The standing of every service is in the registry; that operators are passed on by one only is this line's.
    if caller.service() != ServiceName::OperatorGateway {
        return Err(
            Refusal::new(ErrorCode::PermissionDenied, format!("{} may not call triggers", caller.identity())).into()
        );
    }
    let ask = Ask::parse(request)?;
    let repeated = repeats(calls, &ask).await?;
    let labels = labels(calls, &ask, repeated).await?;
    let (trigger, tracking_id, reason) = (ask.trigger, &ask.tracking_id, ask.reason.as_str());
    let (operator, scope) = (&ask.operator, &ask.aim.scope);
    if ask.dry_run {
        tracing::info!(%tracking_id, reason, %operator, %scope, labels, "{trigger}: dry run");
        return look(calls, &ask, labels).await.map_err(page_failure);
    }
    let accepted = calls.self_enqueue(ask.injection()).await.map_err(|refusal| injection_failure(&ask, refusal))?;
    tracing::info!(%tracking_id, reason, %operator, %scope, labels, replayed = accepted.replayed, "{trigger}: accepted");
    Ok(Answer {
        items_enqueued: accepted.items_enqueued,
        labels,
        replayed: accepted.replayed,
        sla_timestamp: accepted.sla_timestamp,
        accepted_at: accepted.accepted_at,
        ..Answer::default()
    })
}

/// How many labels it concerns. Refuses what does not exist, unless the request was accepted before.
async fn labels(calls: &Calls, ask: &Ask, repeated: bool) -> Result<i64, Denied> {
    let aim = &ask.aim;
    let exists = match aim.exists {
        _ if repeated => true,
        Exists::Record(dto_type) => calls.exists(dto_type, &aim.scope).await.map_err(platform_failure)?,
        Exists::AnyLabel => {
            calls.count(DtoType::StoreEsl, AliasName::ByStore, &aim.scope).await.map_err(platform_failure)? > 0
        }
    };
    let what = match aim.exists {
        Exists::Record(DtoType::Design) => "is not a design of this tenant",
        Exists::Record(_) => "is not an ECC model of this store",
        Exists::AnyLabel => "is not a store with labels",
    };
    if !exists {
        return Err(Refusal::new(ErrorCode::NotFound, what).at(aim.field).into());
    }
    calls.count(aim.shape.dto_type, aim.links, &aim.scope).await.map_err(platform_failure)
}

/// What only a dry run looks at: samples, and the labels of each store where the scope is the tenant's.
async fn look(calls: &Calls, ask: &Ask, labels: i64) -> Result<Answer, Refusal> {
    let (aim, mut answer) = (&ask.aim, Answer { labels, ..Answer::default() });
    let sampled = if aim.scope.store().is_some() {
        Some(aim.scope.clone())
    } else {
        let (stores, next_page_token) = calls.stores((aim.shape.dto_type, aim.links), &aim.scope, &ask.page).await?;
        answer.next_page_token = next_page_token;
        let first = stores.first().and_then(|(store, _)| store.parse().ok());
        answer.stores = stores;
        first.map(|store| aim.scope.seen_from(&store))
    };
    if let Some(parent) = sampled {
        let samples = calls.first(aim.shape.dto_type, aim.links, &parent, SAMPLES).await?;
        answer.sample_label_ids = samples.iter().filter_map(Urn::record_id).map(ToString::to_string).collect();
    }
    Ok(answer)
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

/// A page token that DTOflow does not know is the caller's; everything else is not.
fn page_failure(refusal: Refusal) -> Denied {
    if refusal.code == ErrorCode::InvalidArgument && refusal.field == "page_token" {
        return refusal.into();
    }
    platform_failure(refusal)
}

/// A refusal of the injection, in the operator's fields. CQS has audited it.
fn injection_failure(ask: &Ask, mut refusal: Refusal) -> Denied {
    match refusal.code {
        ErrorCode::AlreadyExists => {
            if matches!(refusal.field.as_str(), "items" | "scope") {
                ask.aim.field.clone_into(&mut refusal.field);
            } else if matches!(refusal.field.as_str(), "queue_name" | "trigger" | "") {
                "tracking_id".clone_into(&mut refusal.field);
            }
            Denied::Elsewhere(refusal)
        }
        _ => platform_failure(refusal),
    }
}
