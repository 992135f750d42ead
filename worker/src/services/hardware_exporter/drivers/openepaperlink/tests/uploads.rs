//! Whether the access point took it.

use super::*;

/// The way everything should go.
#[tokio::test]
async fn a_picture_goes_from_accepted_over_queued_to_confirmed() {
    let bench = Bench::new(&[0x33]).await;
    let picture = noise(0x33, 1);
    let pending = bench.sent(0, &picture).await;
    assert!(bench.screen(0).is_none());
    bench.pass(1);
    assert!(is_underway(&bench.look(&pending).await, DeliveryState::Queued));
    bench.pass(CHECK_IN_S);
    assert!(is_confirmed(&bench.look(&pending).await));
    assert_eq!(bench.screen(0).unwrap(), picture);
    assert_eq!(bench.refreshes(0), 1);
}

/// HA #199: uploads fail with 409 while the access point is not in its running state.
#[tokio::test]
async fn a_409_after_a_boot_is_tried_again_and_nothing_counts_as_sent() {
    let bench = Bench::with(&[0x33], |settings| settings.status = StatusBehaviour::Real).await;
    bench.control(Control::Reboot);
    let picture = noise(0x33, 1);
    let refused = bench.send(0, &picture).await;
    assert!(matches!(&refused, Delivered::Retryable { cause } if cause.contains("409")), "{refused:?}");
    bench.pass(31);
    bench.sent(0, &picture).await;
}

/// The same with firmware that says 200 to everything.
#[tokio::test]
async fn a_200_that_took_nothing_is_seen_through() {
    let bench = Bench::new(&[0x33]).await;
    bench.control(Control::Reboot);
    let refused = bench.send(0, &noise(0x33, 1)).await;
    assert!(matches!(&refused, Delivered::Retryable { cause } if cause.contains("took nothing")), "{refused:?}");
    assert_eq!(bench.access_point.traffic().taken, 0);
}

/// A wrong status on a picture that was taken: the record counts, so it is not sent a second time.
#[tokio::test]
async fn an_error_status_on_a_taken_picture_is_seen_through() {
    let bench = Bench::new(&[0x33]).await;
    bench.control(Control::Status(StatusFault { status: 500, is_taken: true }));
    let picture = noise(0x33, 1);
    let pending = bench.sent(0, &picture).await;
    bench.pass(CHECK_IN_S);
    assert!(is_confirmed(&bench.look(&pending).await));
    assert_eq!(bench.access_point.traffic().uploads, 1);
}

/// And the other way round.
#[tokio::test]
async fn an_ok_status_on_a_dropped_picture_is_seen_through() {
    let bench = Bench::with(&[0x33], |settings| settings.status = StatusBehaviour::Real).await;
    bench.control(Control::Status(StatusFault { status: 200, is_taken: false }));
    let refused = bench.send(0, &noise(0x33, 1)).await;
    assert!(matches!(refused, Delivered::Retryable { .. }), "{refused:?}");
}

/// OEPL #187: a picture of another size is taken without a word, and the tag waits for data for ever.
#[tokio::test]
async fn a_picture_of_the_wrong_size_is_never_sent() {
    let bench = Bench::new(&[0x33]).await;
    let refused = bench.send(0, &noise(0x36, 1)).await;
    assert!(matches!(&refused, Delivered::Permanent { cause } if cause.contains("384 × 168")), "{refused:?}");
    assert_eq!(bench.access_point.traffic().uploads, 0);
}

/// OEPL #209: red vanishes on a panel without red.
#[tokio::test]
async fn an_ink_the_panel_lacks_is_refused_and_an_unused_one_is_not() {
    let bench = Bench::new(&[0x40]).await;
    let red = noise_of(384, 168, Palette::Bwr, 1);
    let refused = bench.send(0, &red).await;
    assert!(matches!(&refused, Delivered::Permanent { cause } if cause.contains("red")), "{refused:?}");
    let no_red = red.indices().iter().map(|index| index & 1).collect();
    let black = Picture::new(384, 168, Palette::Bwr, no_red).unwrap();
    let pending = bench.sent(0, &black).await;
    bench.pass(CHECK_IN_S);
    assert!(is_confirmed(&bench.look(&pending).await));
    assert_eq!(bench.screen(0).unwrap().indices(), black.indices());
}

/// OEPL #231: the tag database is reset every few weeks.
#[tokio::test]
async fn a_tag_the_access_point_does_not_know_is_tried_again_until_it_has_checked_in() {
    let bench = Bench::new(&[0x33]).await;
    let picture = noise(0x33, 1);
    let pending = bench.sent(0, &picture).await;
    bench.control(Control::ForgetTags);
    assert!(is_lost(&bench.look(&pending).await, "database was reset"));
    let unknown = bench.send(0, &picture).await;
    assert!(matches!(&unknown, Delivered::Retryable { cause } if cause.contains("does not know")), "{unknown:?}");
    bench.pass(CHECK_IN_S);
    let again = bench.sent(0, &picture).await;
    bench.pass(CHECK_IN_S);
    assert!(is_confirmed(&bench.look(&again).await));
}

