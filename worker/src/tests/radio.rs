//! A radio driver with access points in memory, which do what a test says.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use domain::{Clock as _, ManualClock, Timestamp};
use futures::{FutureExt as _, future::BoxFuture};
use picture::Digest;
use proto::records::v1::{DeliveryState, Evidence};
use tokio::sync::Notify;

use crate::services::hardware_exporter::drivers::{
    Delivered, Delivery, Driver, Fence, Looks, Manner, Pending, Place, Probe, Shipment, Survey,
};

/// One access point: pictures wait in it until their labels check in.
#[derive(Debug, Default)]
pub(super) struct Station {
    pub(super) offline: bool,
    /// It has just booted, and takes no picture yet.
    pub(super) refuses: bool,
    booted_at: Timestamp,
    uploads: u64,
    queued: BTreeMap<String, (u64, Digest)>,
    /// Every picture that each label showed, oldest first.
    shown: BTreeMap<String, Vec<Digest>>,
    sent: Vec<(String, Digest)>,
    looks: usize,
}

impl Station {
    /// Every label checks in and shows what waits for it.
    pub(super) fn check_in(&mut self) {
        for (label, (_, digest)) in std::mem::take(&mut self.queued) {
            self.shown.entry(label).or_default().push(digest);
        }
    }

    /// It boots: what waits is gone.
    pub(super) fn reboot(&mut self, now: Timestamp) {
        self.queued.clear();
        self.booted_at = now;
    }

    /// Uploads to a label so far, oldest first.
    pub(super) fn sent_to(&self, hardware_address: &str) -> Vec<Digest> {
        self.sent.iter().filter(|(to, _)| to == hardware_address).map(|(_, digest)| *digest).collect()
    }

    /// Everything a label showed, oldest first.
    pub(super) fn shown_by(&self, hardware_address: &str) -> Vec<Digest> {
        self.shown.get(hardware_address).cloned().unwrap_or_default()
    }

    pub(super) fn looks(&self) -> usize {
        self.looks
    }

    fn take(&mut self, delivery: &Delivery) -> Delivered {
        self.uploads += 1;
        self.sent.push((delivery.hardware_address.clone(), delivery.digest));
        // As the hardware does: without a word, the older picture would be shown first.
        if delivery.replaces.is_some() {
            self.queued.remove(&delivery.hardware_address);
        }
        self.queued.insert(delivery.hardware_address.clone(), (self.uploads, delivery.digest));
        Delivered::Underway {
            state: DeliveryState::Accepted,
            receipt: self.uploads.to_string(),
            proof: format!("taken as upload {}", self.uploads),
        }
    }

    fn see(&self, pending: &Pending) -> Delivered {
        let address = &pending.hardware_address;
        if self.queued.get(address).is_some_and(|(_, digest)| *digest == pending.digest) {
            let (receipt, proof) = (pending.receipt.clone(), "waits for the check-in".to_owned());
            return Delivered::Underway { state: DeliveryState::Queued, receipt, proof };
        }
        if self.shown.get(address).and_then(|shown| shown.last()) == Some(&pending.digest) {
            return Delivered::Confirmed { evidence: Evidence::Transferred, proof: "the label reports it".to_owned() };
        }
        Delivered::Lost { cause: "neither waits nor shown".to_owned() }
    }
}

/// The driver, with a station per address.
pub(super) struct Radio {
    clock: Arc<ManualClock>,
    stations: Mutex<BTreeMap<String, Station>>,
    /// The next call to this address waits for `release` before it does anything.
    stuck: Mutex<Option<String>>,
    pub(super) entered: Notify,
    pub(super) release: Notify,
    overlapped: AtomicBool,
    /// Hardware addresses that were sent to, in order, each with the generation of its lease.
    sendings: Mutex<Vec<(String, i64)>>,
    at_work: Mutex<BTreeMap<String, usize>>,
}

impl Radio {
    pub(super) fn new(clock: &Arc<ManualClock>) -> Arc<Self> {
        Arc::new(Self {
            clock: Arc::clone(clock),
            stations: Mutex::default(),
            stuck: Mutex::default(),
            entered: Notify::new(),
            release: Notify::new(),
            overlapped: AtomicBool::new(false),
            sendings: Mutex::default(),
            at_work: Mutex::default(),
        })
    }

