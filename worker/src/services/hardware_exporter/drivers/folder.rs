//! The `folder` driver: per label a PNG as the panel would show it, `{base}/{tenant}/{store}/{label}.png`.
//!
//! Invariants
//! - A reader sees a whole old or a whole new picture, also after a crash: written beside, synced, renamed, and the
//!   directory synced once a shipment, before anything is confirmed.
//! - A store's folder never goes backwards. Its `.generation` file holds the largest lease generation that wrote here;
//!   it is locked while a shipment is written, and a shipment of a smaller generation is refused whole. So a worker that
//!   lost its lease in mid-air writes either before its successor or not at all. This holds where file locks do, i.e.
//!   on one machine's file systems. The platform's generations only grow, and go on beyond its clock at every start,
//!   so also past a reset or a restored backup. Where the clock itself went back, the folder is emptied by hand, and the
//!   refusal says so.

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::{self, ErrorKind, Read as _, Write as _},
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use domain::{RecordId, Urn};
use futures::{FutureExt as _, future::BoxFuture};
use proto::records::v1::Evidence;
use rayon::iter::{IntoParallelRefIterator as _, ParallelIterator as _};

use super::{Delivered, Delivery, Driver, Fence, Manner, Place, Probe, Shipment};
use crate::{ExporterSettings, runtime::contained};

/// Holds a store folder's generation and is its lock. No label's file has this name: those end in `.png`.
const GENERATION_FILE: &str = ".generation";
/// Written and removed to see whether anything can be. No label's file has this name either.
const TRIAL_FILE: &str = ".trial";
/// Files written and synced at once: syncs of one file system share journal commits, and few threads reach that.
const WRITERS: usize = 8;
/// Files of one call: as many as a batch of the exporter has labels at most.
const PER_CALL: usize = 2_000;
/// Longest wait for one call: a disk that takes longer is broken.
const CALL_LIMIT: Duration = Duration::from_mins(1);

/// The driver.
pub(crate) struct FolderDriver {
    folder: Arc<Folder>,
}

struct Folder {
    base: PathBuf,
    discard: bool,
    discarded: AtomicU64,
}

impl FolderDriver {
    pub(crate) fn new(settings: &ExporterSettings) -> Self {
        Self {
            folder: Arc::new(Folder {
                base: settings.folder.clone(),
                discard: settings.discard,
                discarded: AtomicU64::new(0),
            }),
        }
    }
}

impl Driver for FolderDriver {
    fn name(&self) -> &'static str {
        "folder"
    }

    fn manner(&self) -> Manner {
        Manner {
            // Files of one call share the sync of their folder.
            per_call: PER_CALL,
            at_once: 1,
            pause: Duration::ZERO,
            call_limit: CALL_LIMIT,
            looks: None,
            fence: Fence::Target,
        }
    }

    fn send(&self, shipment: Shipment) -> BoxFuture<'_, Vec<Delivered>> {
        let count = shipment.deliveries.len();
        let folder = Arc::clone(&self.folder);
        async move {
            let written = tokio::task::spawn_blocking(move || folder.write(&shipment)).await;
            written.unwrap_or_else(|error| {
                vec![Delivered::Retryable { cause: format!("the writer ended: {error}") }; count]
            })
        }
        .boxed()
    }

    fn probe<'a>(&'a self, place: &'a Place) -> BoxFuture<'a, Probe> {
        let folder = Arc::clone(&self.folder);
        async move {
            let Some(dir) = folder.of_store(&place.access_point).filter(|_| !folder.discard) else {
                return Probe::Up { uptime: None };
            };
            let tried = tokio::task::spawn_blocking(move || try_to_write(&dir)).await;
            match tried.unwrap_or_else(|error| Err(format!("the writer ended: {error}"))) {
                Ok(()) => Probe::Up { uptime: None },
                Err(cause) => Probe::Away { cause },
            }
        }
        .boxed()
    }
}

/// A picture as a file, or why it cannot be one.
type Encoded = Result<Vec<u8>, String>;

impl Folder {
    /// Where the pictures of an access point's store lie.
    fn of_store(&self, access_point: &Urn) -> Option<PathBuf> {
        Some(self.base.join(access_point.tenant().as_str()).join(access_point.store()?.as_str()))
    }

    fn write(&self, shipment: &Shipment) -> Vec<Delivered> {
        let pngs: Vec<Encoded> = shipment.deliveries.par_iter().map(encode).collect();
        if self.discard {
            let sent = self.discarded.fetch_add(pngs.len() as u64, Ordering::Relaxed) + pngs.len() as u64;
            tracing::info!(sent, "pictures counted and discarded");
            return vec![confirmed("counted and thrown away"); pngs.len()];
        }
        let mut stores: BTreeMap<_, Vec<usize>> = BTreeMap::new();
        for (index, delivery) in shipment.deliveries.iter().enumerate() {
            stores.entry((&delivery.label.tenant, &delivery.label.store)).or_default().push(index);
        }
        let mut answers: Vec<Delivered> = Vec::new();
        answers.resize(pngs.len(), Delivered::Retryable { cause: "not written".to_owned() });
        for ((tenant, store), indices) in stores {
            let dir = self.base.join(tenant.as_str()).join(store.as_str());
            let files: Vec<(&RecordId, &Encoded)> = indices
                .iter()
                .filter_map(|index| Some((&shipment.deliveries.get(*index)?.label.id, pngs.get(*index)?)))
                .collect();
            for (index, answer) in indices.iter().zip(write_store(&dir, shipment.generation, &files)) {
                if let Some(slot) = answers.get_mut(*index) {
                    *slot = answer;
                }
            }
        }
        answers
    }
}

