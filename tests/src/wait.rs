//! The one place where tests wait.
//!
//! Nothing here sleeps for a guess: a condition is looked at, again and again at [`POLL`], until it holds or its limit
//! has passed; then the test fails with what was still missing.

use std::{fmt::Display, future::Future, time::Duration};

use tokio::time::{Instant, MissedTickBehavior, interval};

/// Time between two looks: short against every limit, long enough that looking costs nothing (100 ms of a request's
/// time would be noticed by the gateway's own figures, 50 ms of SQLite reading would not).
pub const POLL: Duration = Duration::from_millis(40);

/// Looks until the condition gives a value.
///
/// `look` answers `Err(what is still missing)` while it does not hold. `what` says in the failure what was waited for.
pub async fn until<T, E, F, Fut>(what: &str, limit: Duration, mut look: F) -> T
where
    E: Display,
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, E>>,
{
    let end = Instant::now() + limit;
    let mut ticks = interval(POLL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        match look().await {
            Ok(value) => return value,
            Err(missing) if Instant::now() >= end => panic!("{what}: not within {limit:?}: {missing}"),
            Err(_) => {}
        }
    }
}

/// Looks during the whole of `span` and fails as soon as the condition does not hold: for "nothing happens".
pub async fn throughout<E, F, Fut>(what: &str, span: Duration, mut look: F)
where
    E: Display,
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<(), E>>,
{
    let end = Instant::now() + span;
    let mut ticks = interval(POLL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while Instant::now() < end {
        ticks.tick().await;
        if let Err(broken) = look().await {
            panic!("{what}: {broken}");
        }
    }
}

/// Lets a span pass, only where a moment in time is what is tested: a process killed at random.
pub async fn moment(span: Duration) {
    tokio::time::sleep(span).await;
}
