//! Keys that a provider publishes: fetched when due, kept, renewed, dropped.
//!
//! | | |
//! |---|---|
//! | [`FRESH_MS`] | a kept set is used without a look for this long, so a key that the provider removed is refused after it |
//! | [`COOLDOWN_MS`] | at least this long between two fetches, whatever tokens say |
//! | [`STALE_MAX_MS`] | while the provider does not answer, the last set serves this long, then nothing is accepted |
//!
//! A token with an unknown `kid` is a reason to look early, at most once a cooldown. A fetched set replaces the kept one
//! whole; a failed fetch changes nothing, so no token can drive good keys out.

use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Bytes;
use daemon::tls::ClientTls;
use domain::{Clock, Timestamp};
use serde::Deserialize;
use tokio::sync::Semaphore;

use super::{
    OperatorAlgorithm,
    fetch::{self, DocumentUri},
    keys::KeySet,
};

/// How long a set is used without a look, in milliseconds.
const FRESH_MS: i64 = 5 * 60 * 1_000;
/// Least time between two fetches, in milliseconds.
const COOLDOWN_MS: i64 = 30 * 1_000;
/// How long the last set serves while no newer one can be had, in milliseconds.
const STALE_MAX_MS: i64 = 60 * 60 * 1_000;
/// Requests that may wait for one fetch; others go on with what is known.
const WAITING_MAX: usize = 64;
/// Where a provider publishes what it is, below its issuer.
const DISCOVERY_PATH: &str = "/.well-known/openid-configuration";

/// Whose keys.
pub(super) struct RemoteSettings {
    pub(super) issuer: String,
    /// Where they are; none to discover it.
    pub(super) jwks_uri: Option<String>,
    pub(super) algorithms: Vec<OperatorAlgorithm>,
    pub(super) tls: ClientTls,
}

enum Place {
    Discovered(DocumentUri),
    Configured(DocumentUri),
}

/// The published keys of one issuer.
pub(super) struct RemoteKeys {
    issuer: String,
    place: Place,
    algorithms: Vec<OperatorAlgorithm>,
    tls: ClientTls,
    state: Mutex<State>,
    fetching: tokio::sync::Mutex<()>,
    waiting: Semaphore,
}

#[derive(Default)]
struct State {
    kept: Option<(Arc<KeySet>, Timestamp)>,
    tried_at: Option<Timestamp>,
    failed: bool,
}

impl State {
    fn cool(&self, now: Timestamp) -> bool {
        self.tried_at.is_none_or(|tried| now.ms_since(tried) >= COOLDOWN_MS)
    }

    fn known(&self, now: Timestamp) -> Option<Arc<KeySet>> {
        let (keys, fetched) = self.kept.as_ref()?;
        (now.ms_since(*fetched) < STALE_MAX_MS).then(|| Arc::clone(keys))
    }

    fn is_fresh(&self, now: Timestamp) -> bool {
        self.kept.as_ref().is_some_and(|(_, fetched)| now.ms_since(*fetched) < FRESH_MS)
    }
}

#[derive(Deserialize)]
struct Discovery {
    issuer: String,
    jwks_uri: String,
}

impl RemoteKeys {
    pub(super) fn new(settings: RemoteSettings) -> Result<Self, String> {
        let RemoteSettings { issuer, jwks_uri, algorithms, tls } = settings;
        let place = if let Some(uri) = jwks_uri {
            Place::Configured(DocumentUri::parse(&uri)?)
        } else {
            let uri = format!("{}{DISCOVERY_PATH}", issuer.trim_end_matches('/'));
            Place::Discovered(DocumentUri::parse(&uri)?)
        };
        if algorithms.is_empty() {
            return Err("algorithms must not be empty".to_owned());
        }
        Ok(Self {
            issuer,
            place,
            algorithms,
            tls,
            state: Mutex::default(),
            fetching: tokio::sync::Mutex::default(),
            waiting: Semaphore::new(WAITING_MAX),
        })
    }

