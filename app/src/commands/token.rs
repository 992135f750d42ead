//! `reshelf token`: operator tokens of the local issuer.

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::Args as ClapArgs;
use daemon::{SystemClock, identity::ServiceKey};
use domain::{Clock as _, OperatorScope, OperatorSubject, TenantId};
use gateway::token::{OperatorClaims, mint};

use crate::data_dir::DataDir;

/// Longest lifetime that is minted, in seconds: a month. Whoever needs more has an identity provider.
const LIFETIME_S_MAX: i64 = 30 * 24 * 60 * 60;

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
    #[arg(long, default_value = "1h", value_parser = lifetime_s)]
    lifetime: i64,
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
        lifetime_s: args.lifetime,
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
        .map(|name| name.trim().parse().with_context(|| format!("--scopes: {name:?} is none of all, {}", known())))
        .collect()
}

/// Seconds of a text such as `90s`, `30m`, `1h`, `7d`.
fn lifetime_s(text: &str) -> anyhow::Result<i64> {
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match text.get(number.len()..) {
        Some("s") => 1,
        Some("m") => 60,
        Some("h") => 60 * 60,
        Some("d") => 24 * 60 * 60,
        _ => bail!("needs a number with s, m, h or d, e.g. 1h"),
    };
    let seconds = number.parse::<i64>().ok().and_then(|number| number.checked_mul(factor));
    match seconds {
        Some(seconds @ 1..=LIFETIME_S_MAX) => Ok(seconds),
        _ => bail!("must be between 1s and 30d"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lifetimes() {
        assert_eq!(lifetime_s("90s").unwrap(), 90);
        assert_eq!(lifetime_s("1h").unwrap(), 3600);
        assert_eq!(lifetime_s("30d").unwrap(), LIFETIME_S_MAX);
        for bad in ["", "1", "h", "-1h", "0s", "31d", "1w", "9999999999999999999h", "999999999999999d"] {
            assert!(lifetime_s(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn scopes_are_known_ones() {
        assert_eq!(scopes("all").unwrap(), OperatorScope::ALL);
        assert_eq!(scopes("labels:read, audit:read").unwrap().len(), 2);
        assert!(scopes("labels:write").unwrap_err().to_string().contains("labels:write"));
    }
}
