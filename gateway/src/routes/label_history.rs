//! `/v1/tenants/{tenant}/stores/{store}/labels/{label}/history`

use std::{collections::BTreeMap, sync::Arc};

use axum::{Json, extract::State};
use domain::{DtoType, OperatorScope, RecordId, StoreId, TenantId, Urn};
use proto::{
    cqs::v1::Operation as WireOperation,
    dtoflow::v1::{HistoryEntry as WireEntry, HistoryEvent, ListHistoryRequest},
};
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    operation_view::{OperationStateName, state},
    operations::{named, reached},
    records::{self, enum_text, key},
    triggers::operation_path,
};
use crate::{
    auth::Operator,
    backend::{CallError, Peer, call},
    problem::{Problem, ReadProblems},
    query::{NextPage, PageParams, Parameters, Segments, segment},
    state::Gateway,
    wire,
};

/// What happened to a label.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) enum HistoryEventName {
    /// It shall show another picture.
    Picture,
    /// No picture is meant for it any more; it keeps its last one.
    Removed,
    /// A picture was confirmed.
    Confirmed,
    /// A picture will not arrive, as things are.
    Failed,
    /// What it showed, or what was on its way, was lost, or withdrawn to be sent again.
    Lost,
}

/// Why it happened.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) enum HistoryCauseName {
    /// An operation: someone asked for it.
    Operation,
    /// An ordinary change of a record.
    Change,
}

/// The operation that caused an entry.
#[derive(Clone, Serialize, ToSchema)]
pub(crate) struct HistoryOperation {
    /// Its path.
    operation: String,
    /// The trigger that started it.
    trigger: String,
    /// URN of what was asked for.
    scope: String,
    /// Who asked: the token's subject.
    operator: String,
    /// Why.
    reason: String,
    /// Where it stands now.
    state: OperationStateName,
    /// When it was accepted, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    accepted_at: Option<String>,
    /// Of a retry: tracking id of the operation whose failures it handles again.
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_id: Option<String>,
}

/// One entry of a label's history.
#[derive(Serialize, ToSchema)]
pub(crate) struct HistoryEntry {
    /// RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<String>,
    /// What happened.
    event: HistoryEventName,
    /// Why.
    cause: HistoryCauseName,
    /// The operation; absent for ordinary changes, where it is not kept any more or lies outside the token's reach, and
    /// without the scope `operations:read`.
    #[serde(skip_serializing_if = "Option::is_none")]
    operation: Option<HistoryOperation>,
    /// Tracking id of the operation or of the write that caused it.
    #[serde(skip_serializing_if = "Option::is_none")]
    tracking_id: Option<String>,
    /// The service that wrote it.
    #[schema(example = "esl-image-merger")]
    service: String,
    /// SHA-256 of the picture before, hex: of a change, the one that was meant; of a delivery, the one confirmed last.
    #[serde(skip_serializing_if = "Option::is_none")]
    old_digest: Option<String>,
    /// SHA-256 of the picture that the entry is about, hex.
    #[serde(skip_serializing_if = "Option::is_none")]
    new_digest: Option<String>,
    /// What the driver could prove of a confirmed one: `WRITTEN`, `TRANSFERRED` or `DISPLAYED`.
    #[serde(skip_serializing_if = "Option::is_none")]
    evidence: Option<String>,
}

/// A page of a label's history, newest first.
#[derive(Serialize, ToSchema)]
pub(crate) struct LabelHistory {
    /// The entries.
    entries: Vec<HistoryEntry>,
    #[serde(flatten)]
    next: NextPage,
}

