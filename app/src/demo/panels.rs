//! The panel types of the demo tenant and how many labels of each a shop has.

use proto::records::v1::{EslType, Palette};

/// A panel type.
#[derive(Debug, Clone, Copy)]
pub(super) struct Panel {
    /// Id of its `esltype.v1`.
    pub(super) id: &'static str,
    /// For people.
    pub(super) name: &'static str,
    /// Pixels of the panel itself, before rotation.
    pub(super) size: (u32, u32),
    /// Colours.
    pub(super) palette: Palette,
    /// Degrees clockwise from layout to panel.
    pub(super) rotation: u32,
    /// Labels of this type in each shop.
    pub(super) labels: u32,
}

/// All panel types. The labels of a shop come in this order and add up to [`super::LABELS_PER_STORE`].
pub(super) const PANELS: &[Panel] = &[
    panel("s29-bwr", "2.9 inch, white black red", (296, 128), Palette::Bwr, 0, 150),
    panel("s29-bw", "2.9 inch, white black", (296, 128), Palette::Bw, 0, 110),
    panel("s29-bw-portrait", "2.9 inch, white black, driven upright", (128, 296), Palette::Bw, 90, 40),
    panel("s29-bwr-flipped", "2.9 inch, white black red, mounted upside down", (296, 128), Palette::Bwr, 180, 20),
    panel("m42-bwry", "4.2 inch, white black red yellow", (400, 300), Palette::Bwry, 0, 50),
    panel("m42-bwry-portrait", "4.2 inch, white black red yellow, driven upright", (300, 400), Palette::Bwry, 270, 14),
    panel("l75-spectra6", "7.5 inch, six colours", (800, 480), Palette::Spectra6, 0, 16),
];

const fn panel(
    id: &'static str,
    name: &'static str,
    size: (u32, u32),
    palette: Palette,
    rotation: u32,
    labels: u32,
) -> Panel {
    Panel { id, name, size, palette, rotation, labels }
}

/// The panel type of the label `index` (from 0) of a shop; none beyond the last.
pub(super) fn panel_of(index: u32) -> Option<&'static Panel> {
    let mut first_of_next = 0;
    PANELS.iter().find(|panel| {
        first_of_next += panel.labels;
        index < first_of_next
    })
}

impl From<&Panel> for EslType {
    fn from(panel: &Panel) -> Self {
        Self {
            width: panel.size.0,
            height: panel.size.1,
            palette: panel.palette.into(),
            rotation: panel.rotation,
            name: panel.name.to_owned(),
        }
    }
}
