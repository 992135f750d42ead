//! The driver's part of the configuration.

use std::{fmt, net::SocketAddr, path::PathBuf};

use serde::Deserialize;

use super::signature::SECRET_BYTES_MIN;

/// How the `webhook` driver is set up.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebhookSettings {
    /// Shared with the systems; at least 32 bytes.
    pub secret: WebhookSecret,
    /// Authorities of the systems behind `https://` addresses (PEM); left out: the system's bundle.
    #[serde(default)]
    pub ca_file: Option<PathBuf>,
    /// Where systems tell this worker what they learn later; without it they are asked.
    pub callback: Option<CallbackSettings>,
}

/// Where callbacks arrive.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallbackSettings {
    /// Where this worker listens for them.
    pub listen: SocketAddr,
    /// The URL under which the systems reach that.
    pub url: String,
}

/// A secret that is long enough, and that no log shows.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct WebhookSecret(String);

/// The secret is too short to be one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a webhook secret has at least {SECRET_BYTES_MIN} bytes")]
pub struct WebhookSecretError;

impl WebhookSecret {
    pub(super) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl TryFrom<String> for WebhookSecret {
    type Error = WebhookSecretError;

    fn try_from(secret: String) -> Result<Self, WebhookSecretError> {
        if secret.len() < SECRET_BYTES_MIN { Err(WebhookSecretError) } else { Ok(Self(secret)) }
    }
}

impl fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookSecret(…)")
    }
}
