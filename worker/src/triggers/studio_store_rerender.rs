//! `TriggerStudioStoreRerender`: every label of a store that is linked to a design is rendered again.

use domain::{AliasName, DtoType, ParentShape, Refusal, StoreId, TenantId, Trigger, Urn};
use proto::{
    parse_field,
    studio_renderer::v1::{TriggerStudioStoreRerenderRequest, TriggerStudioStoreRerenderResponse},
};

use super::ask::{Aim, Answer, Common, Exists, TriggerRequest, common};

impl TriggerRequest for TriggerStudioStoreRerenderRequest {
    type Response = TriggerStudioStoreRerenderResponse;
    const TRIGGER: Trigger = Trigger::StudioStoreRerender;
    const RPC: &'static str = "studio_renderer.v1.StudioRendererTriggers/TriggerStudioStoreRerender";

    fn common(&self) -> Common<'_> {
        common!(self, (0, ""))
    }

    fn aim(&self, tenant: &TenantId) -> Result<Aim, Refusal> {
        let store: StoreId = parse_field("store_id", &self.store_id)?;
        Ok(Aim {
            scope: Urn::Store(tenant.clone(), store),
            shape: ParentShape { dto_type: DtoType::StudioLink, alias: Some(AliasName::ByStore) },
            links: AliasName::ByStore,
            exists: Exists::AnyLabel,
            field: "store_id",
        })
    }

    fn response(answer: Answer) -> TriggerStudioStoreRerenderResponse {
        TriggerStudioStoreRerenderResponse {
            items_enqueued: answer.items_enqueued,
            labels: answer.labels,
            sample_label_ids: answer.sample_label_ids,
            replayed: answer.replayed,
            sla_timestamp: answer.sla_timestamp,
            accepted_at: answer.accepted_at,
        }
    }
}
