//! `PutMany` and `DeleteMany`.

use std::collections::HashMap;

use cqs::announce::WriteAuthority;
use daemon::identity::{Caller, caller};
use domain::{
    DtoType, ErrorCode, Refusal, TenantId, Timestamp, Urn,
    limits::{PAYLOAD_MAX_BYTES, RECORDS_PER_CALL_MAX},
    sla_clamp,
};
use prost::bytes::Bytes;
use proto::{dtoflow::v1 as wire, lease_from_wire, parse_field, timestamp_from_wire};
use tonic::Request;

use super::DtoFlowServer;
use crate::{
    alias::AliasRules,
    limits::INPUTS_MAX,
    model::{Change, Content, Input, WriteBatch, WriteDone, WriteStatus},
    record::Record,
};

const PUT: &str = "dtoflow.v1.DtoFlowService/PutMany";
const DELETE: &str = "dtoflow.v1.DtoFlowService/DeleteMany";

type Result<T> = std::result::Result<T, Refusal>;

/// What both verbs carry per record.
struct Item {
    dto_type: String,
    dto_id: String,
    payload: Option<Bytes>,
    inputs: Vec<wire::InputVersion>,
    sla_timestamp: Option<prost_types::Timestamp>,
    tracking_id: String,
}

impl DtoFlowServer {
    pub(super) async fn put(&self, request: Request<wire::PutManyRequest>) -> Result<wire::WriteManyResponse> {
        let caller = caller(&request)?;
        caller.require_rpc(PUT)?;
        let request = request.into_inner();
        let items = request.items.into_iter().map(|item| Item {
            dto_type: item.dto_type,
            dto_id: item.dto_id,
            payload: Some(item.payload),
            inputs: item.inputs,
            sla_timestamp: item.sla_timestamp,
            tracking_id: item.tracking_id,
        });
        let batch = batch(&caller, request.lease, items, self.parts.clock.now())?;
        self.write(PUT, batch).await
    }

    pub(super) async fn delete(&self, request: Request<wire::DeleteManyRequest>) -> Result<wire::WriteManyResponse> {
        let caller = caller(&request)?;
        caller.require_rpc(DELETE)?;
        let request = request.into_inner();
        let items = request.items.into_iter().map(|item| Item {
            dto_type: item.dto_type,
            dto_id: item.dto_id,
            payload: None,
            inputs: item.inputs,
            sla_timestamp: item.sla_timestamp,
            tracking_id: item.tracking_id,
        });
        let batch = batch(&caller, request.lease, items, self.parts.clock.now())?;
        self.write(DELETE, batch).await
    }

    async fn write(&self, rpc: &'static str, batch: WriteBatch) -> Result<wire::WriteManyResponse> {
        let now = self.parts.clock.now();
        let (tenant, writer) = (batch.tenant.clone(), batch.writer);
        let done = self
            .carry_out(rpc, move |store| async move {
                let WriteDone { results, woken } = store.record_write(batch, now).await?;
                Ok((results, woken))
            })
            .await?;
        let written = done.iter().filter(|result| result.status == WriteStatus::Written).count();
        tracing::debug!(rpc, %tenant, %writer, records = done.len(), written, "records written");
        let results = done
            .into_iter()
            .map(|result| wire::WriteResult {
                status: match result.status {
                    WriteStatus::Written => wire::WriteStatus::Written,
                    WriteStatus::Unchanged => wire::WriteStatus::Unchanged,
                    WriteStatus::InputChanged => wire::WriteStatus::InputChanged,
                }
                .into(),
                version: result.version,
            })
            .collect();
        Ok(wire::WriteManyResponse { results })
    }
}

/// Worker services write under a lease of their own queue, the others without one.
fn authority(caller: &Caller, lease: Option<wire::WriteLease>) -> Result<WriteAuthority> {
    match (caller.queue(), lease) {
        (Some(_), Some(lease)) => {
            let lease = lease_from_wire(&lease.queue_name, lease.generation).map_err(|mut refusal| {
                // The message calls the generation by its own name.
                refusal.field = match refusal.field.as_str() {
                    "lease_generation" => "lease.generation".to_owned(),
                    field => format!("lease.{field}"),
                };
                refusal
            })?;
            caller.require_queue(&lease.queue).map_err(|refusal| refusal.at("lease.queue_name"))?;
            Ok(WriteAuthority::Lease(lease))
        }
        (Some(_), None) => Err(Refusal::field("lease", "is required for a service with a queue")),
        (None, Some(_)) => Err(Refusal::field("lease", "must be absent for a service without a queue")),
        (None, None) => Ok(WriteAuthority::Unleased),
    }
}

