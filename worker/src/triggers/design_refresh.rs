//! `TriggerDesignRefresh`: every label linked to one design is rendered again, in all stores of its tenant.
//!
//! One parent, whatever the size: it splits by store, each store's by label. A dry run answers the counts of a page of
//! stores from the alias index, without touching the links.

use domain::{AliasName, DtoType, ParentShape, RecordId, Refusal, TenantId, Trigger, Urn};
use proto::{
    parse_field,
    studio_renderer::v1::{StoreLabels, TriggerDesignRefreshRequest, TriggerDesignRefreshResponse},
};

use super::ask::{Aim, Answer, Common, Exists, TriggerRequest, answer_to_wire, common};

impl TriggerRequest for TriggerDesignRefreshRequest {
    type Response = TriggerDesignRefreshResponse;
    const TRIGGER: Trigger = Trigger::DesignRefresh;
    const RPC: &'static str = "studio_renderer.v1.StudioRendererTriggers/TriggerDesignRefresh";

    fn common(&self) -> Common<'_> {
        common!(self, (self.page_size, &self.page_token))
    }

    fn aim(&self, tenant: &TenantId) -> Result<Aim, Refusal> {
        let design: RecordId = parse_field("design_id", &self.design_id)?;
        Ok(Aim {
            scope: Urn::in_tenant(tenant, DtoType::Design, &design),
            // The tenant's parent itself says that it is a design's.
            shape: ParentShape { dto_type: DtoType::StudioLink, alias: None },
            links: AliasName::ByDesign,
            exists: Exists::Record(DtoType::Design),
            field: "design_id",
        })
    }

    fn response(answer: Answer) -> TriggerDesignRefreshResponse {
        answer_to_wire!(TriggerDesignRefreshResponse, answer, {
            stores: answer.stores.into_iter().map(|(store_id, labels)| StoreLabels { store_id, labels }).collect(),
            next_page_token: answer.next_page_token,
            store_count: answer.store_count,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::triggers::ask::Ask;

    fn request() -> TriggerDesignRefreshRequest {
        TriggerDesignRefreshRequest {
            tenant_id: "T".into(),
            design_id: "D".into(),
            reason: "CHG-1: new logo".into(),
            tracking_id: "CHG-1".into(),
            operator_subject: "ops@example".into(),
            ..Default::default()
        }
    }

    #[test]
    fn it_injects_exactly_the_decision_records_parent() {
        let injection = Ask::parse(&request()).unwrap().injection();
        assert_eq!((injection.queue_name.as_str(), injection.scope.as_str()), ("studio-renderer", "t/T/designs/D"));
        let [item] = injection.items.as_slice() else { panic!("one parent") };
        assert_eq!((item.dto_type.as_str(), item.alias_name.as_str()), ("studiolink.v1", ""));
        assert_eq!(item.urn, Some(proto::cqs::v1::split_item::Urn::ParentId("t/T/designs/D".into())));
    }

    #[test]
    fn pages_are_a_dry_runs_and_bounded() {
        let page = |dry_run, page_size, page_token: &str| {
            let request =
                TriggerDesignRefreshRequest { dry_run, page_size, page_token: page_token.into(), ..request() };
            Ask::parse(&request).map(|ask| ask.page.size).map_err(|refusal| refusal.field)
        };
        assert_eq!(page(false, 0, ""), Ok(200));
        assert_eq!(page(true, 4_096, "store-7"), Ok(4_096));
        assert_eq!(page(true, 4_097, ""), Err("page_size".to_owned()));
        assert_eq!(page(true, -1, ""), Err("page_size".to_owned()));
        assert_eq!(page(false, 1, ""), Err("page_size".to_owned()));
        assert_eq!(page(false, 0, "store-7"), Err("page_token".to_owned()));
    }
}
