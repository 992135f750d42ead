//! An identity provider of the tests' own: it publishes what a test wants, and counts who asks.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use axum::{
    Router,
    extract::State,
    http::StatusCode,
    response::{IntoResponse as _, Response},
    routing::get,
};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use daemon::tls::{ClientTls, ClientTlsConfig};
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// How the provider answers for its keys.
#[derive(Clone)]
pub(crate) enum Keys {
    /// A key set.
    Set(Value),
    /// Any answer.
    Answer(StatusCode, Vec<(&'static str, String)>, Vec<u8>),
    /// None, and the connection stays open.
    Never,
}

pub(crate) struct Published {
    /// The discovery document; none for the right one.
    pub(crate) discovery: Option<Value>,
    pub(crate) keys: Keys,
    /// Requests for the key set so far.
    pub(crate) asked: usize,
}

/// A provider that listens on this machine.
#[derive(Clone)]
pub(crate) struct Provider {
    pub(crate) address: SocketAddr,
    state: Arc<Mutex<Published>>,
}

impl Provider {
    pub(crate) async fn start(keys: Keys) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let provider = Self { address, state: Arc::new(Mutex::new(Published { discovery: None, keys, asked: 0 })) };
        let router = Router::new()
            .route("/realm/.well-known/openid-configuration", get(discovery))
            .route("/realm/jwks", get(jwks))
            .with_state(provider.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        provider
    }

    pub(crate) fn issuer(&self) -> String {
        format!("http://{}/realm", self.address)
    }

    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut Published) -> T) -> T {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn publish(&self, keys: &[&SigningKey]) {
        self.change(|state| state.keys = set(keys));
    }

    pub(crate) fn asked(&self) -> usize {
        self.change(|state| state.asked)
    }
}

async fn discovery(State(provider): State<Provider>) -> Response {
    let document = provider
        .change(|state| state.discovery.clone())
        .unwrap_or_else(|| json!({"issuer": provider.issuer(), "jwks_uri": format!("{}/jwks", provider.issuer())}));
    axum::Json(document).into_response()
}

async fn jwks(State(provider): State<Provider>) -> Response {
    let keys = provider.change(|state| {
        state.asked += 1;
        state.keys.clone()
    });
    match keys {
        Keys::Set(set) => axum::Json(set).into_response(),
        Keys::Answer(status, headers, body) => {
            let mut answer = (status, body).into_response();
            for (name, value) in headers {
                answer.headers_mut().insert(name, value.parse().unwrap());
            }
            answer
        }
        Keys::Never => std::future::pending().await,
    }
}

/// A key of a provider.
pub(crate) struct SigningKey {
    pub(crate) kid: String,
    pub(crate) pair: Ed25519KeyPair,
}

impl SigningKey {
    pub(crate) fn new(kid: &str) -> Self {
        Self { kid: kid.to_owned(), pair: Ed25519KeyPair::generate().unwrap() }
    }

    pub(crate) fn jwk(&self) -> Value {
        let x = BASE64_URL_SAFE_NO_PAD.encode(self.pair.public_key().as_ref());
        json!({"kty": "OKP", "crv": "Ed25519", "x": x, "kid": self.kid, "use": "sig", "alg": "EdDSA"})
    }

    pub(crate) fn sign(&self, header: &Value, claims: &Value) -> String {
        let part = |value: &Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(header), part(claims));
        let signature = BASE64_URL_SAFE_NO_PAD.encode(self.pair.sign(signed.as_bytes()));
        format!("{signed}.{signature}")
    }
}

pub(crate) fn set(keys: &[&SigningKey]) -> Keys {
    Keys::Set(json!({"keys": keys.iter().map(|key| key.jwk()).collect::<Vec<_>>()}))
}

/// Trusts one authority that nobody has: these providers speak HTTP on this machine.
pub(crate) fn no_tls() -> ClientTls {
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(["nobody.example".to_owned()]).unwrap();
    std::fs::write(folder.path().join("ca.pem"), made.cert.pem()).unwrap();
    let config = ClientTlsConfig { ca_file: Some("ca.pem".into()), ..ClientTlsConfig::default() };
    ClientTls::new(&config, folder.path(), &[b"http/1.1"]).unwrap()
}
