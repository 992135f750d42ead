//! Calls that leave the platform: to access points, labels and customers' systems, at addresses that records and
//! requests name.
//!
//! Invariants
//! - A connection is made only to an address that the configured [`AllowList`] permits, checked on the resolved address
//!   that is then connected to, so a name that changes its mind between check and connect gains nothing.
//! - Link-local, metadata, multicast and unspecified addresses are never reached, whatever the list says.
//! - A redirect is an answer like any other; nothing follows one. Answers and waits are bounded.
//!
//! Deliberately not here: connections to the platform's own servers (`channel`), TLS to peers without a checked name.

mod allow;
mod call;

pub use self::allow::{AllowList, AllowListError};
pub use self::call::{HttpAnswer, HttpCall};

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use tokio::{
    net::{TcpStream, lookup_host},
    time::timeout,
};

/// Addresses of one name that are tried, in the resolver's order. A name of ours has one or two.
const ADDRESSES_MAX: usize = 4;
/// How long a connection may take to come about. On a store's network it takes milliseconds.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Why a call did not come about or gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum OutboundError {
    /// The address cannot be read.
    #[error("the address {address:?} is not {wanted}")]
    Address {
        /// As it was given.
        address: String,
        /// What was expected.
        wanted: &'static str,
    },
    /// The address is not on the allow-list, or never reached at all.
    #[error("{host} ({address}) is not on the list of addresses that may be reached")]
    NotAllowed {
        /// The name or address asked for.
        host: String,
        /// What it resolved to.
        address: IpAddr,
    },
    /// The name has no address.
    #[error("{host} has no address: {cause}")]
    Unresolved {
        /// The name.
        host: String,
        /// The resolver's word.
        cause: String,
    },
    /// No connection.
    #[error("{host} does not answer: {cause}")]
    Connect {
        /// The name or address asked for.
        host: String,
        /// Why.
        cause: String,
    },
    /// Connected, but the answer did not come in time.
    #[error("{host} did not answer within {} ms", .after.as_millis())]
    TimedOut {
        /// The name or address asked for.
        host: String,
        /// How long was waited.
        after: Duration,
    },
    /// Connected, but what came is no answer.
    #[error("{host} broke off: {cause}")]
    Broken {
        /// The name or address asked for.
        host: String,
        /// Why.
        cause: String,
    },
}

impl OutboundError {
    /// Whether the request may have had an effect: something was connected and the answer is missing.
    pub const fn may_have_arrived(&self) -> bool {
        matches!(self, Self::TimedOut { .. } | Self::Broken { .. })
    }

    /// Whether the same call can never succeed while address and configuration stay as they are.
    pub const fn is_permanent(&self) -> bool {
        matches!(self, Self::Address { .. } | Self::NotAllowed { .. })
    }
}

/// A host and a port, as an address names them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Peer {
    host: String,
    port: u16,
}

impl Peer {
    /// From `host`, `host:port` or `[v6]:port`; nothing else may stand there.
    pub fn parse(address: &str, default_port: u16) -> Result<Self, OutboundError> {
        let refused = || OutboundError::Address { address: address.to_owned(), wanted: "a host or host:port" };
        let authority: http::uri::Authority = address.parse().map_err(|_| refused())?;
        if authority.as_str().contains('@') || authority.host().is_empty() {
            return Err(refused());
        }
        let port = match authority.port() {
            None if authority.as_str().len() == authority.host().len() => default_port,
            Some(port) if port.as_u16() != 0 => port.as_u16(),
            _ => return Err(refused()),
        };
        Ok(Self { host: authority.host().trim_matches(['[', ']']).to_ascii_lowercase(), port })
    }

    /// The host, lower case, without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port, not 0.
    pub const fn port(&self) -> u16 {
        self.port
    }
}

impl std::fmt::Display for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// The one way out. The default reaches nothing.
#[derive(Debug, Clone, Default)]
pub struct Outbound {
    allow: Arc<AllowList>,
}

impl Outbound {
    /// Reaches what `allow` permits.
    pub fn new(allow: AllowList) -> Self {
        Self { allow: Arc::new(allow) }
    }

    /// Connects to a permitted address of `peer`.
    pub async fn connect(&self, peer: &Peer) -> Result<TcpStream, OutboundError> {
        let addresses = self.resolve(peer).await?;
        let mut cause = "no address was tried".to_owned();
        for address in addresses {
            match timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => cause = error.to_string(),
                Err(_) => cause = format!("no connection within {} s", CONNECT_TIMEOUT.as_secs()),
            }
        }
        Err(OutboundError::Connect { host: peer.to_string(), cause })
    }

    /// All addresses of the name, each permitted: one that is not refuses the whole name, since whoever names it is up to
    /// something.
    async fn resolve(&self, peer: &Peer) -> Result<Vec<SocketAddr>, OutboundError> {
        let unresolved = |cause: String| OutboundError::Unresolved { host: peer.host.clone(), cause };
        let found = timeout(CONNECT_TIMEOUT, lookup_host((peer.host.as_str(), peer.port)))
            .await
            .map_err(|_| unresolved("the resolver does not answer".to_owned()))?
            .map_err(|error| unresolved(error.to_string()))?;
        let addresses: Vec<SocketAddr> = found.take(ADDRESSES_MAX).collect();
        if addresses.is_empty() {
            return Err(unresolved("the resolver knows none".to_owned()));
        }
        match addresses.iter().find(|address| !self.allow.permits(&peer.host, address.ip())) {
            Some(refused) => Err(OutboundError::NotAllowed { host: peer.host.clone(), address: refused.ip() }),
            None => Ok(addresses),
        }
    }
}

#[cfg(test)]
mod tests;
