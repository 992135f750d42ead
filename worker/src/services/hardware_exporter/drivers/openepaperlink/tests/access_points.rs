//! The access point as a whole.

use super::*;

/// Reset detection: the uptime in the access point's report goes down.
#[tokio::test]
async fn a_boot_shows_in_the_uptime_and_counts_as_away_until_pictures_are_taken() {
    let bench = Bench::new(&[0x33]).await;
    let place = bench.place();
    assert_eq!(bench.driver.probe(&place).await, Probe::Up { uptime: Some(Duration::from_hours(1)) });
    bench.pass(100);
    assert_eq!(bench.driver.probe(&place).await, Probe::Up { uptime: Some(Duration::from_secs(3_700)) });
    bench.control(Control::Reboot);
    assert!(matches!(bench.driver.probe(&place).await, Probe::Away { .. }));
    bench.pass(40);
    assert_eq!(bench.driver.probe(&place).await, Probe::Up { uptime: Some(Duration::from_secs(40)) });
    bench.control(Control::Offline(true));
    assert!(matches!(bench.driver.probe(&place).await, Probe::Away { .. }));
}

/// OEPL #459: who listens all the time empties batteries in days.
#[tokio::test]
async fn asking_for_the_report_does_not_keep_tags_awake() {
    let bench = Bench::with(&[0x33], |settings| settings.tags[0].check_in_ms = 3_600_000).await;
    bench.health().await;
    while bench.access_point.listeners() > 0 {
        tokio::task::yield_now().await;
    }
    bench.pass(3_600);
    let pending = bench.sent(0, &noise(0x33, 1)).await;
    bench.pass(600);
    assert!(is_underway(&bench.look(&pending).await, DeliveryState::Accepted), "the tag sleeps on");
    bench.pass(3_000);
    assert!(is_confirmed(&bench.look(&pending).await));
}

/// From 256 tags on, the pages of the tag database repeat for ever.
#[tokio::test]
async fn three_hundred_tags_are_all_found_behind_pages_that_repeat() {
    let bench = Bench::new(&[0x33; 300]).await;
    let pictures: Vec<Picture> = [0, 255, 256, 299].map(|tag| noise(0x33, tag)).into();
    let mut waiting = Vec::new();
    for (tag, picture) in [0, 255, 256, 299].into_iter().zip(&pictures) {
        waiting.push(bench.sent(tag, picture).await);
    }
    bench.pass(CHECK_IN_S);
    let answers = bench.driver.look(Survey { place: bench.place(), pending: waiting }).await;
    assert!(answers.len() == 4 && answers.iter().all(is_confirmed), "{answers:?}");
}

/// fpoli/gicisky-tag #1: stuck at sending. A call ends, and the rest of a survey does not wait its turn to fail.
#[tokio::test]
async fn a_survey_of_an_access_point_that_is_away_ends_with_one_try() {
    let bench = Bench::new(&[0x33; 8]).await;
    let picture = noise(0x33, 1);
    let mut waiting = Vec::new();
    for tag in 0..8 {
        waiting.push(bench.sent(tag, &picture).await);
    }
    bench.control(Control::Offline(true));
    let answers = bench.driver.look(Survey { place: bench.place(), pending: waiting }).await;
    assert_eq!(answers.len(), 8);
    assert!(answers.iter().all(|answer| matches!(answer, Delivered::Unreachable { .. })), "{answers:?}");
}

/// One thing at a time: it has one processor and 32 KiB for an upload.
#[tokio::test]
async fn a_driver_never_has_two_requests_at_one_access_point_by_itself() {
    let bench = Bench::new(&[0x33; 4]).await;
    let mut waiting = Vec::new();
    for tag in 0..4 {
        waiting.push(bench.sent(tag, &noise(0x33, tag as u64)).await);
    }
    bench.pass(CHECK_IN_S);
    let answers = bench.driver.look(Survey { place: bench.place(), pending: waiting }).await;
    assert!(answers.iter().all(is_confirmed), "{answers:?}");
    assert_eq!(bench.access_point.traffic().most_at_once, 1);
    let manner = bench.driver.manner();
    assert_eq!((manner.per_call, manner.at_once), (1, 1));
}
