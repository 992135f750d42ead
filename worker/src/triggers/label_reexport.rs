//! `TriggerLabelReexport`: the picture of one label is sent again.

use domain::{AliasName, DtoType, ParentShape, RecordId, Refusal, StoreId, TenantId, Trigger, Urn};
use proto::{
    hardware_exporter::v1::{TriggerLabelReexportRequest, TriggerLabelReexportResponse},
    parse_field,
};

use super::ask::{Aim, Answer, Common, Exists, TriggerRequest, answer_to_wire, common};

impl TriggerRequest for TriggerLabelReexportRequest {
    type Response = TriggerLabelReexportResponse;
    const TRIGGER: Trigger = Trigger::LabelReexport;
    const RPC: &'static str = "hardware_exporter.v1.HardwareExporterTriggers/TriggerLabelReexport";

    fn common(&self) -> Common<'_> {
        common!(self)
    }

    fn aim(&self, tenant: &TenantId) -> Result<Aim, Refusal> {
        let store: StoreId = parse_field("store_id", &self.store_id)?;
        let label: RecordId = parse_field("label_id", &self.label_id)?;
        Ok(Aim {
            scope: Urn::in_store(tenant, &store, DtoType::StoreEsl, &label),
            shape: ParentShape { dto_type: DtoType::EslImage, alias: Some(AliasName::ByStoreEsl) },
            links: AliasName::ByStoreEsl,
            exists: Exists::Record(DtoType::StoreEsl),
            field: "label_id",
        })
    }

    fn response(answer: Answer) -> TriggerLabelReexportResponse {
        answer_to_wire!(TriggerLabelReexportResponse, answer, {})
    }
}
