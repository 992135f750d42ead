//! studio-renderer: renders labels linked to a Studio design.
//!
//! A design is its tenant's, so it reaches its labels in two stages: the design's parent splits into one parent per store,
//! each of those into its links. A written design and its trigger start at the very same parent.
//!
//! Deliberately not here: from a label to its picture (`rendering`).

use domain::{AliasName, Collection, DtoType, ParentShape, RENDER_ALLOWANCE_MS, ServiceName, SplitItem, Target, Urn};
use futures::{FutureExt as _, future::BoxFuture};
use proto::records::v1 as records;
use render::StudioDesign;

use super::rendering::{self, Linked, Parsed, Renderer, Source, engine::DrawFn};
use crate::runtime::{AliasQuery, CallError, Context, Expansion, Label, Route, Service, Verdict};

const SUBSCRIPTIONS: &[DtoType] = &[DtoType::StudioLink, DtoType::StoreEsl, DtoType::StoreItemValues, DtoType::Design];
/// A design, a design seen from a store, a store.
const SHAPES: &[ParentShape] = &[
    ParentShape { dto_type: DtoType::StudioLink, alias: None },
    ParentShape { dto_type: DtoType::StudioLink, alias: Some(AliasName::ByDesign) },
    ParentShape { dto_type: DtoType::StudioLink, alias: Some(AliasName::ByStore) },
];

/// Studio links, designs and pictures.
pub(crate) struct Studio;

impl Source for Studio {
    type Link = records::StudioLink;
    type Layout = StudioDesign;
    const LAYOUT: DtoType = DtoType::Design;
    const IMAGE: DtoType = DtoType::StudioEslImage;
    const WORD: &'static str = "design";

    fn linked(link: records::StudioLink) -> Linked {
        Linked { item_id: link.item_id, layout_id: link.design_id, parameters: std::collections::BTreeMap::new() }
    }

    fn parse(payload: &[u8]) -> Parsed<StudioDesign> {
        let record: Result<records::Design, _> = prost::Message::decode(payload);
        match record {
            Ok(record) => Parsed {
                layout: StudioDesign::parse(&record.svg, &record.mappings).map_err(|error| error.to_string()),
                bytes: record.svg.len() + record.mappings.len(),
            },
            Err(error) => Parsed { layout: Err(error.to_string()), bytes: payload.len() },
        }
    }
}

/// The service.
pub(crate) struct StudioRenderer(Renderer<Studio>);

impl StudioRenderer {
    pub(crate) fn new(draw: DrawFn<StudioDesign>) -> Self {
        Self(Renderer::new(draw))
    }
}

impl Service for StudioRenderer {
    fn name(&self) -> ServiceName {
        ServiceName::StudioRenderer
    }

    fn subscriptions(&self) -> &'static [DtoType] {
        SUBSCRIPTIONS
    }

    fn shapes(&self) -> &'static [ParentShape] {
        SHAPES
    }

    fn route(&self, item: &SplitItem) -> Route {
        match (&item.target, item.dto_type, item.alias) {
            (Target::Record(urn), DtoType::Design, None) => {
                let parent =
                    SplitItem { dto_type: DtoType::StudioLink, target: Target::Parent(urn.clone()), alias: None };
                Route::ForgetAndSplit(urn.clone(), Expansion::Parent { parent, allowance_ms: RENDER_ALLOWANCE_MS })
            }
            (Target::Parent(urn @ Urn::TenantRecord(_, Collection::Designs, _)), DtoType::StudioLink, None) => {
                let (dto_type, alias, parent) = (DtoType::StudioLink, AliasName::ByDesign, urn.clone());
                Route::Split(Expansion::Stores(AliasQuery { dto_type, alias, parent }))
            }
            (
                Target::Parent(urn @ Urn::StoreRecord(_, _, Collection::Designs, _)),
                DtoType::StudioLink,
                Some(AliasName::ByDesign),
            ) => rendering::links::<Studio>(AliasName::ByDesign, urn),
            _ => rendering::route::<Studio>(item).unwrap_or(Route::Unknown),
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

    fn route(dto_type: DtoType, target: Target, alias: Option<AliasName>) -> Route {
        StudioRenderer::new(render::studio_render).route(&SplitItem { dto_type, target, alias })
    }

    fn query(alias: AliasName, parent: &str) -> AliasQuery {
        AliasQuery { dto_type: DtoType::StudioLink, alias, parent: parent.parse().unwrap() }
    }

    fn parent(text: &str) -> Target {
        Target::Parent(text.parse().unwrap())
    }

    #[test]
    fn a_written_design_leads_to_the_parent_its_trigger_injects() {
        let design: Urn = "t/T/designs/D".parse().unwrap();
        let led = route(DtoType::Design, Target::Record(design.clone()), None);
        let Route::ForgetAndSplit(forgotten, Expansion::Parent { parent, allowance_ms }) = led else {
            panic!("{led:?}")
        };
        assert_eq!((forgotten, allowance_ms), (design.clone(), 4 * 3_600_000));
        let injected = SplitItem { dto_type: DtoType::StudioLink, target: Target::Parent(design), alias: None };
        assert_eq!(parent, injected);
        assert!(SHAPES.contains(&ParentShape { dto_type: parent.dto_type, alias: parent.alias }));
    }

    #[test]
    fn a_design_splits_by_store_and_a_design_in_a_store_by_link() {
        let stores = Route::Split(Expansion::Stores(query(AliasName::ByDesign, "t/T/designs/D")));
        assert_eq!(route(DtoType::StudioLink, parent("t/T/designs/D"), None), stores);
        let links = Route::Split(Expansion::Records(query(AliasName::ByDesign, "t/T/s/S/designs/D")));
        let by_design = Some(AliasName::ByDesign);
        assert_eq!(route(DtoType::StudioLink, parent("t/T/s/S/designs/D"), by_design), links);
        let links = Route::Split(Expansion::Records(query(AliasName::ByStore, "t/T/s/S")));
        assert_eq!(route(DtoType::StudioLink, parent("t/T/s/S"), Some(AliasName::ByStore)), links);
    }

    #[test]
    fn parents_of_another_level_lead_nowhere() {
        for (urn, alias) in [
            ("t/T/designs/D", Some(AliasName::ByDesign)),
            ("t/T/s/S/designs/D", None),
            ("t/T", Some(AliasName::ByStore)),
            ("t/T/s/S", None),
        ] {
            assert_eq!(route(DtoType::StudioLink, parent(urn), alias), Route::Unknown, "{urn}");
        }
    }
}
