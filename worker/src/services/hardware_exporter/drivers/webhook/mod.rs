//! The `webhook` driver: hands pictures to a customer's own system, which drives the labels. Its contract stands in
//! `docs/drivers.md`.
//!
//! Reading order: `settings`, `signature` (who says so), `answer` (what the system says), `inbox` (what it says later).
//!
//! Invariants
//! - Everything is signed with the shared secret, both ways; an answer that comes later counts only with a signature that
//!   is right and fresh.
//! - Confirmed is only what the system says of this digest and this label, with the evidence that it claims.
//! - A callback saves a question, nothing hangs on it: whoever missed it asks. Callbacks are in memory only; where a system
//!   takes no questions, a picture that is not acknowledged in time counts as lost and is sent again.
//! - A callback about an earlier sending of the same picture does not confirm a later one: sending forgets it.
//!
//! Deliberately not here: any retry.

mod answer;
mod inbox;
mod settings;
mod signature;

pub use self::settings::{CallbackSettings, WebhookSecret, WebhookSettings};

use std::{path::Path, sync::Arc, time::Duration};

use bytes::Bytes;
use daemon::{
    outbound::{HttpAnswer, HttpCall, Outbound, OutboundError, Peer},
    tls::{ClientTls, ClientTlsConfig},
};
use domain::{Clock, DtoType};
use futures::{FutureExt as _, future::BoxFuture};
use http::{HeaderName, HeaderValue, Method, Uri, uri::Scheme};
use picture::Digest;

use super::{Delivered, Delivery, Driver, Fence, Looks, Manner, Pending, Shipment, Survey};
use crate::runtime::LabelRef;
use inbox::{Inbox, Listening};
use signature::{Secret, Signed};

/// How long the system may take for an answer; longer work is acknowledged later.
const WITHIN: Duration = Duration::from_secs(20);
/// Longest answer: a state and a cause.
const ANSWER_BYTES_MAX: usize = 16_384;
/// Calls to one system at once: it is a server, not a radio.
const AT_ONCE: usize = 4;
/// Looks run one after the other within a call, so a call may take many answers' time.
const CALL_LIMIT: Duration = Duration::from_secs(150);
/// A callback is expected within seconds; a system without callbacks is asked.
const FIRST_LOOK: Duration = Duration::from_secs(10);
const LONGEST_LOOK: Duration = Duration::from_mins(10);

/// The driver.
pub(crate) struct WebhookDriver {
    outbound: Outbound,
    secret: Secret,
    inbox: Arc<Inbox>,
    listening: Option<Listening>,
    /// For `https://` addresses, or why there is none.
    tls: Result<ClientTls, String>,
    clock: Arc<dyn Clock>,
}

impl WebhookDriver {
    /// Reaches systems through `outbound`. Callbacks are listened for from the first picture on.
    pub(crate) fn new(outbound: Outbound, settings: &WebhookSettings, clock: Arc<dyn Clock>) -> Self {
        let secret = Secret::new(&settings.secret);
        let url = settings.callback.as_ref().map(|callback| callback.url.clone());
        let inbox = Arc::new(Inbox::new(secret.clone(), url, Arc::clone(&clock)));
        let listening = settings.callback.as_ref().map(|callback| Listening::at(callback.listen));
        let trust = ClientTlsConfig { ca_file: settings.ca_file.clone(), ..ClientTlsConfig::default() };
        // The path was made absolute, or relative to the process, when the configuration was read.
        let tls = ClientTls::new(&trust, Path::new(""), &[b"http/1.1"]).map_err(|error| error.to_string());
        if let (Err(error), Some(file)) = (&tls, &settings.ca_file) {
            tracing::error!(%error, file = %file.display(), "no https for webhooks");
        }
        Self { outbound, secret, inbox, listening, tls, clock }
    }

    #[cfg(test)]
    pub(super) async fn callback_address(&self) -> Option<std::net::SocketAddr> {
        match &self.listening {
            Some(listening) => listening.begin(&self.inbox).await,
            None => None,
        }
    }

    async fn send_one(&self, address: &str, generation: i64, delivery: &Delivery) -> Delivered {
        let packed = match delivery.picture.pack() {
            Ok(packed) => Bytes::from(packed),
            Err(error) => return Delivered::Permanent { cause: error.to_string() },
        };
        let about = About {
            label: &delivery.label,
            hardware_address: &delivery.hardware_address,
            digest: delivery.digest,
            generation: Some(generation),
        };
        // What is still said of an earlier sending of this picture is not about this one.
        drop(self.inbox.take(&label(&delivery.label), delivery.digest));
        match self.call(address, Method::POST, &about, packed).await {
            Ok(said) => answer::to_sending(&said),
            Err(error) => Delivered::without_answer(&error),
        }
    }

