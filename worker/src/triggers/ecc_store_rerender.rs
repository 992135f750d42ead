//! `TriggerEccStoreRerender`: every label of a store that is linked to an ECC model is rendered again.

use domain::{AliasName, DtoType, ParentShape, Refusal, StoreId, TenantId, Trigger, Urn};
use proto::{
    ecc_image_render::v1::{TriggerEccStoreRerenderRequest, TriggerEccStoreRerenderResponse},
    parse_field,
};

use super::ask::{Aim, Answer, Common, Exists, TriggerRequest, common};

impl TriggerRequest for TriggerEccStoreRerenderRequest {
    type Response = TriggerEccStoreRerenderResponse;
    const TRIGGER: Trigger = Trigger::EccStoreRerender;
    const RPC: &'static str = "ecc_image_render.v1.EccImageRenderTriggers/TriggerEccStoreRerender";

    fn common(&self) -> Common<'_> {
        common!(self, (0, ""))
    }

    fn aim(&self, tenant: &TenantId) -> Result<Aim, Refusal> {
        let store: StoreId = parse_field("store_id", &self.store_id)?;
        Ok(Aim {
            scope: Urn::Store(tenant.clone(), store),
            shape: ParentShape { dto_type: DtoType::EccLink, alias: Some(AliasName::ByStore) },
            links: AliasName::ByStore,
            exists: Exists::AnyLabel,
            field: "store_id",
        })
    }

    fn response(answer: Answer) -> TriggerEccStoreRerenderResponse {
        TriggerEccStoreRerenderResponse {
            items_enqueued: answer.items_enqueued,
            labels: answer.labels,
            sample_label_ids: answer.sample_label_ids,
            replayed: answer.replayed,
            sla_timestamp: answer.sla_timestamp,
            accepted_at: answer.accepted_at,
        }
    }
}
