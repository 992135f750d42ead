//! The two Studio designs of the demo tenant, and which labels of a shop are linked to them.

use std::collections::BTreeMap;

use proto::records::v1::Design as Record;

use super::{LABELS_PER_STORE, model_of, models, panels};

/// A Studio design.
#[derive(Debug, Clone, Copy)]
pub(super) struct Design {
    /// Id of its record.
    pub(super) id: &'static str,
    /// For people.
    name: &'static str,
    /// SVG document, for panels of 296 by 128 pixels.
    svg: &'static str,
    /// Mappings.
    mappings: &'static str,
}

/// The designs of the tenant, for all shops.
pub(super) const DESIGNS: &[Design] = &[
    Design {
        id: "poster",
        name: "Poster",
        svg: include_str!("../../../render/demo/poster-296x128.svg"),
        mappings: include_str!("../../../render/demo/poster-296x128.json"),
    },
    Design {
        id: "bio",
        name: "Bio",
        svg: include_str!("../../../render/demo/bio-296x128.svg"),
        mappings: include_str!("../../../render/demo/bio-296x128.json"),
    },
];

/// Labels of each shop on each design.
const LABELS_PER_DESIGN: usize = 20;
/// The size of the designs, as one reads them.
const SIZE: (u32, u32) = (296, 128);

/// A label's Studio link.
#[derive(Debug, Clone, Copy)]
pub(super) struct Studio {
    /// The design.
    pub(super) design: &'static str,
    /// What the label has beside it.
    pub(super) beside: Beside,
}

/// What a label has beside its Studio link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Beside {
    /// Its ECC link: Studio wins, and ECC returns when the Studio link goes.
    Ecc,
    /// Nothing.
    Nothing,
}

/// The Studio links of a shop by label: promotions on the poster, fruit and vegetables on the other; every second label
/// has its ECC link too. The model that gets a version 2 keeps all of its labels.
pub(super) fn links(item_models: &[&'static str]) -> BTreeMap<u32, Studio> {
    let mut links = BTreeMap::new();
    for (design, model) in [("poster", models::PROMO), ("bio", models::FRESH)] {
        let labels = (0..LABELS_PER_STORE)
            .filter(|index| model_of(item_models, *index) == model && fits(*index))
            .take(LABELS_PER_DESIGN);
        links.extend(
            labels
                .zip([Beside::Ecc, Beside::Nothing].into_iter().cycle())
                .map(|(index, beside)| (index, Studio { design, beside })),
        );
    }
    links
}

/// Whether the label's panel shows the designs.
fn fits(index: u32) -> bool {
    panels::panel_of(index).is_some_and(|panel| {
        let (width, height) = panel.size;
        let turned = matches!(panel.rotation, 90 | 270);
        (if turned { (height, width) } else { (width, height) }) == SIZE
    })
}

impl From<&Design> for Record {
    fn from(design: &Design) -> Self {
        Self { svg: design.svg.to_owned(), mappings: design.mappings.to_owned(), name: design.name.to_owned() }
    }
}
