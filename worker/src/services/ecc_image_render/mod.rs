//! ecc-image-render-service: renders labels linked to an ECC model.
//!
//! Invariants
//! - A changed model only leaves the cache: its labels are rendered when a link or item changes, or on a trigger.
//!
//! Deliberately not here: from a label to its picture (`rendering`).

use domain::{AliasName, DtoType, ParentShape, ServiceName, SplitItem, Target, Urn};
use futures::{FutureExt as _, future::BoxFuture};
use proto::records::v1 as records;
use render::EccModel;

use super::rendering::{self, Linked, Parsed, Renderer, Source, engine::DrawFn};
use crate::runtime::{CallError, Context, Label, Route, Service, Verdict};

const SUBSCRIPTIONS: &[DtoType] = &[DtoType::EccLink, DtoType::StoreEsl, DtoType::StoreItemValues, DtoType::EccModel];
const SHAPES: &[ParentShape] = &[
    ParentShape { dto_type: DtoType::EccLink, alias: Some(AliasName::ByEccModel) },
    ParentShape { dto_type: DtoType::EccLink, alias: Some(AliasName::ByStore) },
];

/// ECC links, models and pictures.
pub(crate) struct Ecc;

impl Source for Ecc {
    type Link = records::EccLink;
    type Layout = EccModel;
    const LAYOUT: DtoType = DtoType::EccModel;
    const IMAGE: DtoType = DtoType::EccEslImage;
    const WORD: &'static str = "model";

    fn linked(link: records::EccLink) -> Linked {
        Linked { item_id: link.item_id, layout_id: link.model_id, parameters: link.parameters }
    }

    fn parse(payload: &[u8]) -> Parsed<EccModel> {
        let record: Result<records::EccModel, _> = prost::Message::decode(payload);
        match record {
            Ok(record) => Parsed {
                layout: EccModel::parse(&record.layout).map_err(|error| error.to_string()),
                bytes: record.layout.len(),
            },
            Err(error) => Parsed { layout: Err(error.to_string()), bytes: payload.len() },
        }
    }
}

/// The service.
pub(crate) struct EccImageRender(Renderer<Ecc>);

impl EccImageRender {
    pub(crate) fn new(draw: DrawFn<EccModel>) -> Self {
        Self(Renderer::new(draw))
    }
}

impl Service for EccImageRender {
    fn name(&self) -> ServiceName {
        ServiceName::EccImageRender
    }

    fn subscriptions(&self) -> &'static [DtoType] {
        SUBSCRIPTIONS
    }

    fn shapes(&self) -> &'static [ParentShape] {
        SHAPES
    }

    fn route(&self, item: &SplitItem) -> Route {
        match (&item.target, item.dto_type, item.alias) {
            (Target::Record(urn), DtoType::EccModel, None) => Route::Forget(urn.clone()),
            (Target::Parent(urn), DtoType::EccLink, Some(AliasName::ByEccModel)) => {
                rendering::links::<Ecc>(AliasName::ByEccModel, urn)
            }
            _ => rendering::route::<Ecc>(item).unwrap_or(Route::Unknown),
        }
    }

    fn forget<'a>(&'a self, urn: &'a Urn) -> BoxFuture<'a, ()> {
        self.0.forget(urn).boxed()
    }

    fn compute<'a>(
        &'a self,
        context: Context<'a>,
        labels: &'a [Label],
    ) -> BoxFuture<'a, Result<Vec<Verdict>, CallError>> {
        self.0.verdicts(context, labels).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::{AliasQuery, Expansion, LabelRef};

    fn route(dto_type: DtoType, target: Target, alias: Option<AliasName>) -> Route {
        EccImageRender::new(render::render).route(&SplitItem { dto_type, target, alias })
    }

    fn links(alias: AliasName, parent: &Urn) -> Route {
        Route::Split(Expansion::Records(AliasQuery { dto_type: DtoType::EccLink, alias, parent: parent.clone() }))
    }

    #[test]
    fn a_model_change_only_evicts_and_its_parent_splits() {
        let model: Urn = "t/T/s/S/eccmodels/M".parse().unwrap();
        assert_eq!(route(DtoType::EccModel, Target::Record(model.clone()), None), Route::Forget(model.clone()));
        let parent = Target::Parent(model.clone());
        let by_model = Some(AliasName::ByEccModel);
        assert_eq!(route(DtoType::EccLink, parent.clone(), by_model), links(AliasName::ByEccModel, &model));
        assert_eq!(route(DtoType::EccLink, parent, Some(AliasName::ByItem)), Route::Unknown);
    }

    #[test]
    fn links_and_labels_lead_to_the_label_and_items_to_their_links() {
        let label = LabelRef::of(&"t/T/s/S/esls/E".parse().unwrap()).unwrap();
        for dto_type in [DtoType::EccLink, DtoType::StoreEsl] {
            let target = Target::Record(label.record(dto_type));
            assert_eq!(route(dto_type, target, None), Route::Label(label.clone()));
        }
        let item: Urn = "t/T/s/S/items/I".parse().unwrap();
        let split = links(AliasName::ByItem, &item);
        assert_eq!(route(DtoType::StoreItemValues, Target::Record(item), None), split);
    }

    #[test]
    fn a_store_leads_to_all_its_links_and_a_tenant_to_nothing() {
        let store: Urn = "t/T/s/S".parse().unwrap();
        let by_store = Some(AliasName::ByStore);
        let split = links(AliasName::ByStore, &store);
        assert_eq!(route(DtoType::EccLink, Target::Parent(store.clone()), by_store), split);
        assert_eq!(route(DtoType::StudioLink, Target::Parent(store), by_store), Route::Unknown);
        assert_eq!(route(DtoType::EccLink, Target::Parent("t/T".parse().unwrap()), by_store), Route::Unknown);
    }
}