    async fn look_one(&self, address: &str, pending: &Pending) -> Delivered {
        let said = self.inbox.take(&label(&pending.label), pending.digest);
        if let Some(meaning) = said.and_then(|said| said.meaning(&pending.receipt)) {
            return meaning;
        }
        let about = About {
            label: &pending.label,
            hardware_address: &pending.hardware_address,
            digest: pending.digest,
            generation: None,
        };
        match self.call(address, Method::GET, &about, Bytes::new()).await {
            Ok(said) => answer::to_looking(&said, pending, self.clock.now()),
            Err(error) => Delivered::without_answer(&error),
        }
    }

    async fn call(
        &self,
        address: &str,
        method: Method,
        about: &About<'_>,
        body: Bytes,
    ) -> Result<HttpAnswer, OutboundError> {
        let Target { peer, path, is_https } = target(address)?;
        let mut headers = about.headers(address)?;
        if let Some(url) = self.inbox.url() {
            headers.push((HeaderName::from_static("reshelf-callback"), url));
        }
        let signed = Signed { method: &method, path: &path, headers: &headers, body: &body };
        headers.extend(self.secret.sign(&signed, self.clock.now()));
        headers.push((http::header::CONTENT_TYPE, HeaderValue::from_static("application/vnd.reshelf.picture")));
        let call = HttpCall {
            peer: &peer,
            method,
            path: &path,
            headers,
            body,
            within: WITHIN,
            answer_bytes_max: ANSWER_BYTES_MAX,
        };
        match &self.tls {
            _ if !is_https => self.outbound.http(call).await,
            Ok(tls) => self.outbound.https(tls, call).await,
            Err(cause) => Err(OutboundError::Connect { host: peer.to_string(), cause: cause.clone() }),
        }
    }
}

/// What a call is about.
struct About<'a> {
    label: &'a LabelRef,
    hardware_address: &'a str,
    digest: Digest,
    generation: Option<i64>,
}

impl About<'_> {
    fn headers(&self, address: &str) -> Result<Vec<(HeaderName, HeaderValue)>, OutboundError> {
        let value = |text: &str| {
            HeaderValue::from_str(text).map_err(|_| OutboundError::Address {
                address: address.to_owned(),
                wanted: "for a label whose hardware address is plain text",
            })
        };
        let mut headers = vec![
            (HeaderName::from_static("reshelf-label"), value(&label(self.label))?),
            (HeaderName::from_static("reshelf-hardware-address"), value(self.hardware_address)?),
            (HeaderName::from_static("reshelf-digest"), value(&self.digest.to_string())?),
        ];
        if let Some(generation) = self.generation {
            headers.push((HeaderName::from_static("reshelf-generation"), HeaderValue::from(generation)));
        }
        Ok(headers)
    }
}

/// The label's name on the outside.
fn label(label: &LabelRef) -> String {
    label.record(DtoType::StoreEsl).to_string()
}

/// Where an address such as `https://labels.example.com/pictures` leads.
#[derive(Debug)]
struct Target {
    peer: Peer,
    path: String,
    is_https: bool,
}

fn target(address: &str) -> Result<Target, OutboundError> {
    let refused =
        || OutboundError::Address { address: address.to_owned(), wanted: "of the form http[s]://host[:port]/path" };
    let uri: Uri = address.parse().map_err(|_| refused())?;
    let (Some(scheme), Some(authority)) = (uri.scheme(), uri.authority()) else { return Err(refused()) };
    let is_https = *scheme == Scheme::HTTPS;
    if !is_https && *scheme != Scheme::HTTP {
        return Err(refused());
    }
    let peer = Peer::parse(authority.as_str(), if is_https { 443 } else { 80 })?;
    let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
    Ok(Target { peer, path, is_https })
}

impl Driver for WebhookDriver {
    fn name(&self) -> &'static str {
        "webhook"
    }

    fn manner(&self) -> Manner {
        Manner {
            per_call: 1,
            at_once: AT_ONCE,
            pause: Duration::ZERO,
            call_limit: CALL_LIMIT,
            looks: Some(Looks { first: FIRST_LOOK, longest: LONGEST_LOOK }),
            fence: Fence::Exporter,
        }
    }

    fn send(&self, shipment: Shipment) -> BoxFuture<'_, Vec<Delivered>> {
        async move {
            if let Some(listening) = &self.listening {
                listening.begin(&self.inbox).await;
            }
            let mut answers = Vec::with_capacity(shipment.deliveries.len());
            for delivery in &shipment.deliveries {
                answers.push(self.send_one(&shipment.place.address, shipment.generation, delivery).await);
            }
            answers
        }
        .boxed()
    }

    fn look(&self, survey: Survey) -> BoxFuture<'_, Vec<Delivered>> {
        async move {
            let mut answers = Vec::with_capacity(survey.pending.len());
            for pending in &survey.pending {
                let answer = self.look_one(&survey.place.address, pending).await;
                let is_gone = matches!(answer, Delivered::Unreachable { .. });
                answers.push(answer.clone());
                if is_gone {
                    answers.resize(survey.pending.len(), answer);
                    break;
                }
            }
            answers
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests;
