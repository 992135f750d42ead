//! Lanes in virtual time.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::services::hardware_exporter::drivers::{Fence, Looks};

/// What an upload takes.
const UPLOAD: Duration = Duration::from_millis(20);
/// What reading, announcing and reporting takes between two batches.
const BETWEEN: Duration = Duration::from_millis(50);

fn manner() -> Manner {
    Manner {
        per_call: 1,
        at_once: 1,
        pause: Duration::ZERO,
        call_limit: Duration::from_secs(30),
        looks: Some(Looks { first: Duration::from_secs(45), longest: Duration::from_mins(10) }),
        fence: Fence::Exporter,
    }
}

/// One lane's share of a batch: made ready in its turn, then sent one after the other.
async fn share(lane: Arc<Lane>, waiting: u32, at_work: Arc<AtomicUsize>) {
    let far = Instant::now() + Duration::from_mins(1);
    let turn = lane.turn(far).await.unwrap();
    tokio::time::sleep(BETWEEN).await;
    let _road = lane.road(far).await.unwrap();
    drop(turn);
    for _ in 0..waiting {
        let counted = Arc::clone(&at_work);
        let upload = async move {
            assert_eq!(counted.fetch_add(1, Ordering::SeqCst), 0, "two uploads at once");
            tokio::time::sleep(UPLOAD).await;
            counted.fetch_sub(1, Ordering::SeqCst);
            Vec::new()
        };
        let times = CallTimes { begin_by: far, wait_until: far, deadline: far, pause: Duration::ZERO };
        let order = Order { about: Vec::new(), times, wanted: || true, call: upload };
        assert!(matches!(lane.call(order).await, Called::Answered(_)));
    }
}

/// In virtual time: four access points that take 20 ms a picture, unevenly many labels a batch, two batches at once.
#[tokio::test(start_paused = true)]
async fn four_access_points_are_kept_busy_and_no_two_calls_overlap_on_one() {
    let lanes = Lanes::default();
    let names: Vec<Urn> = (0..4).map(|id| format!("t/T/s/S/accesspoints/A{id}").parse().unwrap()).collect();
    let of_lane: Vec<(Arc<Lane>, Arc<AtomicUsize>)> =
        names.iter().map(|name| (lanes.of(name, &manner()), Arc::default())).collect();
    let (begun, mut sent) = (Instant::now(), 0);
    let mut last = None;
    for round in 0..20 {
        // 148 labels by chance: a quarter each, give or take nine.
        let shares: Vec<_> = of_lane
            .iter()
            .zip(0..)
            .map(|((lane, at_work), index)| {
                let waiting = 37 + (round * 7 + index * 5) % 19 - 9;
                sent += waiting;
                tokio::spawn(share(Arc::clone(lane), waiting, Arc::clone(at_work)))
            })
            .collect();
        let before = last.replace(futures::future::join_all(shares));
        if let Some(before) = before {
            assert!(before.await.iter().all(Result::is_ok));
        }
    }
    if let Some(last) = last {
        assert!(last.await.iter().all(Result::is_ok));
    }
    let (busy, possible) = (UPLOAD * sent, begun.elapsed() * 4);
    assert!(busy * 100 >= possible * 93, "{busy:?} of {possible:?}");
}

/// In virtual time: a call that hangs is waited for no longer than the batch, holds its own lane until its deadline,
/// and its late answer is kept.
#[tokio::test(start_paused = true)]
async fn a_hanging_call_holds_its_own_lane_only_and_is_dropped_at_its_deadline() {
    let lanes = Lanes::default();
    let lane = lanes.of(&"t/T/s/S/accesspoints/A".parse().unwrap(), &manner());
    let label = LabelRef::of(&"t/T/s/S/esls/E".parse().unwrap()).unwrap();
    let sending = Sending { label, digest: vec![1; 32], at: Timestamp::from_ms(7) };
    let now = Instant::now();
    let times = CallTimes {
        begin_by: now + Duration::from_secs(3),
        wait_until: now + Duration::from_secs(3),
        deadline: now + Duration::from_secs(30),
        pause: Duration::ZERO,
    };
    let order = Order { about: vec![sending.clone()], times, wanted: || true, call: std::future::pending() };
    let called = lane.call(order).await;
    assert_eq!((called, now.elapsed()), (Called::GoesOn, Duration::from_secs(3)));
    assert!(lane.is_occupied() && lane.take_late(&sending).is_none());
    tokio::time::sleep(Duration::from_secs(28)).await;
    assert!(!lane.is_occupied());
    let other = Sending { at: Timestamp::from_ms(8), ..sending.clone() };
    assert!(matches!(lane.take_late(&sending), Some(Delivered::Unreachable { .. })));
    assert_eq!(lane.take_late(&other), None);
}

