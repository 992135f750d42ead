//! What the demo's labels hang on: a folder, or simulated access points whose tags have the labels' panels.

use std::net::SocketAddr;

use domain::DtoType;
use proto::records::v1::{AccessPoint, StoreEsl};

use super::{ACCESS_POINT, DemoError, LABELS_PER_STORE, TENANT, label_id, panels, record, shops};
use crate::records::Record;

/// The simulated access point of each shop.
pub(crate) const SIMULATED: &str = "ap-sim";
/// The driver that reaches it.
const SIMULATED_DRIVER: &str = "openepaperlink";

/// A tag of a shop's simulated access point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tag {
    /// Its hardware address as a number, as its label's record names it.
    pub(crate) address: u64,
    /// Its panel type, as such access points number them.
    pub(crate) panel: u8,
}

/// The tags of a shop: those of its labels whose panels such tags have. Upright driven panels are not among them.
pub(crate) fn tags(shop: &shops::Shop) -> Vec<Tag> {
    labels().filter_map(|(index, panel)| Some(Tag { address: address(shop, index), panel: number(panel)? })).collect()
}

/// Hangs the labels of a shop on its simulated access point, which listens at `at`.
pub(crate) fn hung(shop: &shops::Shop, at: SocketAddr) -> Result<Vec<Record>, DemoError> {
    let access_point = AccessPoint { driver: SIMULATED_DRIVER.to_owned(), address: at.to_string() };
    let mut records = vec![record(DtoType::AccessPoint, &access_point_urn(shop.id), &access_point)?];
    for (index, panel) in labels().filter(|(_, panel)| number(panel).is_some()) {
        records.push(esl(shop, (index, panel), SIMULATED)?);
    }
    Ok(records)
}

/// Hangs the labels of a shop on its folder, as they are at first.
pub(crate) fn taken_down(shop: &shops::Shop) -> Result<Vec<Record>, DemoError> {
    labels().map(|label| esl(shop, label, ACCESS_POINT)).collect()
}

/// Name of a shop's simulated access point.
pub(crate) fn access_point_urn(store: &str) -> String {
    format!("t/{TENANT}/s/{store}/accesspoints/{SIMULATED}")
}

/// The labels of every shop, by number, with their panels.
pub(super) fn labels() -> impl Iterator<Item = (u32, &'static panels::Panel)> {
    (0..LABELS_PER_STORE).filter_map(|index| panels::panel_of(index).map(|panel| (index, panel)))
}

/// A label as hardware, on one of its shop's access points.
pub(super) fn esl(
    shop: &shops::Shop,
    (index, panel): (u32, &panels::Panel),
    access_point: &str,
) -> Result<Record, DemoError> {
    let label = StoreEsl {
        esltype_id: panel.id.to_owned(),
        accesspoint_id: access_point.to_owned(),
        // Locally administered addresses (second hex digit 2): those of no real hardware.
        hardware_address: format!("02:DE:30:{:02X}:{:02X}:{:02X}", shop.digit, index / 256, index % 256),
    };
    record(DtoType::StoreEsl, &format!("t/{TENANT}/s/{}/esls/{}", shop.id, label_id(index)), &label)
}

/// The same address as a number.
fn address(shop: &shops::Shop, index: u32) -> u64 {
    0x02DE_3000_0000 | u64::from(shop.digit) << 16 | u64::from(index)
}

/// Which of the protocol's panel types a demo panel is; none for those it does not have.
fn number(panel: &panels::Panel) -> Option<u8> {
    match panel.id {
        "s29-bwr" | "s29-bwr-flipped" => Some(0x01),
        "s29-bw" => Some(0x27),
        "m42-bwry" => Some(0x90),
        "l75-spectra6" => Some(0xC2),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_simulated_tag_has_its_labels_address_and_panel() {
        for shop in shops::SHOPS {
            let tags = tags(shop);
            assert_eq!(tags.len(), 346, "all but the upright ones");
            for tag in &tags {
                let panel = picture::Panel::of(tag.panel).unwrap();
                let index = u32::try_from(tag.address & 0xFFFF).unwrap();
                let ours = panels::panel_of(index).unwrap();
                assert_eq!((panel.width, panel.height), ours.size, "{}", ours.id);
                let bytes = tag.address.to_be_bytes();
                let text: Vec<String> = bytes[2..].iter().map(|byte| format!("{byte:02X}")).collect();
                let record = esl(shop, (index, ours), SIMULATED).unwrap();
                let label: StoreEsl = prost::Message::decode(record.payload).unwrap();
                assert_eq!(text.join(":"), label.hardware_address);
            }
        }
    }
}
