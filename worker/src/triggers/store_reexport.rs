//! `TriggerStoreReexport`: the picture of every label of a store is sent again.

use domain::{DtoType, Refusal, TenantId, Trigger};
use proto::hardware_exporter::v1::{TriggerStoreReexportRequest, TriggerStoreReexportResponse};

use super::ask::{Aim, Answer, Common, TriggerRequest, answer_to_wire, common};

impl TriggerRequest for TriggerStoreReexportRequest {
    type Response = TriggerStoreReexportResponse;
    const TRIGGER: Trigger = Trigger::StoreReexport;
    const RPC: &'static str = "hardware_exporter.v1.HardwareExporterTriggers/TriggerStoreReexport";

    fn common(&self) -> Common<'_> {
        common!(self)
    }

    fn aim(&self, tenant: &TenantId) -> Result<Aim, Refusal> {
        Aim::whole_store(tenant, &self.store_id, DtoType::EslImage)
    }

    fn response(answer: Answer) -> TriggerStoreReexportResponse {
        answer_to_wire!(TriggerStoreReexportResponse, answer, {})
    }
}
