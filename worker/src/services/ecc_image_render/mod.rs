//! ecc-image-render-service: renders labels linked to an ECC model.
//!
//! Reading order: `plan` (which inputs, what to do with them; pure), `models` (parsed models by version), `draw`.
//!
//! Invariants
//! - A picture is written with the versions of everything it was computed from, so a stale one never wins.
//! - A label that cannot be rendered fails alone, with the model and the reason, and keeps its old picture.
//! - A changed model only leaves the cache: its labels are rendered when a link or item changes, or on a trigger.

mod draw;
mod models;
mod plan;

use domain::{AliasName, DtoType, ParentShape, ServiceName, SplitItem, Target, Urn};
use futures::{FutureExt as _, future::BoxFuture};

use crate::runtime::{AliasQuery, CallError, Context, Label, LabelRef, Reads, Route, Service, Verdict};

use draw::RenderFn;
use models::Models;
use plan::{Needs, Step};

const SUBSCRIPTIONS: &[DtoType] = &[DtoType::EccLink, DtoType::StoreEsl, DtoType::StoreItemValues, DtoType::EccModel];
const SHAPES: &[ParentShape] = &[ParentShape { dto_type: DtoType::EccLink, alias: Some(AliasName::ByEccModel) }];

/// The service.
pub(crate) struct EccImageRender {
    models: Models,
    render: RenderFn,
}

impl EccImageRender {
    pub(crate) fn new() -> Self {
        Self::with_renderer(render::render)
    }

    /// With another renderer: how tests provoke a panic that the real one has no known way to.
    pub(crate) fn with_renderer(render: RenderFn) -> Self {
        Self { models: Models::new(), render }
    }

    async fn verdicts(&self, context: Context<'_>, labels: &[Label]) -> Result<Vec<Verdict>, CallError> {
        let mut first = Reads::default();
        for label in labels {
            first.want(DtoType::EccLink, label.name.record(DtoType::EccLink));
            first.want(DtoType::StoreEsl, label.name.record(DtoType::StoreEsl));
        }
        let first = first.fetch(context.platform).await?;
        let needs: Vec<Result<Needs, String>> = labels.iter().map(|label| Needs::of(&label.name, &first)).collect();

        let mut second = Reads::default();
        let known = self.models.known(needs.iter().flatten().filter_map(Needs::model)).await;
        for need in needs.iter().flatten() {
            need.want(&mut second, &known);
        }
        let second = second.fetch(context.platform).await?;
        let models = self.models.refresh(known, &second).await?;

        let steps = needs.into_iter().map(|needs| match needs {
            Ok(needs) => needs.step(&second, &models),
            Err(cause) => Step::Broken(cause),
        });
        draw::draw_many(self.render, labels, steps.collect()).await
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
        let links = |alias, parent: &Urn| {
            Route::Split(AliasQuery { dto_type: DtoType::EccLink, alias, parent: parent.clone() })
        };
        match (&item.target, item.dto_type, item.alias) {
            (Target::Record(urn), DtoType::EccLink | DtoType::StoreEsl, None) => {
                LabelRef::of(urn).map_or(Route::Unknown, Route::Label)
            }
            (Target::Record(urn), DtoType::StoreItemValues, None) => links(AliasName::ByItem, urn),
            (Target::Record(urn), DtoType::EccModel, None) => Route::Forget(urn.clone()),
            (Target::Parent(urn), DtoType::EccLink, Some(AliasName::ByEccModel)) => links(AliasName::ByEccModel, urn),
            _ => Route::Unknown,
        }
    }

    fn forget<'a>(&'a self, urn: &'a Urn) -> BoxFuture<'a, ()> {
        self.models.forget(urn).boxed()
    }

    fn compute<'a>(
        &'a self,
        context: Context<'a>,
        labels: &'a [Label],
    ) -> BoxFuture<'a, Result<Vec<Verdict>, CallError>> {
        self.verdicts(context, labels).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(dto_type: DtoType, target: Target, alias: Option<AliasName>) -> Route {
        EccImageRender::new().route(&SplitItem { dto_type, target, alias })
    }

    #[test]
    fn a_model_change_only_evicts_and_its_parent_splits() {
        let model: Urn = "t/T/s/S/eccmodels/M".parse().unwrap();
        assert_eq!(route(DtoType::EccModel, Target::Record(model.clone()), None), Route::Forget(model.clone()));
        let query = AliasQuery { dto_type: DtoType::EccLink, alias: AliasName::ByEccModel, parent: model.clone() };
        let parent = Target::Parent(model);
        assert_eq!(route(DtoType::EccLink, parent.clone(), Some(AliasName::ByEccModel)), Route::Split(query));
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
        let query = AliasQuery { dto_type: DtoType::EccLink, alias: AliasName::ByItem, parent: item.clone() };
        assert_eq!(route(DtoType::StoreItemValues, Target::Record(item), None), Route::Split(query));
    }
}
