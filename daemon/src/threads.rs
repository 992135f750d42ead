//! The threads that a program's tasks run on.

use std::{future::Future, io, num::NonZero, thread};

use tokio::runtime::Builder;

/// Runs a program to its end.
///
/// With one thread more than there are cores: tasks compute for a millisecond or two in between (decoding, encoding,
/// comparing), and what comes meanwhile, an access point's answer for one, does not wait until they have.
///
/// # Errors
/// The system gives no threads.
pub fn run<T>(program: impl Future<Output = T>) -> io::Result<T> {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let runtime = Builder::new_multi_thread().worker_threads(cores + 1).enable_all().build()?;
    Ok(runtime.block_on(program))
}