/// What happened to a label, newest first: its pictures, and how each delivery ended.
#[utoipa::path(
    get, path = "/v1/tenants/{tenant}/stores/{store}/labels/{label}/history", operation_id = "list_label_history",
    tag = "labels", description = "Kept for a time and for a number of entries that the platform's configuration and \
    documents say. A label that is gone keeps its history as long.",
    security(("operator" = ["labels:read"])),
    params(
        ("tenant" = String, Path, description = "The tenant."),
        ("store" = String, Path, description = "The store."),
        ("label" = String, Path, description = "The label."),
        PageParams
    ),
    responses((status = 200, description = "One page.", body = LabelHistory), ReadProblems)
)]
pub(crate) async fn list_label_history(
    State(gateway): State<Arc<Gateway>>,
    operator: Operator,
    Segments((tenant, store, label)): Segments<(String, String, String)>,
    parameters: Parameters,
) -> Result<Json<LabelHistory>, Problem> {
    let reach = operator.require(OperatorScope::LabelsRead)?;
    let tenant: TenantId = segment("tenant", &tenant)?;
    let store: StoreId = segment("store", &store)?;
    let label: RecordId = segment("label", &label)?;
    reach.store(&tenant, &store)?;
    let page = parameters.page(&[])?;
    let urn = Urn::in_store(&tenant, &store, DtoType::StoreEsl, &label);
    let request =
        ListHistoryRequest { dto_id: urn.to_string(), page_size: page.wire_size(), page_token: page.token.clone() };
    let answer = call(Peer::DtoFlow, gateway.dtoflow().list_history(request)).await?;
    if answer.entries.is_empty() && page.token.is_empty() {
        let found = records::get_many(&gateway, vec![key(DtoType::StoreEsl, &urn)]).await?;
        if !found.iter().any(|dto| dto.exists) {
            return Err(Problem::not_found());
        }
    }
    let operations = operations(&gateway, &operator, &tenant, &answer.entries).await?;
    let entries = answer.entries.into_iter().map(|found| entry(found, &operations)).collect::<Result<_, _>>()?;
    Ok(Json(LabelHistory { entries, next: answer.next_page_token.into() }))
}

/// The operations that entries name, as far as they are kept and the token reaches them.
async fn operations(
    gateway: &Gateway,
    operator: &Operator,
    tenant: &TenantId,
    entries: &[WireEntry],
) -> Result<BTreeMap<String, HistoryOperation>, Problem> {
    // Who asked for what and why is not for those who only read labels.
    let Ok(reach) = operator.require(OperatorScope::OperationsRead) else { return Ok(BTreeMap::new()) };
    let names = entries.iter().filter(|entry| entry.of_operation).map(|entry| entry.tracking_id.clone());
    let found = named(gateway, tenant, names.collect()).await?;
    let shown = found.into_iter().filter(|operation| reached(reach, operation).is_ok());
    shown.map(|operation| Ok((operation.tracking_id.clone(), told(tenant, operation)?))).collect()
}

fn told(tenant: &TenantId, wire: WireOperation) -> Result<HistoryOperation, Problem> {
    let fault = |what: &str| {
        tracing::error!(tracking_id = wire.tracking_id, what, "cqs described an operation that cannot be");
        Problem::from(CallError::Fault)
    };
    let tracking_id = wire.tracking_id.parse().map_err(|_| fault("tracking_id"))?;
    Ok(HistoryOperation {
        operation: operation_path(tenant, &tracking_id),
        state: state(wire.state()).ok_or_else(|| fault("state"))?,
        trigger: wire.trigger,
        scope: wire.scope,
        operator: wire.operator_subject,
        reason: wire.reason,
        accepted_at: wire::time(wire.accepted_at.as_ref()),
        parent_id: Some(wire.parent_tracking_id).filter(|id| !id.is_empty()),
    })
}

fn entry(wire: WireEntry, operations: &BTreeMap<String, HistoryOperation>) -> Result<HistoryEntry, Problem> {
    let event = match wire.event() {
        HistoryEvent::Picture => HistoryEventName::Picture,
        HistoryEvent::Removed => HistoryEventName::Removed,
        HistoryEvent::Confirmed => HistoryEventName::Confirmed,
        HistoryEvent::Failed => HistoryEventName::Failed,
        HistoryEvent::Lost => HistoryEventName::Lost,
        HistoryEvent::Unspecified => {
            tracing::error!("dtoflow told an event that is none");
            return Err(CallError::Fault.into());
        }
    };
    let hex = |digest: &[u8]| (!digest.is_empty()).then(|| domain::hex(digest));
    Ok(HistoryEntry {
        at: wire::time(wire.at.as_ref()),
        event,
        cause: if wire.of_operation { HistoryCauseName::Operation } else { HistoryCauseName::Change },
        operation: operations.get(&wire.tracking_id).filter(|_| wire.of_operation).cloned(),
        service: wire.written_by.strip_prefix("svc:").unwrap_or(&wire.written_by).to_owned(),
        old_digest: hex(&wire.old_digest),
        new_digest: hex(&wire.new_digest),
        evidence: enum_text("EVIDENCE_", wire.evidence().as_str_name()),
        tracking_id: Some(wire.tracking_id).filter(|id| !id.is_empty()),
    })
}