    /// What is known, without asking.
    pub(super) fn known(&self, now: Timestamp) -> Option<Arc<KeySet>> {
        self.look(|state| state.known(now))
    }

    /// What is known, fetched first when that is due. While the provider fails, nobody waits for it: it is asked apart.
    pub(super) async fn current(self: &Arc<Self>, clock: &Arc<dyn Clock>) -> Option<Arc<KeySet>> {
        let now = clock.now();
        let (due, wait) =
            self.look(|state| (!state.is_fresh(now) && state.cool(now), !state.failed || state.known(now).is_none()));
        if due {
            if wait {
                self.fetch(clock).await;
            } else {
                let (this, clock) = (Arc::clone(self), Arc::clone(clock));
                tokio::spawn(async move { this.fetch(&clock).await });
            }
        } else if self.known(now).is_none() {
            // Another request is asking for the first set.
            self.fetch(clock).await;
        }
        self.known(clock.now())
    }

    /// What is known after a look for a new key; none when it was too early for one, or nothing came.
    pub(super) async fn newer(self: &Arc<Self>, clock: &Arc<dyn Clock>) -> Option<Arc<KeySet>> {
        let before = self.look(|state| state.kept.as_ref().map(|(_, fetched)| *fetched));
        self.fetch(clock).await;
        let now = clock.now();
        self.look(|state| {
            let after = state.kept.as_ref().map(|(_, fetched)| *fetched);
            if after == before { None } else { state.known(now) }
        })
    }

    /// Fetches unless one was tried within the cooldown; waits for one that is under way. Goes on to its end when the
    /// request that asked is gone, so that hanging up does not make the next one pay again.
    async fn fetch(self: &Arc<Self>, clock: &Arc<dyn Clock>) {
        let Ok(_waiting) = self.waiting.try_acquire() else { return };
        let (this, clock) = (Arc::clone(self), Arc::clone(clock));
        let task = tokio::spawn(async move {
            let _one = this.fetching.lock().await;
            let now = clock.now();
            let may = this.change(|state| {
                let cool = state.cool(now);
                if cool {
                    state.tried_at = Some(now);
                }
                cool
            });
            if !may {
                return;
            }
            let fetched = this.fetched().await;
            let now = clock.now();
            this.change(|state| {
                state.failed = fetched.is_err();
                match fetched {
                    Ok(keys) => {
                        tracing::info!(issuer = this.issuer, keys = keys.len(), "published keys fetched");
                        state.kept = Some((Arc::new(keys), now));
                    }
                    Err(problem) => {
                        tracing::warn!(issuer = this.issuer, problem, "published keys not fetched; the last ones stay");
                    }
                }
            });
        });
        if let Err(error) = task.await {
            tracing::error!(%error, "fetching published keys was cut short");
        }
    }

    async fn fetched(&self) -> Result<KeySet, String> {
        let keys = match &self.place {
            Place::Configured(uri) => self.get(uri).await?,
            Place::Discovered(uri) => {
                let document: Discovery = serde_json::from_slice(&self.get(uri).await?)
                    .map_err(|_| format!("{uri} is no discovery document"))?;
                if document.issuer != self.issuer {
                    return Err(format!("{uri} is about the issuer {:?}", document.issuer));
                }
                let keys = DocumentUri::parse(&document.jwks_uri).map_err(|problem| format!("jwks_uri: {problem}"))?;
                // Another host's keys are trusted only when the configuration itself names them.
                if keys.place() != uri.place() {
                    return Err(format!("jwks_uri {keys} is on another host; name it as jwks_uri if that is meant"));
                }
                self.get(&keys).await?
            }
        };
        KeySet::published(&keys, &self.algorithms).map_err(|problem| format!("the key set {problem}"))
    }

    async fn get(&self, uri: &DocumentUri) -> Result<Bytes, String> {
        fetch::get(uri, &self.tls).await.map_err(|error| format!("{uri}: {error}"))
    }

    fn look<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
