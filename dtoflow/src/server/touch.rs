//! `TouchDto`: announces records again for one hop.

use std::collections::HashMap;

use daemon::identity::caller;
use domain::{DtoType, OperatorSubject, Reason, Refusal, TrackingId, Urn, limits::TOUCH_MAX, sla_clamp};
use proto::{dtoflow::v1 as wire, parse_field, timestamp_from_wire};
use tonic::Request;

use super::{DtoFlowServer, write::record_urn};
use crate::model::{Touch, TouchDone};

const TOUCH: &str = "dtoflow.v1.DtoFlowService/TouchDto";

type Result<T> = std::result::Result<T, Refusal>;

impl DtoFlowServer {
    pub(super) async fn touch(&self, request: Request<wire::TouchDtoRequest>) -> Result<wire::TouchDtoResponse> {
        let caller = caller(&request)?;
        // Only the registry says who may touch: the gateway, which checked the operator, and the exporter after a reset.
        caller.require_rpc(TOUCH)?;
        let request = request.into_inner();
        let now = self.parts.clock.now();
        let dto_type: DtoType = parse_field("dto_type", &request.dto_type)?;
        let urns = urns(dto_type, &request.dto_id)?;
        let reason: Reason = parse_field("reason", &request.reason)?;
        let tracking_id: TrackingId = parse_field("tracking_id", &request.tracking_id)?;
        let sla = request.sla_timestamp.map(|sla| timestamp_from_wire("sla_timestamp", &sla)).transpose()?;
        let operator: Option<OperatorSubject> = match request.operator_subject.as_str() {
            "" => None,
            text => Some(parse_field("operator_subject", text)?),
        };
        let tenant = match urns.first() {
            Some(urn) => urn.tenant().clone(),
            None => return Err(Refusal::field("dto_id", "is required")),
        };
        let touch = Touch {
            tenant: tenant.clone(),
            dto_type,
            urns: urns.clone(),
            sla: sla_clamp(sla, now),
            tracking_id: tracking_id.clone(),
        };
        let touched = self
            .carry_out(TOUCH, move |store| async move {
                let TouchDone { touched, woken } = store.record_touch(touch, now).await?;
                Ok((touched, woken))
            })
            .await?;
        let missing: Vec<String> =
            urns.iter().zip(&touched).filter(|(_, touched)| !**touched).map(|(urn, _)| urn.to_string()).collect();
        let touched = touched.iter().filter(|touched| **touched).count();
        tracing::info!(
            %tracking_id,
            reason = reason.as_str(),
            operator = operator.as_ref().map(OperatorSubject::as_str),
            caller = %caller.identity(),
            %tenant,
            %dto_type,
            touched,
            missing = missing.len(),
            "records touched"
        );
        Ok(wire::TouchDtoResponse { touched: i32::try_from(touched).unwrap_or(i32::MAX), missing })
    }
}

fn urns(dto_type: DtoType, texts: &[String]) -> Result<Vec<Urn>> {
    if texts.is_empty() || texts.len() > TOUCH_MAX {
        return Err(Refusal::field("dto_id", format!("must have 1 to {TOUCH_MAX} entries")));
    }
    let mut seen: HashMap<Urn, usize> = HashMap::with_capacity(texts.len());
    let mut urns: Vec<Urn> = Vec::with_capacity(texts.len());
    for (index, text) in texts.iter().enumerate() {
        let field = format!("dto_id[{index}]");
        let urn = record_urn(&field, dto_type, text)?;
        if urns.first().is_some_and(|first| first.tenant() != urn.tenant()) {
            return Err(Refusal::field(field, "lies under another tenant than dto_id[0]"));
        }
        if let Some(first) = seen.insert(urn.clone(), index) {
            return Err(Refusal::field(field, format!("is the same record as dto_id[{first}]")));
        }
        urns.push(urn);
    }
    Ok(urns)
}
