//! `/v1/triggers/touch`

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use axum::{
    Json,
    body::Bytes,
    extract::{Request, State},
};
use domain::{DtoType, ErrorCode, OperatorScope, Reason, Refusal, TrackingId, Urn, limits::TOUCH_MAX};
use proto::dtoflow::v1::{GetKey, TouchDtoRequest};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::records;
use crate::{
    audit::{Attempt, AuditedBy, Failure},
    auth::Operator,
    backend::{CallError, Peer, call},
    body::{self, Object},
    problem::{Problem, TriggerProblems},
    state::Gateway,
};

/// Longest body, in bytes: [`TOUCH_MAX`] records of the longest ids, a reason, and white space.
const BODY_MAX_BYTES: usize = 384 * 1024;

/// One record, by type and URN.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TouchRecord {
    /// Its type.
    #[schema(example = "eccmodel.v1")]
    dto_type: String,
    /// Its URN.
    #[schema(example = "t/demo/s/berlin/eccmodels/standard")]
    dto_id: String,
}

/// Announces records again without changing them.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TouchRequest {
    /// 1 to 1,000 records, all of one tenant, none twice.
    #[schema(value_type = Vec<TouchRecord>, min_items = 1, max_items = 1_000)]
    records: Vec<Object<TouchRecord>>,
    /// Why, 1 to 500 characters without control characters. Stands in the audit log.
    #[schema(min_length = 1, max_length = 500)]
    reason: String,
    /// Goes along to whatever the announcement causes; must not be an operation's.
    #[schema(pattern = "^[A-Za-z0-9._:-]{1,128}$")]
    tracking_id: String,
    /// True: count only. Never assumed.
    dry_run: bool,
}

/// What was, or would be, touched.
#[derive(Serialize, ToSchema)]
pub(crate) struct TouchAnswer {
    /// As the request named it.
    tracking_id: String,
    /// As the request said.
    dry_run: bool,
    /// Records announced again; 0 for a dry run.
    touched: i64,
    /// Records that a dry run found; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    would_touch: Option<i64>,
    /// URNs that name no record.
    missing: Vec<String>,
}

/// The request once every field is valid.
struct Asked {
    /// By type, because one call touches records of one type.
    by_type: BTreeMap<DtoType, Vec<Urn>>,
    reason: Reason,
    tracking_id: TrackingId,
    dry_run: bool,
}

/// Announce records again, for one hop.
#[utoipa::path(
    post, path = "/v1/triggers/touch", operation_id = "touch_records", tag = "triggers",
    security(("operator" = ["trigger:touch"])),
    request_body(
        content = TouchRequest,
        description = "At most 384 KiB, which is 1,000 records of the longest names.",
        example = json!({
            "records": [{"dto_type": "eccmodel.v1", "dto_id": "t/demo/s/berlin/eccmodels/standard"}],
            "reason": "CHG-119: announce the model again", "tracking_id": "CHG-119", "dry_run": true
        })
    ),
    responses((status = 200, description = "Done (or counted), with what does not exist.", body = TouchAnswer), TriggerProblems)
)]
pub(crate) async fn touch_records(
    State(gateway): State<Arc<Gateway>>,
    operator: Operator,
    request: Request,
) -> Result<Json<TouchAnswer>, Problem> {
    let mut attempt = Attempt::new(&gateway, "touch", operator.subject());
    match touch(&gateway, &operator, request, &mut attempt).await {
        Ok(answer) => Ok(Json(answer)),
        Err(failure) => {
            attempt.refused(&failure).await;
            Err(failure.problem)
        }
    }
}

async fn touch(
    gateway: &Gateway,
    operator: &Operator,
    request: Request,
    attempt: &mut Attempt,
) -> Result<TouchAnswer, Failure> {
    let bytes = body::read_up_to(request, BODY_MAX_BYTES).await?;
    let asked = asked(operator, &bytes, attempt)?;
    if let Some(tenant) = &attempt.tenant {
        gateway.rates.tenant_action(tenant)?;
    }
    if asked.dry_run { count(gateway, &asked).await } else { announce(gateway, operator, &asked, attempt).await }
}

