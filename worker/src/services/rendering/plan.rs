//! What a label needs and what to do with it. Pure.

use std::{collections::BTreeMap, sync::Arc};

use domain::{DtoType, RecordId, RecordScope, Urn};
use picture::{Palette, Rotation};
use proto::records::v1 as records;
use render::Panel;

use super::{Linked, Source, layouts::LayoutsByUrn};
use crate::runtime::{Found, Input, LabelRef, Reads, RecordType, Records};

/// A label's link and hardware, and what they name.
#[derive(Debug)]
pub(super) enum Needs {
    /// Link or label is absent: nothing to show.
    Nothing(Vec<Input>),
    /// These make the picture.
    Inputs(Box<Named>),
}

/// What link and label name.
#[derive(Debug)]
pub(super) struct Named {
    inputs: Vec<Input>,
    item: Urn,
    layout: Urn,
    esl_type: Urn,
    parameters: BTreeMap<String, String>,
}

/// What to do with a label.
pub(super) enum Step<L> {
    /// An input is absent: the picture goes.
    Absent(Vec<Input>),
    /// Render it.
    Draw(Box<Draw<L>>),
    /// It fails with this cause.
    Broken(String),
}

/// Everything a picture is made of.
pub(super) struct Draw<L> {
    pub(super) layout_urn: Urn,
    pub(super) layout: Arc<L>,
    pub(super) panel: Panel,
    pub(super) item: BTreeMap<String, String>,
    pub(super) parameters: BTreeMap<String, String>,
    pub(super) inputs: Vec<Input>,
}

fn id(what: &str, text: &str) -> Result<RecordId, String> {
    text.parse().map_err(|error| format!("{what} {text:?} {error}"))
}

/// The layout a label's link names: its tenant's or its store's, as its type has it.
fn layout_urn<S: Source>(label: &LabelRef, id: &RecordId) -> Urn {
    match S::LAYOUT.scope() {
        RecordScope::Tenant => Urn::in_tenant(&label.tenant, S::LAYOUT, id),
        RecordScope::Store => label.neighbour(S::LAYOUT, id),
    }
}

impl Needs {
    /// From the first read.
    pub(super) fn of<S: Source>(label: &LabelRef, read: &Records) -> Result<Self, String> {
        let link: Found<S::Link> = read.record(&label.record(<S::Link as RecordType>::DTO_TYPE))?;
        let esl: Found<records::StoreEsl> = read.record(&label.record(DtoType::StoreEsl))?;
        let inputs = vec![link.input, esl.input];
        let (Some(link), Some(esl)) = (link.record, esl.record) else { return Ok(Self::Nothing(inputs)) };
        let Linked { item_id, layout_id, parameters } = S::linked(link);
        let esl_type = id("the label's type", &esl.esltype_id)?;
        Ok(Self::Inputs(Box::new(Named {
            inputs,
            item: label.neighbour(DtoType::StoreItemValues, &id("the link's item", &item_id)?),
            layout: layout_urn::<S>(label, &id(&format!("the link's {}", S::WORD), &layout_id)?),
            esl_type: Urn::in_tenant(&label.tenant, DtoType::EslType, &esl_type),
            parameters,
        })))
    }

    /// The layout named, if any.
    pub(super) fn layout(&self) -> Option<&Urn> {
        match self {
            Self::Nothing(_) => None,
            Self::Inputs(named) => Some(&named.layout),
        }
    }

    /// Asks for the second read.
    pub(super) fn want<S: Source>(&self, reads: &mut Reads, known: &LayoutsByUrn<S::Layout>) {
        if let Self::Inputs(named) = self {
            reads.want(DtoType::StoreItemValues, named.item.clone());
            reads.want(DtoType::EslType, named.esl_type.clone());
            let version = known.get(&named.layout).map_or(0, |layout| layout.version);
            reads.want_newer(S::LAYOUT, named.layout.clone(), version);
        }
    }

    /// From the second read: what to do.
    pub(super) fn step<S: Source>(self, read: &Records, layouts: &LayoutsByUrn<S::Layout>) -> Step<S::Layout> {
        match self {
            Self::Nothing(inputs) => Step::Absent(inputs),
            Self::Inputs(named) => named.step::<S>(read, layouts).unwrap_or_else(Step::Broken),
        }
    }
}

