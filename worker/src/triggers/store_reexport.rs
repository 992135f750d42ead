//! `TriggerStoreReexport`: the picture of every label of a store is sent again.

use domain::{AliasName, DtoType, ParentShape, Refusal, StoreId, TenantId, Trigger, Urn};
use proto::{
    hardware_exporter::v1::{TriggerStoreReexportRequest, TriggerStoreReexportResponse},
    parse_field,
};

use super::ask::{Aim, Answer, Common, Exists, TriggerRequest, common};

impl TriggerRequest for TriggerStoreReexportRequest {
    type Response = TriggerStoreReexportResponse;
    const TRIGGER: Trigger = Trigger::StoreReexport;
    const RPC: &'static str = "hardware_exporter.v1.HardwareExporterTriggers/TriggerStoreReexport";

    fn common(&self) -> Common<'_> {
        common!(self, (0, ""))
    }

    fn aim(&self, tenant: &TenantId) -> Result<Aim, Refusal> {
        let store: StoreId = parse_field("store_id", &self.store_id)?;
        Ok(Aim {
            scope: Urn::Store(tenant.clone(), store),
            shape: ParentShape { dto_type: DtoType::EslImage, alias: Some(AliasName::ByStore) },
            links: AliasName::ByStore,
            exists: Exists::AnyLabel,
            field: "store_id",
        })
    }

    fn response(answer: Answer) -> TriggerStoreReexportResponse {
        TriggerStoreReexportResponse {
            items_enqueued: answer.items_enqueued,
            labels: answer.labels,
            sample_label_ids: answer.sample_label_ids,
            replayed: answer.replayed,
            sla_timestamp: answer.sla_timestamp,
            accepted_at: answer.accepted_at,
        }
    }
}
