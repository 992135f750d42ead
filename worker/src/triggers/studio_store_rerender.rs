//! `TriggerStudioStoreRerender`: every label of a store that is linked to a design is rendered again.

use domain::{DtoType, Refusal, TenantId, Trigger};
use proto::studio_renderer::v1::{TriggerStudioStoreRerenderRequest, TriggerStudioStoreRerenderResponse};

use super::ask::{Aim, Answer, Common, TriggerRequest, answer_to_wire, common};

impl TriggerRequest for TriggerStudioStoreRerenderRequest {
    type Response = TriggerStudioStoreRerenderResponse;
    const TRIGGER: Trigger = Trigger::StudioStoreRerender;
    const RPC: &'static str = "studio_renderer.v1.StudioRendererTriggers/TriggerStudioStoreRerender";

    fn common(&self) -> Common<'_> {
        common!(self)
    }

    fn aim(&self, tenant: &TenantId) -> Result<Aim, Refusal> {
        Aim::whole_store(tenant, &self.store_id, DtoType::StudioLink)
    }

    fn response(answer: Answer) -> TriggerStudioStoreRerenderResponse {
        answer_to_wire!(TriggerStudioStoreRerenderResponse, answer, {})
    }
}