impl Named {
    fn step<S: Source>(self, read: &Records, layouts: &LayoutsByUrn<S::Layout>) -> Result<Step<S::Layout>, String> {
        let Self { mut inputs, item, layout, esl_type, parameters } = self;
        let item: Found<records::StoreItemValues> = read.record(&item)?;
        let esl_type: Found<records::EslType> = read.record(&esl_type)?;
        let (layout_input, layout_dto) = read.raw(S::LAYOUT, &layout)?;
        inputs.extend([item.input, layout_input, esl_type.input]);
        let (Some(item), Some(esl_type), Some(_)) = (item.record, esl_type.record, layout_dto) else {
            return Ok(Step::Absent(inputs));
        };
        let known = layouts.get(&layout).ok_or_else(|| format!("{} {layout} was not read", S::WORD))?;
        let parsed = known.parsed.clone().map_err(|reason| format!("{} {layout}: {reason}", S::WORD))?;
        Ok(Step::Draw(Box::new(Draw {
            layout_urn: layout,
            layout: parsed,
            panel: panel(&esl_type)?,
            item: item.values,
            parameters,
            inputs,
        })))
    }
}

fn panel(esl_type: &records::EslType) -> Result<Panel, String> {
    let palette = Palette::from_number(esl_type.palette)
        .ok_or_else(|| format!("the label's type has the unknown palette {}", esl_type.palette))?;
    let rotation = i32::try_from(esl_type.rotation)
        .ok()
        .and_then(Rotation::from_degrees)
        .ok_or_else(|| format!("the label's type is turned by {} degrees", esl_type.rotation))?;
    Ok(Panel { width: esl_type.width, height: esl_type.height, palette, rotation })
}

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::*;
    use crate::services::{ecc_image_render::Ecc, studio_renderer::Studio};

    const LABEL: &str = "t/T/s/S/esls/E";

    fn label() -> LabelRef {
        LabelRef::of(&LABEL.parse().unwrap()).unwrap()
    }

    fn first(link: Option<&records::EccLink>, esl: Option<&records::StoreEsl>) -> Records {
        Records::of([
            (DtoType::EccLink, label().record(DtoType::EccLink), link.map(|record| (7, record.encode_to_vec()))),
            (DtoType::StoreEsl, LABEL.parse().unwrap(), esl.map(|record| (3, record.encode_to_vec()))),
        ])
    }

    fn link(model: &str) -> records::EccLink {
        records::EccLink { item_id: "I".into(), model_id: model.into(), ..Default::default() }
    }

    fn esl() -> records::StoreEsl {
        records::StoreEsl { esltype_id: "X".into(), accesspoint_id: "A".into(), hardware_address: "H".into() }
    }

    #[test]
    fn an_absent_link_or_label_leaves_no_picture_and_is_named_at_version_0() {
        for (read, versions) in [(first(None, Some(&esl())), [0, 3]), (first(Some(&link("M")), None), [7, 0])] {
            let Needs::Nothing(inputs) = Needs::of::<Ecc>(&label(), &read).unwrap() else { panic!("nothing to show") };
            assert_eq!(inputs.iter().map(|input| input.version).collect::<Vec<_>>(), versions);
        }
    }

    #[test]
    fn an_absent_item_model_or_type_leaves_no_picture_and_every_input_is_named() {
        let needs = Needs::of::<Ecc>(&label(), &first(Some(&link("M")), Some(&esl()))).unwrap();
        let urn = |text: &str| text.parse::<Urn>().unwrap();
        let second = Records::of([
            (DtoType::StoreItemValues, urn("t/T/s/S/items/I"), Some((5, Vec::new()))),
            (DtoType::EccModel, urn("t/T/s/S/eccmodels/M"), None),
            (DtoType::EslType, urn("t/T/esltypes/X"), Some((2, Vec::new()))),
        ]);
        let Step::Absent(inputs) = needs.step::<Ecc>(&second, &LayoutsByUrn::new()) else {
            panic!("the model is absent")
        };
        assert_eq!(inputs.iter().map(|input| input.version).collect::<Vec<_>>(), [7, 3, 5, 0, 2]);
    }

    #[test]
    fn a_link_that_names_no_id_fails_the_label_saying_so() {
        let cause = Needs::of::<Ecc>(&label(), &first(Some(&link("a/b")), Some(&esl()))).unwrap_err();
        assert!(cause.contains("the link's model"), "{cause}");
    }

    #[test]
    fn a_design_is_its_tenants_and_a_model_its_stores() {
        let id: RecordId = "D".parse().unwrap();
        assert_eq!(layout_urn::<Ecc>(&label(), &id).to_string(), "t/T/s/S/eccmodels/D");
        assert_eq!(layout_urn::<Studio>(&label(), &id).to_string(), "t/T/designs/D");
    }
}
