//! `reshelf token`: operator tokens of the local issuer.

use std::{path::PathBuf, time::Duration};

use anyhow::anyhow;
use clap::Args as ClapArgs;
use daemon::{SystemClock, identity::ServiceKey};
use domain::{Clock as _, OperatorScope, OperatorSubject, TenantId};
use gateway::token::{OperatorClaims, mint};

use crate::{cli::duration, data_dir::DataDir};

/// Longest lifetime that is minted, in seconds: a month. Whoever needs more has an identity provider.
const LIFETIME_S_MAX: u64 = 30 * 24 * 60 * 60;

/// `reshelf token`
#[derive(Debug, ClapArgs)]
pub(super) struct Args {
    /// Data directory of `reshelf dev`, whose key signs the token
    #[arg(long, default_value = ".reshelf", conflicts_with = "key")]
    data_dir: PathBuf,
    /// Private key that signs the token
    #[arg(long)]
    key: Option<PathBuf>,
    /// Whom the token names
    #[arg(long, default_value = "operator@localhost")]
    subject: OperatorSubject,
    /// Tenants it may act on
    #[arg(long, value_delimiter = ',', default_value = crate::demo::TENANT)]
    tenants: Vec<TenantId>,
    /// What it allows: a comma-separated list of scopes, or `all`
    #[arg(long, default_value = "all")]
    scopes: String,
    /// How long it is good for, e.g. 90s, 30m, 1h, 7d
    #[arg(long, default_value = "1h", value_parser = lifetime)]
    lifetime: Duration,
}

pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    let key = match &args.key {
        Some(path) => ServiceKey::read(path)?,
        None => DataDir::open(&args.data_dir)?.operator_issuer()?,
    };
    let claims = OperatorClaims {
        subject: args.subject.clone(),
        scopes: scopes(&args.scopes)?,
        tenants: args.tenants.clone(),
        stores: None,
        issued_at: SystemClock.now(),
        lifetime_s: i64::try_from(args.lifetime.as_secs())?,
    };
    println!("{}", mint(&key, &claims)?);
    Ok(())
}

fn scopes(text: &str) -> anyhow::Result<Vec<OperatorScope>> {
    if text == "all" {
        return Ok(OperatorScope::ALL.to_vec());
    }
    let known = || OperatorScope::ALL.iter().map(|scope| scope.as_str()).collect::<Vec<_>>().join(", ");
    text.split(',')
        .map(|name| name.trim().parse().map_err(|_| anyhow!("--scopes: {name:?} is none of all, {}", known())))
        .collect()
}

fn lifetime(text: &str) -> Result<Duration, String> {
    duration::parse_within(text, 1..=LIFETIME_S_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lifetimes() {
        assert_eq!(lifetime("90s").unwrap(), Duration::from_secs(90));
        assert_eq!(lifetime("30d").unwrap(), Duration::from_secs(LIFETIME_S_MAX));
        for bad in ["", "1", "h", "-1h", "0s", "31d", "1w", "9999999999999999999h", "999999999999999d"] {
            assert!(lifetime(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn scopes_are_known_ones() {
        assert_eq!(scopes("all").unwrap(), OperatorScope::ALL);
        assert_eq!(scopes("labels:read, audit:read").unwrap().len(), 2);
        assert!(scopes("labels:write").unwrap_err().to_string().contains("labels:write"));
    }
}
