//! Which addresses may be reached. Pure.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Longest list. A list of a whole chain's access-point networks has some hundreds of entries.
const ENTRIES_MAX: usize = 4_096;

/// Networks and host names that may be reached. An empty list permits nothing.
///
/// An entry is a network (`10.20.0.0/16`, `fd12::/16`), one address, or a host name (`labels.example.com`, or
/// `*.example.com` for the names below it). A host name permits public addresses only: where the name leads into a
/// private network, that network must be listed too, so that a name alone opens no inner door.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(try_from = "Vec<String>")]
pub struct AllowList {
    networks: Vec<Network>,
    hosts: Vec<Host>,
}

/// An entry of the list cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AllowListError {
    /// Neither network, address nor host name.
    #[error(
        "{entry:?} is neither a network (10.20.0.0/16), an address nor a host name (with *. in front for those below)"
    )]
    Entry {
        /// As it was given.
        entry: String,
    },
    /// More than anyone reads.
    #[error("more than {ENTRIES_MAX} entries")]
    Long,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Network {
    address: IpAddr,
    prefix: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Host {
    name: String,
    below: bool,
}

impl TryFrom<Vec<String>> for AllowList {
    type Error = AllowListError;

    fn try_from(entries: Vec<String>) -> Result<Self, AllowListError> {
        Self::parse(entries)
    }
}

impl AllowList {
    /// Reads the entries.
    pub fn parse<S: AsRef<str>>(entries: impl IntoIterator<Item = S>) -> Result<Self, AllowListError> {
        let mut list = Self::default();
        for (count, entry) in entries.into_iter().enumerate() {
            if count >= ENTRIES_MAX {
                return Err(AllowListError::Long);
            }
            let entry = entry.as_ref();
            if let Some(network) = Network::parse(entry) {
                list.networks.push(network);
            } else if let Some(host) = Host::parse(entry) {
                list.hosts.push(host);
            } else {
                return Err(AllowListError::Entry { entry: entry.to_owned() });
            }
        }
        Ok(list)
    }

    /// This machine only; for development and tests.
    pub fn loopback() -> Self {
        let network = |address, prefix| Network { address, prefix };
        Self {
            networks: vec![network(Ipv4Addr::LOCALHOST.into(), 8), network(Ipv6Addr::LOCALHOST.into(), 128)],
            hosts: Vec::new(),
        }
    }

    /// Whether `address`, which `host` resolved to, may be connected to.
    pub fn permits(&self, host: &str, address: IpAddr) -> bool {
        let address = address.to_canonical();
        if is_never_reached(address) {
            return false;
        }
        self.networks.iter().any(|network| network.holds(address))
            || (is_public(address) && self.hosts.iter().any(|known| known.is(host)))
    }
}

impl Network {
    fn parse(entry: &str) -> Option<Self> {
        let (address, prefix) = match entry.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (entry, None),
        };
        let address: IpAddr = address.parse().ok()?;
        let widest = if address.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            None => widest,
            Some(digits) if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                digits.parse().ok()?
            }
            Some(_) => return None,
        };
        (prefix <= widest).then_some(Self { address, prefix })
    }

    fn holds(&self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                let differing = u32::from(network) ^ u32::from(address);
                differing.checked_shr(32 - self.prefix).unwrap_or(0) == 0
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                let differing = u128::from(network) ^ u128::from(address);
                differing.checked_shr(128 - self.prefix).unwrap_or(0) == 0
            }
            _ => false,
        }
    }
}

impl Host {
    fn parse(entry: &str) -> Option<Self> {
        let (name, below) = match entry.strip_prefix("*.") {
            Some(name) => (name, true),
            None => (entry, false),
        };
        let label_ok = |label: &str| {
            !label.is_empty()
                && label.len() <= 63
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
        };
        let ends_in_a_number =
            name.rsplit('.').next().is_some_and(|last| last.bytes().all(|byte| byte.is_ascii_digit()));
        // A name that ends in a number is a mistyped address: it must not become a host nobody meant.
        (name.len() <= 253 && !ends_in_a_number && name.split('.').all(label_ok))
            .then(|| Self { name: name.to_ascii_lowercase(), below })
    }

    fn is(&self, host: &str) -> bool {
        let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
        if self.below {
            host.strip_suffix(&self.name).is_some_and(|front| front.len() > 1 && front.ends_with('.'))
        } else {
            host == self.name
        }
    }
}

/// Addresses no driver and no webhook has business with: they lead to the machine's own cloud or to nobody.
fn is_never_reached(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            let [first, second, ..] = address.octets();
            first == 0
                || address.is_link_local()
                || address.is_multicast()
                || first >= 240
                // Metadata services outside link-local: Alibaba Cloud, Oracle Cloud.
                || address == Ipv4Addr::new(100, 100, 100, 200)
                || (first == 192 && second == 0 && address == Ipv4Addr::new(192, 0, 0, 192))
        }
        IpAddr::V6(address) => {
            let [s0, s1, ..] = address.segments();
            address.is_unspecified()
                || address.is_multicast()
                || address.is_unicast_link_local()
                // IPv4 in disguise: translation (64:ff9b::/96 and its local sibling), 6to4, Teredo, IPv4-compatible.
                || (s0 == 0x64 && s1 == 0xff9b)
                || s0 == 0x2002
                || (s0 == 0x2001 && s1 == 0)
                || (address.to_ipv4().is_some() && !address.is_loopback())
                // Metadata services: Amazon, Google.
                || address == Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)
                || address == Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)
        }
    }
}

/// Whether an address belongs to the public network rather than to somebody's inside.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            let [first, second, third, _] = address.octets();
            let shared = first == 100 && (64..128).contains(&second);
            let benchmarks = first == 198 && (second == 18 || second == 19);
            let protocols = first == 192 && second == 0 && third == 0;
            !(address.is_private()
                || address.is_loopback()
                || address.is_documentation()
                || shared
                || benchmarks
                || protocols)
        }
        IpAddr::V6(address) => !(address.is_loopback() || address.is_unique_local()),
    }
}
