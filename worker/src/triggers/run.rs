//! The way every trigger takes: check, count, inject.
//!
//! A dry run takes the same way as the live call, to the very end: it asks CQS the same injection, as a check only. So
//! whatever refuses the one refuses the other. Counts come from the alias index, whatever their size; only a dry run
//! looks at samples and at the single stores.

use daemon::identity::Caller;
use domain::{AliasName, DtoType, ErrorCode, Refusal, ServiceName, Urn};
use tonic::{Request, Response, Status};

use super::{
    ask::{Aim, Answer, Ask, BREAKDOWN_MAX, Exists, Page, TriggerRequest, attempt},
    audit::{Denied, platform_failure, refuse},
    calls::Calls,
};

/// Labels shown as samples.
const SAMPLES: i32 = 10;
/// Stores counted at most, by pages of 4,096: some ten times the largest retailer.
const COUNTED_STORES_MAX: usize = 65_536;

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
    called_by_the_gateway(caller, R::RPC)?;
    let ask = Ask::parse(request)?;
    let repeated = repeats(calls, &ask).await?;
    let labels = labels_of(calls, &ask.aim, repeated).await?;
    let (trigger, tracking_id, reason) = (ask.trigger, &ask.tracking_id, ask.reason.as_str());
    let (operator, scope) = (&ask.operator, &ask.aim.scope);
    let accepted = calls.self_enqueue(ask.injection()).await.map_err(|refusal| injection_failure(&ask, refusal))?;
    if ask.dry_run {
        tracing::info!(%tracking_id, reason, %operator, %scope, labels, "{trigger}: dry run");
        let seen = look(calls, &ask, labels).await.map_err(page_failure)?;
        return Ok(Answer { replayed: accepted.replayed, ..seen });
    }
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

/// Refuses everyone but the gateway. The standing of every service is in the registry; that operators are passed on by
/// one only is said here.
pub(super) fn called_by_the_gateway(caller: &Caller, rpc: &str) -> Result<(), Refusal> {
    caller.require_rpc(rpc)?;
    if caller.service() == ServiceName::OperatorGateway {
        return Ok(());
    }
    Err(Refusal::new(ErrorCode::PermissionDenied, format!("{} may not call triggers", caller.identity())))
}

/// How many labels it concerns. Refuses what does not exist, unless the request was accepted before.
pub(super) async fn labels_of(calls: &Calls, aim: &Aim, repeated: bool) -> Result<i64, Denied> {
    let exists = match aim.exists {
        _ if repeated => true,
        Exists::Record(dto_type) => calls.exists(dto_type, &aim.scope).await.map_err(platform_failure)?,
        Exists::AnyLabel => {
            calls.count(DtoType::StoreEsl, AliasName::ByStore, &aim.scope).await.map_err(platform_failure)? > 0
        }
    };
    let what = match aim.exists {
        Exists::Record(DtoType::Design) => "is not a design of this tenant",
        Exists::Record(DtoType::AccessPoint) => "is not an access point of this store",
        Exists::Record(DtoType::StoreEsl) => "is not a label of this store",
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
    let (aim, mut answer) = (&ask.aim, Answer { labels, store_count: i64::from(labels > 0), ..Answer::default() });
    let sampled = if aim.scope.store().is_some() {
        Some(aim.scope.clone())
    } else {
        let (stores, next_page_token) = calls.stores((aim.shape.dto_type, aim.links), &aim.scope, &ask.page).await?;
        answer.store_count = store_count(calls, ask, (&stores, &next_page_token)).await?;
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

/// How many stores there are in all; 0 when that was not counted: only a first page is, and not beyond
/// [`COUNTED_STORES_MAX`].
async fn store_count(calls: &Calls, ask: &Ask, (first, next): (&[(String, i64)], &str)) -> Result<i64, Refusal> {
    if !ask.page.token.is_empty() {
        return Ok(0);
    }
    let (mut count, mut token) = (first.len(), next.to_owned());
    while !token.is_empty() {
        if count >= COUNTED_STORES_MAX {
            return Ok(0);
        }
        let page = Page { size: BREAKDOWN_MAX, token };
        let (stores, next) = calls.stores((ask.aim.shape.dto_type, ask.aim.links), &ask.aim.scope, &page).await?;
        count += stores.len();
        token = next;
    }
    Ok(i64::try_from(count).unwrap_or(i64::MAX))
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
