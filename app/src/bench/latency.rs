//! How long an operator waits for a trigger's answer, at a small and at a large scope, call by call in turn.

use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::figures::{Times, ratio};

/// Calls of each kind.
pub(super) const CALLS: u32 = 2_000;
/// Calls before the first that counts.
const WARM_UP: u32 = 50;

/// One way to call a trigger: `true` for a dry run, then the number of the call.
pub(super) type Call = dyn Fn(bool, u32) -> BoxFuture<'static, anyhow::Result<()>> + Sync;

/// Calls both in turn and gives `{small, large, p99_ratio}`.
pub(super) async fn interleaved(small: &Call, large: &Call, dry_run: bool) -> anyhow::Result<(Value, f64)> {
    let (mut of_small, mut of_large) = (Times::default(), Times::default());
    for number in 0..CALLS + WARM_UP {
        // Whoever comes second may find caches warm, so they change places.
        let turns = if number % 2 == 0 { [(true, small), (false, large)] } else { [(false, large), (true, small)] };
        for (is_small, call) in turns {
            let time = timed(call(dry_run, number)).await?;
            if number >= WARM_UP {
                if is_small { of_small.push(time) } else { of_large.push(time) }
            }
        }
    }
    let p99_ratio = ratio(of_large.quantile_ms(0.99), of_small.quantile_ms(0.99)).unwrap_or_default();
    let p50_ratio = ratio(of_large.quantile_ms(0.50), of_small.quantile_ms(0.50));
    let figures = json!({
        "small": of_small.to_json(), "large": of_large.to_json(), "p50_ratio": p50_ratio, "p99_ratio": p99_ratio,
    });
    Ok((figures, p99_ratio))
}

async fn timed(call: BoxFuture<'static, anyhow::Result<()>>) -> anyhow::Result<Duration> {
    let started = Instant::now();
    call.await?;
    Ok(started.elapsed())
}
