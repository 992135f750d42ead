//! CPU work off the async threads, on rayon's one pool, with panics contained.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rayon::iter::{IntoParallelIterator as _, ParallelIterator as _};
use tokio::sync::oneshot;

use super::CallError;

/// Runs `work` on every item in parallel, in order, and waits without blocking an async thread. `work` contains its own
/// panics (see [`contained`]).
pub(crate) async fn on_cpu<T, R>(
    items: Vec<T>,
    work: impl Fn(T) -> R + Send + Sync + 'static,
) -> Result<Vec<R>, CallError>
where
    T: Send + 'static,
    R: Send + 'static,
{
    if items.is_empty() {
        return Ok(Vec::new());
    }
    let (done, results) = oneshot::channel();
    rayon::spawn(move || {
        let results: Vec<R> = items.into_par_iter().map(work).collect();
        // The batch was dropped meanwhile: nobody waits.
        let _ = done.send(results);
    });
    results.await.map_err(|_| CallError::answer("the parallel work ended without a result"))
}

/// Runs `work` and turns a panic into `panicked`. What `work` touches is thrown away after a panic.
pub(crate) fn contained<R>(work: impl FnOnce() -> R, panicked: impl FnOnce() -> R) -> R {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| panicked())
}