fn batch(
    caller: &Caller,
    lease: Option<wire::WriteLease>,
    items: impl ExactSizeIterator<Item = Item>,
    now: Timestamp,
) -> Result<WriteBatch> {
    let authority = authority(caller, lease)?;
    if items.len() == 0 || items.len() > RECORDS_PER_CALL_MAX {
        return Err(Refusal::field("items", format!("must have 1 to {RECORDS_PER_CALL_MAX} entries")));
    }
    let mut tenant: Option<TenantId> = None;
    let mut seen: HashMap<Urn, usize> = HashMap::with_capacity(items.len());
    let mut changes = Vec::with_capacity(items.len());
    for (index, item) in items.enumerate() {
        let field = format!("items[{index}]");
        let change = change(caller, &field, item, now)?;
        let tenant = tenant.get_or_insert_with(|| change.urn.tenant().clone());
        if change.urn.tenant() != tenant {
            return Err(Refusal::field(format!("{field}.dto_id"), "lies under another tenant than items[0]"));
        }
        if let Some(first) = seen.insert(change.urn.clone(), index) {
            return Err(Refusal::field(format!("{field}.dto_id"), format!("is the same record as items[{first}]")));
        }
        changes.push(change);
    }
    let tenant = tenant.ok_or_else(|| Refusal::field("items", "is required"))?;
    Ok(WriteBatch { tenant, writer: caller.identity(), authority, changes })
}

fn change(caller: &Caller, field: &str, item: Item, now: Timestamp) -> Result<Change> {
    let dto_type: DtoType = parse_field(&format!("{field}.dto_type"), &item.dto_type)?;
    if !caller.may_write(dto_type) {
        let message = format!("{} may not write {dto_type}", caller.identity());
        return Err(Refusal::new(ErrorCode::PermissionDenied, message).at(format!("{field}.dto_type")));
    }
    let urn = record_urn(&format!("{field}.dto_id"), dto_type, &item.dto_id)?;
    let inputs = inputs(field, urn.tenant(), &item.inputs)?;
    let sla = item.sla_timestamp.map(|sla| timestamp_from_wire(&format!("{field}.sla_timestamp"), &sla)).transpose()?;
    let tracking_id = match item.tracking_id.as_str() {
        "" => None,
        text => Some(parse_field(&format!("{field}.tracking_id"), text)?),
    };
    let content = match item.payload {
        Some(payload) => content(&format!("{field}.payload"), dto_type, &urn, payload)?,
        None => Content::Delete,
    };
    Ok(Change { dto_type, urn, content, inputs, sla: sla_clamp(sla, now), tracking_id })
}

fn content(field: &str, dto_type: DtoType, urn: &Urn, payload: Bytes) -> Result<Content> {
    if payload.len() > PAYLOAD_MAX_BYTES {
        let message = format!("must be at most {PAYLOAD_MAX_BYTES} bytes");
        return Err(Refusal::new(ErrorCode::PayloadTooLarge, message).at(field));
    }
    let record = Record::decode(dto_type, &payload).map_err(|fault| Refusal::field(field, fault))?;
    Ok(Content::Put { aliases: AliasRules::CURRENT.aliases(dto_type, urn, &record), payload })
}

fn inputs(field: &str, tenant: &TenantId, inputs: &[wire::InputVersion]) -> Result<Vec<Input>> {
    if inputs.len() > INPUTS_MAX {
        return Err(Refusal::field(format!("{field}.inputs"), format!("must have at most {INPUTS_MAX} entries")));
    }
    inputs
        .iter()
        .enumerate()
        .map(|(index, input)| {
            let field = format!("{field}.inputs[{index}]");
            let dto_type = parse_field(&format!("{field}.dto_type"), &input.dto_type)?;
            let urn = record_urn(&format!("{field}.dto_id"), dto_type, &input.dto_id)?;
            if urn.tenant() != tenant {
                return Err(Refusal::field(format!("{field}.dto_id"), "lies under another tenant than the record"));
            }
            if input.version < 0 {
                return Err(Refusal::field(format!("{field}.version"), "must not be negative"));
            }
            Ok(Input { urn, version: input.version })
        })
        .collect()
}

/// The URN of a record of that type.
pub(super) fn record_urn(field: &str, dto_type: DtoType, text: &str) -> Result<Urn> {
    if text.is_empty() {
        return Err(Refusal::field(field, "is required"));
    }
    Urn::record(dto_type, text).map_err(|error| Refusal::field(field, error))
}
