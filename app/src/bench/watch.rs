//! What the process needs while it works: waiting rows, memory, processor time.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use domain::QueueName;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::platform::Platform;

/// Between two looks at the queues.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What was seen of one queue.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Seen {
    /// The largest number of waiting rows.
    pub(super) peak_waiting: i64,
    /// When something waited or was leased there last, since the start.
    pub(super) busy_until: Duration,
}

/// Follows the queues until stopped.
pub(super) struct Watch {
    seen: Arc<Mutex<BTreeMap<QueueName, Seen>>>,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Watch {
    pub(super) fn start(platform: &Platform) -> Self {
        let (seen, stop) = (Arc::new(Mutex::new(BTreeMap::<QueueName, Seen>::new())), CancellationToken::new());
        let (platform, noted, stopped) = (platform.clone(), Arc::clone(&seen), stop.clone());
        let started = Instant::now();
        let task = tokio::spawn(async move {
            let mut every = tokio::time::interval(LOOK_EVERY);
            loop {
                tokio::select! {
                    () = stopped.cancelled() => return,
                    _ = every.tick() => {}
                }
                // A look that fails is one less; the measurement itself fails where it must.
                for backlog in platform.backlogs().await.unwrap_or_default() {
                    let mut noted = noted.lock().unwrap_or_else(PoisonError::into_inner);
                    let queue = noted.entry(backlog.queue).or_default();
                    queue.peak_waiting = queue.peak_waiting.max(backlog.waiting);
                    if backlog.waiting + backlog.leased > 0 {
                        queue.busy_until = started.elapsed();
                    }
                }
            }
        });
        Self { seen, stop, task }
    }

    /// What was seen, by queue.
    pub(super) async fn stop(self) -> BTreeMap<QueueName, Seen> {
        self.stop.cancel();
        // It ends by itself, and cannot fail.
        let _ = self.task.await;
        std::mem::take(&mut *self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Wall time and processor time since a moment.
pub(super) struct Spent {
    started: Instant,
    cpu: Duration,
    writer: Duration,
}

impl Spent {
    pub(super) fn start() -> Self {
        Self { started: Instant::now(), cpu: cpu("/proc/self/stat"), writer: writer_cpu() }
    }

    pub(super) fn wall(&self) -> Duration {
        self.started.elapsed()
    }

    /// Of all threads.
    pub(super) fn cpu(&self) -> Duration {
        cpu("/proc/self/stat").saturating_sub(self.cpu)
    }

    /// Of the thread on which SQLite writes.
    pub(super) fn writer(&self) -> Duration {
        writer_cpu().saturating_sub(self.writer)
    }
}

/// Processor time of a process or thread: fields 14 and 15 of its `stat`, in hundredths of a second.
fn cpu(stat: &str) -> Duration {
    let text = std::fs::read_to_string(stat).unwrap_or_default();
    let after_name = text.rsplit(')').next().unwrap_or_default();
    let ticks: u64 = after_name.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}

/// SQLite's thread of the writer: the first connection that the process opens.
fn writer_cpu() -> Duration {
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else { return Duration::ZERO };
    threads
        .flatten()
        .map(|thread| thread.path())
        .find(|path| std::fs::read_to_string(path.join("comm")).is_ok_and(|name| name.trim() == "sqlite-1"))
        .map_or(Duration::ZERO, |path| cpu(&path.join("stat").to_string_lossy()))
}

/// The largest resident memory of the process so far, in MiB; 0 where the system does not say.
pub(super) fn peak_rss_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()).map_or(0, |kib| kib / 1024)
}

/// Others' work on this machine, over a minute: the first figure of its load average.
pub(super) fn load_average() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().and_then(|field| field.parse().ok()).unwrap_or_default()
}
