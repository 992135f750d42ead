//! What was taken and did not arrive.

use super::*;

/// OEPL #567: an uploaded picture cannot be refreshed to the tag, since its source is gone.
#[tokio::test]
async fn a_picture_that_the_radio_reset_lost_is_seen_as_lost() {
    let bench = Bench::new(&[0x33]).await;
    let picture = noise(0x33, 1);
    let pending = bench.sent(0, &picture).await;
    bench.pass(1);
    assert!(is_underway(&bench.look(&pending).await, DeliveryState::Queued));
    bench.control(Control::RadioReset);
    bench.pass(CHECK_IN_S);
    assert!(is_lost(&bench.look(&pending).await, "not found: /temp/"));
    // HA #124: the complaint that people see.
    assert!(bench.access_point.errors().iter().any(|error| error.starts_with("Not found: /temp/")));
    let again = bench.sent(0, &picture).await;
    bench.pass(CHECK_IN_S);
    assert!(is_confirmed(&bench.look(&again).await));
}

/// OEPL #249: displays stop updating after a while. The nightly reboot throws away what waits, without an error.
#[tokio::test]
async fn what_waits_over_the_nightly_reboot_is_seen_as_lost_and_what_is_shown_is_not_sent_again() {
    let bench = Bench::with(&[0x33, 0x33], |settings| {
        settings.reboots_nightly = true;
        settings.tags[1].check_in_ms = 24 * 3_600_000;
    })
    .await;
    let (shown, waiting) = (noise(0x33, 1), noise(0x33, 2));
    let first = bench.sent(0, &shown).await;
    let second = bench.sent(1, &waiting).await;
    bench.pass(CHECK_IN_S);
    assert!(is_confirmed(&bench.look(&first).await));
    assert!(is_underway(&bench.look(&second).await, DeliveryState::Accepted), "the tag is not due for long");
    bench.pass(18 * 3_600);
    assert!(is_lost(&bench.look(&second).await, "not found"));
    assert!(is_confirmed(&bench.send(0, &shown).await), "no send");
    assert_eq!(bench.access_point.traffic().uploads, 2);
}

/// OEPL #85: stuck on "waiting for data", the access point lost in the middle.
#[tokio::test]
async fn an_access_point_that_goes_away_is_unreachable_and_its_losses_are_seen_on_its_return() {
    let bench = Bench::new(&[0x33]).await;
    let picture = noise(0x33, 1);
    let pending = bench.sent(0, &picture).await;
    bench.control(Control::Power(false));
    assert!(matches!(bench.look(&pending).await, Delivered::Unreachable { .. }));
    assert!(matches!(bench.send(0, &picture).await, Delivered::Unreachable { .. }));
    bench.control(Control::Power(true));
    bench.pass(31);
    assert!(is_lost(&bench.look(&pending).await, "not found"));
    let again = bench.sent(0, &picture).await;
    bench.pass(CHECK_IN_S);
    assert!(is_confirmed(&bench.look(&again).await));
}

/// A transfer that breaks off drops the queue and leaves the count standing.
#[tokio::test]
async fn a_transfer_that_broke_off_is_seen_behind_its_pending_count() {
    let bench = Bench::new(&[0x33]).await;
    bench.control(Control::Transfer(mac(0), TransferFault::Lost));
    let picture = noise(0x33, 1);
    let pending = bench.sent(0, &picture).await;
    bench.pass(CHECK_IN_S);
    assert!(is_lost(&bench.look(&pending).await, "broke off"));
    let again = bench.sent(0, &picture).await;
    bench.pass(CHECK_IN_S);
    assert!(is_confirmed(&bench.look(&again).await));
    assert_eq!(bench.screen(0).unwrap(), picture);
}

#[tokio::test]
async fn a_late_transfer_stays_queued_and_is_not_sent_again() {
    let bench = Bench::new(&[0x33]).await;
    bench.control(Control::Transfer(mac(0), TransferFault::Late(3)));
    let pending = bench.sent(0, &noise(0x33, 1)).await;
    for _ in 0..3 {
        bench.pass(CHECK_IN_S);
        assert!(is_underway(&bench.look(&pending).await, DeliveryState::Queued));
    }
    bench.pass(CHECK_IN_S);
    assert!(is_confirmed(&bench.look(&pending).await));
}

