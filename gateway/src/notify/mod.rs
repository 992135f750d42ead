//! Webhooks: what happened to operations, told to configured addresses.
//!
//! Reading order: [`config`] (whom to tell what), `event` (what there is to tell), `deliver` (telling it), `signature`.
//!
//! Invariants
//! - Nothing is lost when a gateway stops: what there is to tell is the audit log, and CQS keeps how far each endpoint has
//!   come. An event is told at least once, in order, under one `webhook-id` however often.
//! - Only addresses that the configuration names and allows are reached, over TLS (but for loopback); no redirect is
//!   followed, answers and waits are bounded.
//! - A failing endpoint delays its own events only, and not without end.
//!
//! Deliberately not here: what is worth an audit row (CQS), addresses from requests (there are none).

mod config;
mod deliver;
mod event;
mod signature;

use std::sync::Arc;

use daemon::{
    outbound::{Outbound, Peer},
    tls::ClientTls,
};
use domain::TenantId;

pub use config::{EndpointConfig, WebhookProblem, WebhooksConfig};
use event::EventType;
use signature::Secret;

use crate::state::Gateway;

/// Whom to tell. The default tells nobody.
#[derive(Default)]
pub struct Webhooks {
    endpoints: Vec<Endpoint>,
    outbound: Outbound,
    tls: Option<ClientTls>,
}

impl std::fmt::Debug for Webhooks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Webhooks").field("endpoints", &self.endpoints.len()).finish_non_exhaustive()
    }
}

/// One address that is told.
struct Endpoint {
    /// Names it in the log, and how far it has come at CQS.
    name: String,
    peer: Peer,
    /// Path and query.
    path: String,
    encrypted: bool,
    secret: Secret,
    /// Only of these tenants; empty: of all.
    tenants: Vec<TenantId>,
    /// Only of these types; empty: of all.
    types: Vec<EventType>,
}

/// Begins to tell every endpoint, until the gateway stops.
pub(crate) fn start(gateway: &Arc<Gateway>) {
    for index in 0..gateway.webhooks.endpoints.len() {
        gateway.shutdown.tasks.spawn(deliver::run(Arc::clone(gateway), index));
    }
}
