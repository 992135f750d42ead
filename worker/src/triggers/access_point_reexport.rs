//! `TriggerAccessPointReexport`: the picture of every label of an access point is sent again.

use domain::{AliasName, DtoType, ParentShape, RecordId, Refusal, StoreId, TenantId, Trigger, Urn};
use proto::{
    hardware_exporter::v1::{TriggerAccessPointReexportRequest, TriggerAccessPointReexportResponse},
    parse_field,
};

use super::ask::{Aim, Answer, Common, Exists, TriggerRequest, answer_to_wire, common};

impl TriggerRequest for TriggerAccessPointReexportRequest {
    type Response = TriggerAccessPointReexportResponse;
    const TRIGGER: Trigger = Trigger::AccessPointReexport;
    const RPC: &'static str = "hardware_exporter.v1.HardwareExporterTriggers/TriggerAccessPointReexport";

    fn common(&self) -> Common<'_> {
        common!(self)
    }

    fn aim(&self, tenant: &TenantId) -> Result<Aim, Refusal> {
        let store: StoreId = parse_field("store_id", &self.store_id)?;
        let access_point: RecordId = parse_field("access_point_id", &self.access_point_id)?;
        Ok(Aim {
            scope: Urn::in_store(tenant, &store, DtoType::AccessPoint, &access_point),
            shape: ParentShape { dto_type: DtoType::StoreEsl, alias: Some(AliasName::ByAccessPoint) },
            links: AliasName::ByAccessPoint,
            exists: Exists::Record(DtoType::AccessPoint),
            field: "access_point_id",
        })
    }

    fn response(answer: Answer) -> TriggerAccessPointReexportResponse {
        answer_to_wire!(TriggerAccessPointReexportResponse, answer, {})
    }
}