    fn stations(&self) -> MutexGuard<'_, BTreeMap<String, Station>> {
        self.stations.lock().unwrap()
    }

    /// Looks at, or changes, the station of an address.
    pub(super) fn station<T>(&self, address: &str, look: impl FnOnce(&mut Station) -> T) -> T {
        look(self.stations().entry(address.to_owned()).or_default())
    }

    /// The next call to send to `address` waits to be released.
    pub(super) fn stick(&self, address: &str) {
        *self.stuck.lock().unwrap() = Some(address.to_owned());
    }

    /// Under which lease a label was sent to first.
    pub(super) fn first_sent_under(&self, hardware_address: &str) -> Option<i64> {
        let sendings = self.sendings.lock().unwrap();
        sendings.iter().find(|(to, _)| to == hardware_address).map(|(_, generation)| *generation)
    }

    /// Whether two calls were ever at one station at once.
    pub(super) fn overlapped(&self) -> bool {
        self.overlapped.load(Ordering::SeqCst)
    }

    async fn wait_if_stuck(&self, address: &str) {
        let stuck = self.stuck.lock().unwrap().take_if(|stuck| stuck == address).is_some();
        if stuck {
            self.entered.notify_one();
            self.release.notified().await;
        }
    }

    fn enter(&self, address: &str) -> AtWork<'_> {
        let mut at_work = self.at_work.lock().unwrap();
        let count = at_work.entry(address.to_owned()).or_default();
        *count += 1;
        if *count > 1 {
            self.overlapped.store(true, Ordering::SeqCst);
        }
        AtWork { radio: self, address: address.to_owned() }
    }
}

struct AtWork<'a> {
    radio: &'a Radio,
    address: String,
}

impl Drop for AtWork<'_> {
    fn drop(&mut self) {
        *self.radio.at_work.lock().unwrap().get_mut(&self.address).unwrap() -= 1;
    }
}

/// The driver as the exporter holds it; clones share the stations.
pub(super) struct RadioDriver(pub(super) Arc<Radio>);

impl Driver for RadioDriver {
    fn name(&self) -> &'static str {
        "radio"
    }

    fn manner(&self) -> Manner {
        Manner {
            per_call: 1,
            at_once: 1,
            pause: Duration::ZERO,
            call_limit: Duration::from_secs(30),
            looks: Some(Looks { first: Duration::from_secs(10), longest: Duration::from_mins(5) }),
            fence: Fence::Exporter,
        }
    }

    fn send(&self, shipment: Shipment) -> BoxFuture<'_, Vec<Delivered>> {
        async move {
            let address = &shipment.place.address;
            let _at_work = self.0.enter(address);
            let sendings = shipment.deliveries.iter().map(|one| (one.hardware_address.clone(), shipment.generation));
            self.0.sendings.lock().unwrap().extend(sendings);
            self.0.wait_if_stuck(address).await;
            let answer = |delivery: &Delivery| {
                self.0.station(address, |station| {
                    if station.offline {
                        return Delivered::Unreachable { cause: "connection refused".to_owned() };
                    }
                    if station.refuses {
                        return Delivered::Retryable { cause: "it is not ready".to_owned() };
                    }
                    station.take(delivery)
                })
            };
            shipment.deliveries.iter().map(answer).collect()
        }
        .boxed()
    }

    fn look(&self, survey: Survey) -> BoxFuture<'_, Vec<Delivered>> {
        async move {
            let _at_work = self.0.enter(&survey.place.address);
            self.0.station(&survey.place.address, |station| {
                station.looks += 1;
                survey.pending.iter().map(|pending| station.see(pending)).collect()
            })
        }
        .boxed()
    }

    fn probe<'a>(&'a self, place: &'a Place) -> BoxFuture<'a, Probe> {
        async move {
            let now = self.0.clock.now();
            self.0.station(&place.address, |station| {
                if station.offline {
                    return Probe::Away { cause: "connection refused".to_owned() };
                }
                let up_ms = now.ms_since(station.booted_at);
                Probe::Up { uptime: Some(Duration::from_millis(u64::try_from(up_ms).unwrap())) }
            })
        }
        .boxed()
    }
}
