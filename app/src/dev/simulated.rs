//! The demo's simulated access points, one a shop, over real sockets on loopback. Things go wrong with them now and then, so
//! that deliveries, losses and recovery can be watched.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use anyhow::Context as _;
use daemon::shutdown::Shutdown;
use domain::{Clock, IdSource};
use picture::Panel;
use simulators::openepaperlink::{AccessPoint, AccessPointSettings, Control, Mac, TagSettings, TransferFault};

use crate::demo::{hardware, shops};

/// Between two check-ins of a tag, in milliseconds. Real ones take about 40 s; nobody wants to wait that long at first.
const CHECK_IN_MS: i64 = 4_000;
/// Between two mishaps.
const MISHAP_EVERY: Duration = Duration::from_secs(10);
/// One mishap in so many is a reboot of an access point; the others are transfers that break off.
const REBOOT_ONE_IN: u64 = 12;
/// One mishap in so many takes an access point off the network for a while.
const AWAY_ONE_IN: u64 = 18;
/// For how long.
const AWAY: Duration = Duration::from_secs(30);

/// The access points of all shops.
#[derive(Debug)]
pub(super) struct Simulated(Vec<(&'static shops::Shop, AccessPoint)>);

impl Simulated {
    /// Starts them, each on a free port.
    pub(super) async fn start(clock: &Arc<dyn Clock>) -> anyhow::Result<Self> {
        let mut all = Vec::new();
        for shop in shops::SHOPS {
            let mut settings = AccessPointSettings::new(Arc::clone(clock));
            settings.tags = hardware::tags(shop)
                .into_iter()
                .filter_map(|tag| {
                    let panel = Panel::of(tag.panel)?;
                    Some(TagSettings { mac: Mac::new(tag.address), panel, check_in_ms: CHECK_IN_MS })
                })
                .collect();
            all.push((shop, AccessPoint::start(settings).await.context("a simulated access point")?));
        }
        Ok(Self(all))
    }

    /// Each shop with the address of its access point.
    pub(super) fn addresses(&self) -> impl Iterator<Item = (&'static shops::Shop, SocketAddr)> {
        self.0.iter().map(|(shop, access_point)| (*shop, access_point.address()))
    }

    /// Lets things go wrong until the shutdown.
    pub(super) fn let_things_go_wrong(self: &Arc<Self>, shutdown: &Shutdown, ids: Arc<dyn IdSource>) {
        let (simulated, soft) = (Arc::clone(self), shutdown.soft.clone());
        shutdown.tasks.spawn(async move {
            loop {
                tokio::select! {
                    () = soft.cancelled() => return,
                    () = tokio::time::sleep(MISHAP_EVERY) => {}
                }
                let Some((shop, access_point)) = pick(&simulated.0, ids.as_ref()) else { return };
                if ids.below(AWAY_ONE_IN) == 0 {
                    tracing::warn!(store = shop.id, "simulated: the access point is off the network for 30 s");
                    access_point.control(Control::Offline(true));
                    tokio::select! {
                        () = soft.cancelled() => return,
                        () = tokio::time::sleep(AWAY) => access_point.control(Control::Offline(false)),
                    }
                } else if ids.below(REBOOT_ONE_IN) == 0 {
                    tracing::warn!(store = shop.id, "simulated: the access point reboots");
                    access_point.control(Control::Reboot);
                } else if let Some(tag) = pick(&access_point.tags(), ids.as_ref()) {
                    tracing::info!(store = shop.id, %tag, "simulated: the tag's next transfer breaks off");
                    access_point.control(Control::Transfer(*tag, TransferFault::Lost));
                }
            }
        });
    }
}

/// One of them by chance; none of none.
fn pick<'a, T>(all: &'a [T], ids: &dyn IdSource) -> Option<&'a T> {
    let count = u64::try_from(all.len()).ok().filter(|count| *count > 0)?;
    all.get(usize::try_from(ids.below(count)).ok()?)
}
