//! The driver against a simulated access point, over real sockets. What people ran into with the real ones is told again,
//! with the outcome it should have had; numbers name the public reports (OEPL: the access point's project, HA: its home
//! automation integration, ZBS: a flasher's).

mod access_points;
mod losses;
mod pictures;
mod uploads;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use daemon::outbound::{AllowList, Outbound};
use domain::{Clock, IdSource as _, ManualClock, SeededIds, Timestamp};
use picture::{Palette, Panel, Picture};
use proto::records::v1::{DeliveryState, Evidence};
use simulators::openepaperlink::{
    AccessPoint, AccessPointSettings, Control, Mac, StatusBehaviour, StatusFault, TagSettings, TransferFault,
};

use super::{
    super::{Delivered, Delivery, Driver as _, Pending, Place, Probe, Shipment, Survey},
    FIRST_LOOK, OpenEpaperLinkDriver, Pace, health,
};
use crate::runtime::LabelRef;

/// A quarter past ten on a day in 2026.
const MORNING: Timestamp = Timestamp::from_ms(1_780_000_000_000 / 86_400_000 * 86_400_000 + 36_900_000);
const CHECK_IN_S: i64 = 40;
const PACE: Pace = Pace { pause: Duration::ZERO, first_look: FIRST_LOOK };

/// An access point with tags, a driver, and the clock of both.
struct Bench {
    clock: Arc<ManualClock>,
    access_point: AccessPoint,
    driver: OpenEpaperLinkDriver,
}

impl Bench {
    /// With a tag of each of these panel types.
    async fn new(panels: &[u8]) -> Self {
        Self::with(panels, |_| {}).await
    }

    async fn with(panels: &[u8], change: impl FnOnce(&mut AccessPointSettings)) -> Self {
        let clock = Arc::new(ManualClock::at(MORNING));
        let mut settings = AccessPointSettings::new(Arc::clone(&clock) as Arc<dyn Clock>);
        settings.tags = panels
            .iter()
            .enumerate()
            .map(|(index, panel)| TagSettings {
                mac: mac(index),
                panel: Panel::of(*panel).unwrap(),
                check_in_ms: CHECK_IN_S * 1_000,
            })
            .collect();
        change(&mut settings);
        let access_point = AccessPoint::start(settings).await.unwrap();
        let driver = OpenEpaperLinkDriver::new(Outbound::new(AllowList::loopback()), PACE);
        Self { clock, access_point, driver }
    }

    fn place(&self) -> Place {
        place(self.access_point.address())
    }

    fn pass(&self, seconds: i64) {
        self.clock.advance_ms(seconds * 1_000);
    }

    async fn send(&self, tag: usize, picture: &Picture) -> Delivered {
        self.replace(tag, picture, None).await
    }

    async fn replace(&self, tag: usize, picture: &Picture, replaces: Option<Pending>) -> Delivered {
        let delivery = Delivery {
            label: label(tag),
            hardware_address: mac(tag).to_string(),
            digest: picture.digest(),
            picture: picture.clone(),
            encoded: self.driver.encode(picture).unwrap(),
            replaces,
        };
        let shipment = Shipment { place: self.place(), generation: 1, deliveries: vec![delivery] };
        self.driver.send(shipment).await.pop().unwrap()
    }

    /// Sends what the access point takes.
    async fn sent(&self, tag: usize, picture: &Picture) -> Pending {
        let answer = self.send(tag, picture).await;
        pending(tag, picture, &answer)
    }

    async fn look(&self, pending: &Pending) -> Delivered {
        let survey = Survey { place: self.place(), pending: vec![pending.clone()] };
        self.driver.look(survey).await.pop().unwrap()
    }

    fn control(&self, control: Control) {
        self.access_point.control(control);
    }

    fn screen(&self, tag: usize) -> Option<Picture> {
        self.access_point.screen(mac(tag))
    }

    /// How often the panel was refreshed.
    fn refreshes(&self, tag: usize) -> usize {
        self.access_point.shown(mac(tag)).len()
    }

    async fn health(&self) -> health::Health {
        let peer = daemon::outbound::Peer::parse(&self.place().address, 80).unwrap();
        health::health(&Outbound::new(AllowList::loopback()), &peer).await.unwrap()
    }
}

fn mac(index: usize) -> Mac {
    Mac::new(0x0000_021A_0000_0000 + index as u64)
}

fn label(index: usize) -> LabelRef {
    LabelRef::of(&format!("t/T/s/S/esls/E{index}").parse().unwrap()).unwrap()
}

fn place(address: SocketAddr) -> Place {
    Place { access_point: "t/T/s/S/accesspoints/A".parse().unwrap(), address: address.to_string() }
}

fn pending(tag: usize, picture: &Picture, answer: &Delivered) -> Pending {
    let Delivered::Underway { state: DeliveryState::Accepted, receipt, .. } = answer else { panic!("{answer:?}") };
    Pending {
        label: label(tag),
        hardware_address: mac(tag).to_string(),
        digest: picture.digest(),
        receipt: receipt.clone(),
        state: DeliveryState::Accepted,
        sent_at: MORNING,
    }
}

/// Every pixel drawn by lot: the hardest picture there is for a lossy format.
fn noise(panel: u8, seed: u64) -> Picture {
    let panel = Panel::of(panel).unwrap();
    noise_of(panel.width, panel.height, panel.inks.palette(), seed)
}

fn noise_of(width: u32, height: u32, palette: Palette, seed: u64) -> Picture {
    let ids = SeededIds::new(seed);
    let inks = palette.inks().len() as u64;
    let indices = (0..width * height).map(|_| u8::try_from(ids.below(inks)).unwrap()).collect();
    Picture::new(width, height, palette, indices).unwrap()
}

fn is_confirmed(answer: &Delivered) -> bool {
    matches!(answer, Delivered::Confirmed { evidence: Evidence::Transferred, .. })
}

fn is_lost(answer: &Delivered, word: &str) -> bool {
    matches!(answer, Delivered::Lost { cause } if cause.contains(word))
}

fn is_underway(answer: &Delivered, wanted: DeliveryState) -> bool {
    matches!(answer, Delivered::Underway { state, .. } if *state == wanted)
}