fn confirmed(proof: &str) -> Delivered {
    Delivered::Confirmed { evidence: Evidence::Written, proof: proof.to_owned() }
}

fn encode(delivery: &Delivery) -> Encoded {
    contained(
        || delivery.picture.to_png().map_err(|error| error.to_string()),
        || Err("the PNG writer panicked".to_owned()),
    )
}

fn write_store(dir: &Path, generation: i64, files: &[(&RecordId, &Encoded)]) -> Vec<Delivered> {
    let all = |answer: Delivered| vec![answer; files.len()];
    let io = |error: io::Error| Delivered::Unreachable { cause: format!("{}: {error}", dir.display()) };
    // The lock is held until the end of this function: until everything is synced.
    let _held = match hold(dir, generation) {
        Ok(Ok(lock)) => lock,
        Ok(Err(later)) => {
            let lock = dir.join(GENERATION_FILE);
            return all(Delivered::Superseded {
                cause: format!(
                    "{} was written under lease generation {later}, this is {generation}; if the platform was reset and its clock set back, remove the folder",
                    lock.display()
                ),
            });
        }
        Err(error) => return all(io(error)),
    };
    let share = files.len().div_ceil(WRITERS).max(1);
    let mut answers: Vec<Delivered> = std::thread::scope(|scope| {
        let writers: Vec<_> =
            files.chunks(share).map(|files| (files.len(), scope.spawn(move || write_files(dir, files)))).collect();
        writers
            .into_iter()
            .flat_map(|(count, writer)| {
                let ended = Delivered::Retryable { cause: "a writer ended early".to_owned() };
                writer.join().unwrap_or_else(|_| vec![ended; count])
            })
            .collect()
    });
    if let Err(error) = sync_dir(dir) {
        let failed = io(error);
        for answer in answers.iter_mut().filter(|answer| matches!(answer, Delivered::Confirmed { .. })) {
            *answer = failed.clone();
        }
    }
    answers
}

fn write_files(dir: &Path, files: &[(&RecordId, &Encoded)]) -> Vec<Delivered> {
    files
        .iter()
        .map(|(label, png)| match png {
            Err(cause) => Delivered::Permanent { cause: cause.clone() },
            Ok(png) => match write_file(dir, label, png) {
                Ok(()) => confirmed("written and synced"),
                Err(error) => not_written(format!("{label}.png: {error}"), error.kind()),
            },
        })
        .collect()
}

/// Where nothing can be written it is as with an access point that is away: no label is at fault, and none uses its
/// attempts up.
fn not_written(cause: String, kind: ErrorKind) -> Delivered {
    match kind {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::ReadOnlyFilesystem => {
            Delivered::Unreachable { cause }
        }
        _ => Delivered::Retryable { cause },
    }
}

/// Whether a store's folder takes a file.
fn try_to_write(dir: &Path) -> Result<(), String> {
    let told = |error: io::Error| format!("{}: {error}", dir.display());
    fs::create_dir_all(dir).map_err(told)?;
    let path = dir.join(TRIAL_FILE);
    let mut file = File::create(&path).map_err(told)?;
    // More than fits beside others into a block that is there already.
    file.write_all(&vec![0; 64 << 10]).and_then(|()| file.sync_all()).map_err(told)?;
    fs::remove_file(path).map_err(told)
}

/// Beside, synced, renamed. What a crash leaves beside is overwritten by the next picture of the label.
fn write_file(dir: &Path, label: &RecordId, png: &[u8]) -> io::Result<()> {
    let beside = dir.join(format!("{label}.png.tmp"));
    let mut file = File::create(&beside)?;
    file.write_all(png)?;
    file.sync_all()?;
    fs::rename(beside, dir.join(format!("{label}.png")))
}

fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

/// Makes the folder, locks it and raises its generation; the later generation where one has written.
fn hold(dir: &Path, generation: i64) -> io::Result<Result<File, i64>> {
    if !dir.exists() {
        fs::create_dir_all(dir)?;
        for parent in dir.ancestors().skip(1).take(2) {
            sync_dir(parent)?;
        }
    }
    let path = dir.join(GENERATION_FILE);
    let mut lock = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
    lock.lock()?;
    let mut text = String::new();
    lock.read_to_string(&mut text)?;
    let seen: i64 = text.trim().parse().unwrap_or(0);
    if seen > generation {
        return Ok(Err(seen));
    }
    if seen < generation {
        // One write of one length, so that no kill leaves half a number. Not synced: whoever it guards against does
        // not outlive the machine either.
        lock.write_all_at(format!("{generation:020}\n").as_bytes(), 0)?;
    }
    Ok(Ok(lock))
}