fn asked(operator: &Operator, bytes: &Bytes, attempt: &mut Attempt) -> Result<Asked, Problem> {
    attempt.body(bytes);
    let parsed = body::parse::<TouchRequest>(bytes);
    if let Ok(request) = &parsed {
        attempt.tracking_id = request.tracking_id.parse().ok();
        attempt.reason = request.reason.parse().ok();
        let first = request.records.first().and_then(|Object(record)| record.dto_id.parse::<Urn>().ok());
        attempt.tenant = first.map(|urn| urn.tenant().clone()).filter(|tenant| operator.knows(tenant));
    }
    let reach = operator.require(OperatorScope::TriggerTouch)?;
    let request = parsed?;
    let reason = proto::parse_field("reason", &request.reason)?;
    let tracking_id = proto::parse_field("tracking_id", &request.tracking_id)?;
    if request.records.is_empty() || request.records.len() > TOUCH_MAX {
        return Err(Refusal::field("records", format!("must name 1 to {TOUCH_MAX} records")).into());
    }
    let mut seen = BTreeSet::new();
    let mut by_type: BTreeMap<DtoType, Vec<Urn>> = BTreeMap::new();
    for (index, Object(record)) in request.records.iter().enumerate() {
        let field = format!("records[{index}].dto_id");
        let dto_type: DtoType = proto::parse_field(&format!("records[{index}].dto_type"), &record.dto_type)?;
        let urn = Urn::record(dto_type, &record.dto_id).map_err(|error| Refusal::field(&field, error))?;
        reach.record(&urn).map_err(|problem| problem.about(&field))?;
        if seen.first().is_some_and(|first: &Urn| first.tenant() != urn.tenant()) {
            return Err(Refusal::field(field, "is of another tenant than the records before").into());
        }
        if !seen.insert(urn.clone()) {
            return Err(Refusal::field(field, "is named twice").into());
        }
        by_type.entry(dto_type).or_default().push(urn);
    }
    Ok(Asked { by_type, reason, tracking_id, dry_run: request.dry_run })
}

async fn count(gateway: &Gateway, asked: &Asked) -> Result<TouchAnswer, Failure> {
    // A version nobody has yet: existence is answered without payloads.
    let keys: Vec<GetKey> = asked
        .by_type
        .iter()
        .flat_map(|(dto_type, urns)| urns.iter().map(|urn| records::key_known(*dto_type, urn, i64::MAX)))
        .collect();
    let urns: Vec<String> = keys.iter().map(|key| key.dto_id.clone()).collect();
    let found = records::get_many(gateway, keys).await.map_err(Problem::from)?;
    let missing: Vec<String> =
        urns.into_iter().zip(&found).filter(|(_, dto)| !dto.exists).map(|(urn, _)| urn).collect();
    let existing = found.iter().filter(|dto| dto.exists).count();
    Ok(TouchAnswer {
        tracking_id: asked.tracking_id.to_string(),
        dry_run: true,
        touched: 0,
        would_touch: i64::try_from(existing).ok(),
        missing,
    })
}

async fn announce(
    gateway: &Gateway,
    operator: &Operator,
    asked: &Asked,
    attempt: &Attempt,
) -> Result<TouchAnswer, Failure> {
    let mut touched = 0_i64;
    let mut missing = Vec::new();
    for (dto_type, urns) in &asked.by_type {
        let mut dtoflow = gateway.dtoflow();
        let request = TouchDtoRequest {
            dto_type: dto_type.to_string(),
            dto_id: urns.iter().map(ToString::to_string).collect(),
            reason: asked.reason.to_string(),
            tracking_id: asked.tracking_id.to_string(),
            sla_timestamp: None,
            operator_subject: operator.subject().to_string(),
        };
        match call(Peer::DtoFlow, dtoflow.touch_dto(request)).await {
            Ok(answer) => {
                touched += i64::from(answer.touched);
                missing.extend(answer.missing);
            }
            Err(error) => {
                if touched > 0 {
                    attempt.accepted(format!("in part: {touched} records touched, then a call failed")).await;
                }
                return Err(failure(error, touched));
            }
        }
    }
    attempt.accepted(format!("{touched} records touched, {} missing", missing.len())).await;
    tracing::info!(
        tracking_id = %asked.tracking_id, operator = %operator.subject(), touched, missing = missing.len(),
        reason = %asked.reason, "touched"
    );
    let tracking_id = asked.tracking_id.to_string();
    Ok(TouchAnswer { tracking_id, dry_run: false, touched, would_touch: None, missing })
}

/// DTOflow keeps no audit log, so its refusals are ours to write down; once records were touched there is a row already.
fn failure(error: CallError, touched: i64) -> Failure {
    let audited_by = match &error {
        CallError::NoAnswer(_) => AuditedBy::Nobody,
        _ if touched > 0 => AuditedBy::Nobody,
        _ => AuditedBy::Gateway,
    };
    if let CallError::Refused(refusal) = &error
        && refusal.code == ErrorCode::PermissionDenied
        && refusal.field == "tracking_id"
    {
        // An operation's id is the operation's alone; for the operator this is a conflict, not a lack of permission.
        let conflict = Refusal::new(ErrorCode::AlreadyExists, "names an operation; a touch needs an id of its own");
        return Failure { problem: conflict.at("tracking_id").into(), audited_by };
    }
    let advice = if touched > 0 {
        format!("{touched} records were touched before; touching twice does no harm: repeat with the same tracking_id")
    } else {
        "repeat with the same tracking_id".to_owned()
    };
    Failure { problem: error.problem(&advice), audited_by }
}
