//! `TriggerEccStoreRerender`: every label of a store that is linked to an ECC model is rendered again.

use domain::{DtoType, Refusal, TenantId, Trigger};
use proto::ecc_image_render::v1::{TriggerEccStoreRerenderRequest, TriggerEccStoreRerenderResponse};

use super::ask::{Aim, Answer, Common, TriggerRequest, answer_to_wire, common};

impl TriggerRequest for TriggerEccStoreRerenderRequest {
    type Response = TriggerEccStoreRerenderResponse;
    const TRIGGER: Trigger = Trigger::EccStoreRerender;
    const RPC: &'static str = "ecc_image_render.v1.EccImageRenderTriggers/TriggerEccStoreRerender";

    fn common(&self) -> Common<'_> {
        common!(self)
    }

    fn aim(&self, tenant: &TenantId) -> Result<Aim, Refusal> {
        Aim::whole_store(tenant, &self.store_id, DtoType::EccLink)
    }

    fn response(answer: Answer) -> TriggerEccStoreRerenderResponse {
        answer_to_wire!(TriggerEccStoreRerenderResponse, answer, {})
    }
}
