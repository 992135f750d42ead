//! `GetMany`.

use daemon::identity::caller;
use domain::{Refusal, TenantId, limits::RECORDS_PER_CALL_MAX};
use proto::{dtoflow::v1 as wire, parse_field, timestamp_to_wire};
use tonic::Request;

use super::{DtoFlowServer, write::record_urn};
use crate::model::{ReadBatch, ReadKey, Stored};

const GET: &str = "dtoflow.v1.DtoFlowService/GetMany";

type Result<T> = std::result::Result<T, Refusal>;

impl DtoFlowServer {
    pub(super) async fn get(&self, request: Request<wire::GetManyRequest>) -> Result<wire::GetManyResponse> {
        caller(&request)?.require_rpc(GET)?;
        let batch = batch(&request.into_inner().keys)?;
        let found = self.store.record_read(batch).await.map_err(|error| error.into_refusal(GET))?;
        Ok(wire::GetManyResponse { dtos: found.into_iter().map(dto).collect() })
    }
}

fn batch(keys: &[wire::GetKey]) -> Result<ReadBatch> {
    if keys.is_empty() || keys.len() > RECORDS_PER_CALL_MAX {
        return Err(Refusal::field("keys", format!("must have 1 to {RECORDS_PER_CALL_MAX} entries")));
    }
    let mut tenant: Option<TenantId> = None;
    let mut read = Vec::with_capacity(keys.len());
    for (index, key) in keys.iter().enumerate() {
        let field = format!("keys[{index}]");
        let dto_type = parse_field(&format!("{field}.dto_type"), &key.dto_type)?;
        let urn = record_urn(&format!("{field}.dto_id"), dto_type, &key.dto_id)?;
        if key.known_version < 0 {
            return Err(Refusal::field(format!("{field}.known_version"), "must not be negative"));
        }
        if urn.tenant() != tenant.get_or_insert_with(|| urn.tenant().clone()) {
            return Err(Refusal::field(format!("{field}.dto_id"), "lies under another tenant than keys[0]"));
        }
        read.push(ReadKey { urn, known_version: key.known_version });
    }
    let tenant = tenant.ok_or_else(|| Refusal::field("keys", "is required"))?;
    Ok(ReadBatch { tenant, keys: read })
}

fn dto(found: Option<Stored>) -> wire::Dto {
    let Some(stored) = found else { return wire::Dto::default() };
    wire::Dto {
        exists: true,
        version: stored.version,
        payload: stored.payload.unwrap_or_default(),
        updated_at: Some(timestamp_to_wire(stored.updated_at)),
        written_by: stored.written_by.to_string(),
        tracking_id: stored.tracking_id.map(|id| id.to_string()).unwrap_or_default(),
    }
}