/// OEPL #237: transferred, but not shown until a button is pressed. No more is claimed than what is known.
#[tokio::test]
async fn a_picture_that_is_transferred_and_not_shown_is_never_called_displayed() {
    let bench = Bench::new(&[0x33]).await;
    bench.control(Control::Transfer(mac(0), TransferFault::NotShown));
    let pending = bench.sent(0, &noise(0x33, 1)).await;
    bench.pass(CHECK_IN_S);
    let answer = bench.look(&pending).await;
    assert!(matches!(answer, Delivered::Confirmed { evidence: Evidence::Transferred, .. }), "{answer:?}");
    assert!(bench.screen(0).is_none());
    // The likely cause: an upload that names a preload parameter at all. Ours names none.
    assert_eq!(bench.access_point.traffic().stored_only, 0);
}

/// OEPL #171: flash is full, nothing is prepared, nothing is said.
#[tokio::test]
async fn with_full_flash_a_picture_stays_accepted_and_the_report_tells_why() {
    let bench = Bench::new(&[0x33]).await;
    bench.control(Control::FlashFree(31_000));
    let pending = bench.sent(0, &noise(0x33, 1)).await;
    bench.pass(10 * CHECK_IN_S);
    assert!(is_underway(&bench.look(&pending).await, DeliveryState::Accepted));
    assert_eq!(bench.health().await.flash_free, 31_000);
    bench.control(Control::FlashFree(1_000_000));
    bench.pass(2 * CHECK_IN_S);
    assert!(is_confirmed(&bench.look(&pending).await));
}

/// OEPL #249, the other half: nothing is prepared in the hours of sleep.
#[tokio::test]
async fn in_the_hours_of_sleep_a_picture_stays_accepted() {
    let bench = Bench::with(&[0x33], |settings| settings.sleeps = Some((10, 12))).await;
    let pending = bench.sent(0, &noise(0x33, 1)).await;
    bench.pass(3_600);
    assert!(is_underway(&bench.look(&pending).await, DeliveryState::Accepted));
    bench.pass(3_600);
    assert!(is_confirmed(&bench.look(&pending).await));
}

/// HA #278: people cut the power of access points and send everything again, two minutes apart. Only what is missing is.
#[tokio::test]
async fn after_a_power_cycle_exactly_the_undelivered_ones_are_lost() {
    let bench = Bench::new(&[0x33, 0x33, 0x33]).await;
    let pictures: Vec<Picture> = (0..3).map(|seed| noise(0x33, seed)).collect();
    let first = bench.sent(0, &pictures[0]).await;
    bench.pass(CHECK_IN_S);
    let rest = [bench.sent(1, &pictures[1]).await, bench.sent(2, &pictures[2]).await];
    bench.control(Control::Reboot);
    bench.pass(31);
    assert!(is_confirmed(&bench.look(&first).await));
    for pending in &rest {
        assert!(is_lost(&bench.look(pending).await, "not found"));
    }
}

/// A tag that booted shows nothing, and says so.
#[tokio::test]
async fn a_tag_that_booted_is_not_taken_for_showing_its_picture() {
    let bench = Bench::new(&[0x33]).await;
    let picture = noise(0x33, 1);
    let pending = bench.sent(0, &picture).await;
    bench.pass(CHECK_IN_S);
    assert!(is_confirmed(&bench.look(&pending).await));
    bench.control(Control::RebootTag(mac(0)));
    bench.pass(CHECK_IN_S);
    assert!(is_lost(&bench.look(&pending).await, "reports no picture"));
    let again = bench.sent(0, &picture).await;
    bench.pass(CHECK_IN_S);
    assert!(is_confirmed(&bench.look(&again).await));
    assert_eq!(bench.screen(0).unwrap(), picture);
}

#[tokio::test]
async fn a_tag_that_another_access_point_took_over_is_lost_here() {
    let bench = Bench::new(&[0x33]).await;
    let picture = noise(0x33, 1);
    let pending = bench.sent(0, &picture).await;
    bench.control(Control::TakenOver(mac(0), true));
    bench.pass(CHECK_IN_S);
    assert!(
        is_lost(&bench.look(&pending).await, "another access point")
            || is_lost(&bench.look(&pending).await, "not found")
    );
    assert!(matches!(bench.send(0, &picture).await, Delivered::Retryable { .. }));
}

#[tokio::test]
async fn a_duplicate_transfer_changes_nothing_but_the_count_of_refreshes() {
    let bench = Bench::new(&[0x33]).await;
    bench.control(Control::Transfer(mac(0), TransferFault::Twice));
    let picture = noise(0x33, 1);
    let pending = bench.sent(0, &picture).await;
    bench.pass(CHECK_IN_S);
    assert!(is_confirmed(&bench.look(&pending).await));
    assert_eq!((bench.screen(0).unwrap(), bench.refreshes(0)), (picture, 2));
}
