//! `TriggerModelRefresh`: every label linked to one ECC model of a store is rendered again.

use domain::{AliasName, DtoType, ParentShape, RecordId, Refusal, StoreId, TenantId, Trigger, Urn};
use proto::{
    ecc_image_render::v1::{TriggerModelRefreshRequest, TriggerModelRefreshResponse},
    parse_field,
};

use super::ask::{Aim, Answer, Common, Exists, TriggerRequest, answer_to_wire, common};

impl TriggerRequest for TriggerModelRefreshRequest {
    type Response = TriggerModelRefreshResponse;
    const TRIGGER: Trigger = Trigger::ModelRefresh;
    const RPC: &'static str = "ecc_image_render.v1.EccImageRenderTriggers/TriggerModelRefresh";

    fn common(&self) -> Common<'_> {
        common!(self)
    }

    fn aim(&self, tenant: &TenantId) -> Result<Aim, Refusal> {
        let store: StoreId = parse_field("store_id", &self.store_id)?;
        let model: RecordId = parse_field("model_id", &self.model_id)?;
        Ok(Aim {
            scope: Urn::in_store(tenant, &store, DtoType::EccModel, &model),
            shape: ParentShape { dto_type: DtoType::EccLink, alias: Some(AliasName::ByEccModel) },
            links: AliasName::ByEccModel,
            exists: Exists::Record(DtoType::EccModel),
            field: "model_id",
        })
    }

    fn response(answer: Answer) -> TriggerModelRefreshResponse {
        answer_to_wire!(TriggerModelRefreshResponse, answer, {})
    }
}

#[cfg(test)]
mod tests {
    use domain::ErrorCode;
    use proto::cqs::v1::Operation;

    use super::*;
    use crate::triggers::ask::{Ask, attempt};

    fn request() -> TriggerModelRefreshRequest {
        TriggerModelRefreshRequest {
            tenant_id: "T".into(),
            store_id: "S".into(),
            model_id: "M".into(),
            reason: "CHG-1: new fonts".into(),
            tracking_id: "CHG-1".into(),
            operator_subject: "ops@example".into(),
            ..Default::default()
        }
    }

    #[test]
    fn each_wrong_field_is_named() {
        type Spoil = fn(&mut TriggerModelRefreshRequest);
        let wrong: [(&str, Spoil); 9] = [
            ("tenant_id", |request| request.tenant_id.clear()),
            ("store_id", |request| request.store_id = "a/b".into()),
            ("model_id", |request| request.model_id = "..".into()),
            ("reason", |request| request.reason = " ".into()),
            ("reason", |request| request.reason = "a\nb".into()),
            ("tracking_id", |request| request.tracking_id = "a b".into()),
            ("tracking_id", |request| request.tracking_id = "x".repeat(129)),
            ("operator_subject", |request| request.operator_subject.clear()),
            ("sla_timestamp", |request| {
                request.sla_timestamp = Some(prost_types::Timestamp { seconds: i64::MAX, nanos: 0 });
            }),
        ];
        for (field, spoil) in wrong {
            let mut request = request();
            spoil(&mut request);
            let refusal = Ask::parse(&request).unwrap_err();
            assert_eq!((refusal.code, refusal.field.as_str()), (ErrorCode::InvalidArgument, field));
        }
    }

    #[test]
    fn it_injects_exactly_the_decision_records_parent() {
        let injection = Ask::parse(&request()).unwrap().injection();
        let [item] = injection.items.as_slice() else { panic!("one parent") };
        assert_eq!((item.dto_type.as_str(), item.alias_name.as_str()), ("ecclink.v1", "by_eccmodel"));
        let parent = proto::cqs::v1::split_item::Urn::ParentId("t/T/s/S/eccmodels/M".into());
        assert_eq!(item.urn, Some(parent));
        assert_eq!(injection.sla_timestamp, None);
    }

    #[test]
    fn another_request_under_the_same_tracking_id_is_told_apart_by_field() {
        let ask = Ask::parse(&request()).unwrap();
        let accepted = Operation {
            queue_name: "ecc-image-render-service".into(),
            trigger: "model-refresh".into(),
            scope: "t/T/s/S/eccmodels/M".into(),
            reason: "CHG-1: new fonts".into(),
            ..Default::default()
        };
        assert_eq!(ask.difference(&accepted), None);
        let other = |spoil: fn(&mut Operation)| {
            let mut operation = accepted.clone();
            spoil(&mut operation);
            ask.difference(&operation)
        };
        assert_eq!(other(|operation| operation.scope = "t/T/s/S/eccmodels/N".into()), Some("model_id"));
        assert_eq!(other(|operation| operation.scope = "t/T/s/R/eccmodels/M".into()), Some("store_id"));
        assert_eq!(other(|operation| operation.reason = "CHG-2".into()), Some("reason"));
        assert_eq!(other(|operation| operation.trigger = "touch".into()), Some("tracking_id"));
    }

    #[test]
    fn an_audit_row_holds_only_what_is_valid() {
        let entry = attempt(&TriggerModelRefreshRequest { reason: "a\u{7}".into(), ..request() });
        assert_eq!((entry.reason.as_str(), entry.tracking_id.as_str()), ("", "CHG-1"));
        assert_eq!(entry.request_digest.len(), 64);
    }
}