/// ZBS #21: replaced faster than the tag checks in, nothing is ever delivered. And two in the queue are two refreshes.
#[tokio::test]
async fn what_waits_is_dropped_before_its_successor_is_sent() {
    let bench = Bench::new(&[0x33]).await;
    let mut newest = noise(0x33, 0);
    let mut pending = bench.sent(0, &newest).await;
    for seed in 1..5 {
        bench.pass(5);
        newest = noise(0x33, seed);
        let answer = bench.replace(0, &newest, Some(pending)).await;
        pending = super::pending(0, &newest, &answer);
    }
    bench.pass(CHECK_IN_S);
    assert!(is_confirmed(&bench.look(&pending).await));
    assert_eq!(bench.screen(0).unwrap(), newest);
    assert_eq!(bench.refreshes(0), 1, "only the newest was shown");
}

/// A restart of the worker forgot what waits; the record tells.
#[tokio::test]
async fn what_waits_is_dropped_also_when_nobody_remembers_it() {
    let bench = Bench::new(&[0x33]).await;
    bench.sent(0, &noise(0x33, 1)).await;
    bench.pass(1);
    let newest = noise(0x33, 2);
    bench.sent(0, &newest).await;
    bench.pass(2 * CHECK_IN_S);
    assert_eq!(bench.screen(0).unwrap(), newest);
    assert_eq!(bench.refreshes(0), 1);
}

/// OEPL #436: a refresh without new data.
#[tokio::test]
async fn what_the_tag_holds_already_is_confirmed_without_sending() {
    let bench = Bench::new(&[0x33]).await;
    let picture = noise(0x33, 1);
    bench.sent(0, &picture).await;
    bench.pass(CHECK_IN_S);
    assert!(is_confirmed(&bench.send(0, &picture).await));
    assert_eq!(bench.access_point.traffic().uploads, 1);
    assert_eq!(bench.refreshes(0), 1);
}

/// OEPL #255: another file for the same content means another hash and another refresh.
#[tokio::test]
async fn the_same_picture_sent_again_does_not_refresh_the_panel() {
    let bench = Bench::new(&[0x33]).await;
    let picture = noise(0x33, 1);
    let first = bench.sent(0, &picture).await;
    bench.pass(CHECK_IN_S);
    let answer = bench.replace(0, &picture, Some(first)).await;
    let again = pending(0, &picture, &answer);
    bench.pass(CHECK_IN_S);
    assert!(is_confirmed(&bench.look(&again).await));
    assert_eq!(bench.access_point.traffic().same, 1);
    assert_eq!(bench.refreshes(0), 1);
}

#[tokio::test]
async fn an_address_that_is_none_is_refused_before_anything_is_asked() {
    let bench = Bench::new(&[0x33]).await;
    for address in ["../../tagDB.json", "0000021A", "zz00021A00000000", "0000021A00000000&cmd=del"] {
        let delivery = Delivery {
            label: label(0),
            hardware_address: address.to_owned(),
            digest: noise(0x33, 1).digest(),
            picture: noise(0x33, 1),
            encoded: bytes::Bytes::new(),
            replaces: None,
        };
        let shipment = Shipment { place: bench.place(), generation: 1, deliveries: vec![delivery] };
        let answers = bench.driver.send(shipment).await;
        assert!(matches!(answers.as_slice(), [Delivered::Permanent { .. }]), "{answers:?}");
    }
    assert_eq!(bench.access_point.traffic().requests, 0);
}

/// What is not on the list of addresses is not connected to, wherever a record points.
#[tokio::test]
async fn an_access_point_that_is_not_on_the_list_gets_nothing() {
    let bench = Bench::new(&[0x33]).await;
    let driver = OpenEpaperLinkDriver::new(Outbound::new(AllowList::parse(["10.0.0.0/8"]).unwrap()), PACE);
    for address in [bench.place().address, "169.254.169.254".to_owned()] {
        let place = Place { address, ..bench.place() };
        let delivery = Delivery {
            label: label(0),
            hardware_address: mac(0).to_string(),
            digest: noise(0x33, 1).digest(),
            picture: noise(0x33, 1),
            encoded: bytes::Bytes::new(),
            replaces: None,
        };
        let answers = driver.send(Shipment { place, generation: 1, deliveries: vec![delivery] }).await;
        assert!(matches!(answers.as_slice(), [Delivered::Permanent { .. }]), "{answers:?}");
    }
    assert_eq!(bench.access_point.traffic().requests, 0);
}