#[cfg(test)]
mod tests {
    use picture::{Palette, Picture};

    use super::*;
    use crate::{runtime::LabelRef, services::hardware_exporter::drivers::Place};

    fn driver(base: &Path) -> FolderDriver {
        FolderDriver::new(&ExporterSettings { folder: base.to_owned(), ..ExporterSettings::default() })
    }

    fn delivery(label: &str, ink: u8) -> Delivery {
        let picture = Picture::new(16, 8, Palette::Bw, vec![ink; 16 * 8]).unwrap();
        Delivery {
            label: LabelRef::of(&format!("t/T/s/S/esls/{label}").parse().unwrap()).unwrap(),
            hardware_address: String::new(),
            digest: picture.digest(),
            picture,
            encoded: bytes::Bytes::new(),
            replaces: None,
        }
    }

    fn written() -> Delivered {
        confirmed("written and synced")
    }

    async fn send(driver: &FolderDriver, generation: i64, ink: u8, labels: usize) -> Vec<Delivered> {
        let place = Place { access_point: "t/T/s/S/accesspoints/A".parse().unwrap(), address: String::new() };
        let deliveries = (0..labels).map(|label| delivery(&format!("E{label}"), ink)).collect();
        driver.send(Shipment { place, generation, deliveries }).await
    }

    #[tokio::test]
    async fn writes_one_whole_png_a_label_and_nothing_beside() {
        let base = tempfile::tempdir().unwrap();
        let driver = driver(base.path());
        assert_eq!(send(&driver, 1, 1, 20).await, vec![written(); 20]);
        let dir = base.path().join("T/S");
        assert_eq!(fs::read(dir.join("E7.png")).unwrap(), delivery("E7", 1).picture.to_png().unwrap());
        let mut names: Vec<String> =
            fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.retain(|name| name != GENERATION_FILE);
        assert_eq!(names.len(), 20);
        assert!(names.iter().all(|name| Path::new(name).extension().is_some_and(|extension| extension == "png")));
    }

    #[tokio::test]
    async fn a_worker_that_lost_the_store_writes_nothing() {
        let base = tempfile::tempdir().unwrap();
        let driver = driver(base.path());
        assert_eq!(send(&driver, 5, 1, 1).await, [written()]);
        let newest = fs::read(base.path().join("T/S/E0.png")).unwrap();
        let late = send(&driver, 4, 0, 1).await;
        assert!(matches!(late.as_slice(), [Delivered::Superseded { .. }]), "{late:?}");
        assert_eq!(fs::read(base.path().join("T/S/E0.png")).unwrap(), newest);
        assert_eq!(send(&driver, 5, 0, 1).await, [written()]);
    }

    #[tokio::test]
    async fn what_a_crash_left_beside_is_overwritten() {
        let base = tempfile::tempdir().unwrap();
        let dir = base.path().join("T/S");
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("E0.png.tmp"), vec![0; 1 << 20]).unwrap();
        assert_eq!(send(&driver(base.path()), 1, 1, 1).await, [written()]);
        assert_eq!(fs::read(dir.join("E0.png")).unwrap(), delivery("E0", 1).picture.to_png().unwrap());
        assert!(!dir.join("E0.png.tmp").exists());
    }

    #[tokio::test]
    async fn a_folder_that_cannot_be_written_confirms_nothing() {
        let base = tempfile::tempdir().unwrap();
        fs::write(base.path().join("T"), "a file where the tenant's folder should be").unwrap();
        let driver = driver(base.path());
        let answers = send(&driver, 1, 1, 2).await;
        assert!(answers.iter().all(|answer| matches!(answer, Delivered::Unreachable { .. })), "{answers:?}");
        let place = Place { access_point: "t/T/s/S/accesspoints/A".parse().unwrap(), address: String::new() };
        assert!(matches!(driver.probe(&place).await, Probe::Away { cause } if cause.contains("T/S")));
        fs::remove_file(base.path().join("T")).unwrap();
        assert_eq!(driver.probe(&place).await, Probe::Up { uptime: None });
        assert_eq!(fs::read_dir(base.path().join("T/S")).unwrap().count(), 0, "nothing is left of the trial");
    }

    #[tokio::test]
    async fn one_label_that_cannot_be_written_leaves_the_others_alone() {
        let base = tempfile::tempdir().unwrap();
        fs::create_dir_all(base.path().join("T/S/E1.png")).unwrap();
        let answers = send(&driver(base.path()), 1, 1, 3).await;
        assert!(
            matches!(
                answers.as_slice(),
                [Delivered::Confirmed { .. }, Delivered::Retryable { .. }, Delivered::Confirmed { .. }]
            ),
            "{answers:?}"
        );
    }
}
