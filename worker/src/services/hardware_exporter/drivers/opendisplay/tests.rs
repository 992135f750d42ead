//! The driver against a simulated tag, over a real socket. Numbers name public reports.

use std::{sync::Arc, time::Duration};

use daemon::outbound::{AllowList, Outbound};
use domain::{Clock, IdSource as _, ManualClock, SeededIds, Timestamp};
use picture::{Palette, Picture};
use simulators::opendisplay::{Control, Tag, TagSettings};

use super::{super::Place, *};
use crate::runtime::LabelRef;

async fn tag(palette: Palette) -> Tag {
    let clock = Arc::new(ManualClock::at(Timestamp::from_ms(1_780_000_000_000))) as Arc<dyn Clock>;
    let listen = ([127, 0, 0, 1], 0).into();
    Tag::start(TagSettings { clock, listen, width: 250, height: 122, palette }).await.unwrap()
}

fn noise(palette: Palette, seed: u64) -> Picture {
    let ids = SeededIds::new(seed);
    let inks = palette.inks().len() as u64;
    let indices = (0..250 * 122).map(|_| u8::try_from(ids.below(inks)).unwrap()).collect();
    Picture::new(250, 122, palette, indices).unwrap()
}

async fn send(address: &str, picture: &Picture) -> Delivered {
    let driver = OpenDisplayDriver::new(Outbound::new(AllowList::loopback()));
    let delivery = Delivery {
        label: LabelRef::of(&"t/T/s/S/esls/E".parse().unwrap()).unwrap(),
        hardware_address: address.to_owned(),
        digest: picture.digest(),
        picture: picture.clone(),
        encoded: bytes::Bytes::new(),
        replaces: None,
    };
    let place = Place { access_point: "t/T/s/S/accesspoints/A".parse().unwrap(), address: String::new() };
    driver.send(Shipment { place, generation: 1, deliveries: vec![delivery] }).await.pop().unwrap()
}

fn is_displayed(answer: &Delivered) -> bool {
    matches!(answer, Delivered::Confirmed { evidence: Evidence::Displayed, .. })
}

#[tokio::test]
async fn every_set_of_inks_is_displayed_pixel_for_pixel_and_marked_with_its_digest() {
    for palette in [Palette::Bw, Palette::Bwr, Palette::Bwry, Palette::Spectra6] {
        let tag = tag(palette).await;
        let picture = noise(palette, 1);
        assert!(is_displayed(&send(&tag.address().to_string(), &picture).await), "{palette}");
        assert_eq!(tag.screen().unwrap(), picture, "{palette}");
        let [shown] = tag.shown()[..] else { panic!("one refresh") };
        assert_eq!(shown.etag.to_be_bytes()[..], picture.digest().as_bytes()[..4]);
    }
}

#[tokio::test]
async fn a_refresh_that_timed_out_is_tried_again_and_not_confirmed() {
    let tag = tag(Palette::Bwr).await;
    let picture = noise(Palette::Bwr, 1);
    tag.control(Control::RefreshTimesOut);
    let answer = send(&tag.address().to_string(), &picture).await;
    assert!(matches!(&answer, Delivered::Retryable { cause } if cause.contains("did not refresh")), "{answer:?}");
    assert!(tag.screen().is_none());
    assert!(is_displayed(&send(&tag.address().to_string(), &picture).await));
}

#[tokio::test]
async fn a_tag_that_refuses_any_step_confirms_nothing() {
    let tag = tag(Palette::Bwr).await;
    for step in [START, DATA, END] {
        tag.control(Control::Refuses(step));
        let answer = send(&tag.address().to_string(), &noise(Palette::Bwr, 1)).await;
        assert!(matches!(answer, Delivered::Retryable { .. }), "{step:02X}: {answer:?}");
    }
}

/// It had done everything and only the answer is missing: nobody knows, so it is sent again, to the same end.
#[tokio::test]
async fn a_tag_that_hangs_up_is_not_confirmed_and_ends_right_when_sent_again() {
    let tag = tag(Palette::Bwr).await;
    let picture = noise(Palette::Bwr, 1);
    for step in [START, DATA, END] {
        tag.control(Control::HangsUpAfter(step));
        let answer = send(&tag.address().to_string(), &picture).await;
        assert!(matches!(answer, Delivered::Unreachable { .. }), "{step:02X}: {answer:?}");
    }
    assert!(is_displayed(&send(&tag.address().to_string(), &picture).await));
    assert_eq!(tag.screen().unwrap(), picture);
}

#[tokio::test]
async fn a_tag_that_is_away_is_unreachable_and_one_with_another_panel_refuses() {
    let tag = tag(Palette::Bwr).await;
    let address = tag.address().to_string();
    tag.control(Control::Offline(true));
    assert!(matches!(send(&address, &noise(Palette::Bwr, 1)).await, Delivered::Unreachable { .. }));
    tag.control(Control::Offline(false));
    assert!(matches!(send(&address, &noise(Palette::Spectra6, 1)).await, Delivered::Retryable { .. }));
    assert!(tag.screen().is_none());
}

/// OpenDisplay/Firmware #80: a partial update erases the rest of the panel and is acknowledged.
#[tokio::test]
async fn a_small_change_is_sent_as_a_whole_picture() {
    let tag = tag(Palette::Bw).await;
    let address = tag.address().to_string();
    let first = noise(Palette::Bw, 1);
    let mut indices = first.indices().to_vec();
    indices[0] ^= 1;
    let second = Picture::new(250, 122, Palette::Bw, indices).unwrap();
    for picture in [&first, &second] {
        assert!(is_displayed(&send(&address, picture).await));
    }
    assert_eq!(tag.screen().unwrap(), second);
    assert_eq!(tag.partials(), 0);
}

/// fpoli/gicisky-tag #1: stuck at sending. A step without an answer ends the call; time is the runtime's here.
#[tokio::test]
async fn a_silent_step_ends_the_call() {
    let tag = tag(Palette::Bw).await;
    tag.control(Control::IsSilentOn(DATA));
    let address = tag.address().to_string();
    let picture = noise(Palette::Bw, 1);
    let call = tokio::spawn(async move { send(&address, &picture).await });
    // Wait until the tag has the frame it stays silent on, then let the step's time pass at once.
    while tag.faults() > 0 {
        tokio::task::yield_now().await;
    }
    tokio::time::pause();
    tokio::time::advance(STEP + Duration::from_secs(1)).await;
    let answer = call.await.unwrap();
    assert!(matches!(&answer, Delivered::Unreachable { cause } if cause.contains("did not answer")), "{answer:?}");
}

#[tokio::test]
async fn addresses_that_lead_elsewhere_and_grey_pictures_are_refused() {
    for address in ["169.254.169.254", "10.0.0.1:2446", "host/path", "a b", ""] {
        let answer = send(address, &noise(Palette::Bw, 1)).await;
        assert!(matches!(answer, Delivered::Permanent { .. }), "{address:?}: {answer:?}");
    }
    let tag = tag(Palette::Bw).await;
    let answer = send(&tag.address().to_string(), &noise(Palette::Grey4, 1)).await;
    assert!(matches!(answer, Delivered::Permanent { .. }), "{answer:?}");
}