/// Times of a call that nobody hurries.
fn unhurried() -> CallTimes {
    let far = Instant::now() + Duration::from_mins(1);
    CallTimes { begin_by: far, wait_until: far, deadline: far, pause: Duration::ZERO }
}

/// A call that notes `number` when it begins, and takes an upload's time.
fn noting(noted: &Arc<Mutex<Vec<u32>>>, number: u32) -> impl Future<Output = Vec<Delivered>> + Send + 'static {
    let noted = Arc::clone(noted);
    async move {
        noted.lock().unwrap().push(number);
        tokio::time::sleep(UPLOAD).await;
        Vec::new()
    }
}

/// An order for `call` that is wanted in any case.
fn order<C>(call: C) -> Order<fn() -> bool, C> {
    Order { about: Vec::new(), times: unhurried(), wanted: || true, call }
}

fn lane() -> Arc<Lane> {
    Lanes::default().of(&"t/T/s/S/accesspoints/A".parse().unwrap(), &manner())
}

/// In virtual time, where a timer that is not needed would show as a millisecond.
#[tokio::test(start_paused = true)]
async fn calls_asked_for_together_come_in_that_order_and_nothing_lies_between() {
    let (lane, noted, begun) = (lane(), Arc::default(), Instant::now());
    let calls = (0..20).map(|number| lane.call(order(noting(&noted, number))));
    let called = futures::future::join_all(calls).await;
    assert!(called.iter().all(|called| *called == Called::Answered(Vec::new())), "{called:?}");
    assert_eq!(*noted.lock().unwrap(), (0..20).collect::<Vec<_>>());
    assert_eq!(begun.elapsed(), UPLOAD * 20);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_nobody_wants_when_its_turn_comes_is_not_begun() {
    let (lane, noted) = (lane(), Arc::<Mutex<Vec<u32>>>::default());
    let (sends, asks) = (Arc::clone(&lane), Arc::clone(&lane));
    let failing = order(async move {
        tokio::time::sleep(UPLOAD).await;
        sends.noted(&[Delivered::Unreachable { cause: "refused".to_owned() }], Timestamp::from_ms(7));
        Vec::new()
    });
    let next = Order {
        about: Vec::new(),
        times: unhurried(),
        wanted: move || asks.gate(Timestamp::from_ms(7)) == Gate::Free,
        call: noting(&noted, 1),
    };
    let (first, second) = tokio::join!(lane.call(failing), lane.call(next));
    assert_eq!((first, second), (Called::Answered(Vec::new()), Called::NotBegun));
    assert_eq!(*noted.lock().unwrap(), Vec::<u32>::new());
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_for_its_turn_goes_with_whoever_asked_for_it() {
    let (lane, noted) = (lane(), Arc::default());
    let running = lane.call(order(noting(&noted, 1)));
    {
        let waiting = lane.call(order(noting(&noted, 2)));
        tokio::pin!(running, waiting);
        tokio::select! {
            biased;
            _ = &mut running => panic!("over at once"),
            _ = &mut waiting => panic!("begun beside another"),
            () = tokio::time::sleep(UPLOAD / 2) => {}
        }
    }
    assert_eq!(lane.call(order(noting(&noted, 3))).await, Called::Answered(Vec::new()));
    // What was begun goes on to its end; what only waited does not begin.
    assert_eq!(*noted.lock().unwrap(), [1, 3]);
}
