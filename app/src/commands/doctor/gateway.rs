//! Configuration, token, gateway, clocks.

use std::{fs, os::unix::fs::PermissionsExt as _, time::Duration};

use daemon::SystemClock;
use domain::Clock as _;
use serde_json::Value;

use super::{Check, Verdict};
use crate::cli::{
    Answer, CliError, Client, ConnectionArgs, Patience, Settings, TokenSource, duration,
    output::{at, time_at},
    token,
};

/// Difference of two clocks beyond which a token of a few minutes may be taken for over, or for not valid yet.
const SKEW_MS_MAX: i64 = 30_000;
/// A token that ends sooner is worth a word, in milliseconds: an operation may take longer than that.
const ENDS_SOON_MS: i64 = 15 * 60 * 1000;

pub(super) async fn checks(args: &ConnectionArgs) -> Vec<Check> {
    let settings = match args.settings() {
        Ok(settings) => settings,
        Err(error) => {
            let mut checks = vec![Check::failed("configuration", &error)];
            checks.extend(
                ["token", "gateway", "services", "clock", "access"]
                    .map(|name| Check::skipped(name, "no configuration")),
            );
            return checks;
        }
    };
    let mut checks = vec![
        Check::new("configuration", Verdict::Ok, format!("{} from {}", settings.url, settings.origin)),
        token_check(&settings).await,
    ];
    match Client::new(&settings) {
        // A person asks what is wrong now, not whether it gets better.
        Ok(client) => checks.extend(ask(&client.with_patience(Patience(Duration::ZERO))).await),
        Err(error) => checks.push(Check::failed("gateway", &error)),
    }
    checks
}

async fn token_check(settings: &Settings) -> Check {
    let origin = settings.token.origin();
    let token = match settings.token.read().await {
        Ok(token) => token,
        Err(error) => return Check::failed("token", &error),
    };
    if let TokenSource::File(path) = &settings.token
        && fs::metadata(path).is_ok_and(|file| file.permissions().mode() & 0o077 != 0)
    {
        return Check::new(
            "token",
            Verdict::Warning,
            format!("{origin} can be read by other accounts of this machine"),
        )
        .advise(format!("chmod 600 {}", path.display()));
    }
    let Some(end) = token::claims(&token).and_then(|claims| claims.exp) else {
        return Check::new("token", Verdict::Ok, format!("from {origin}; it does not say when it ends"));
    };
    let left_ms = end.saturating_mul(1000).saturating_sub(SystemClock.now().as_ms());
    let left = duration::text(Duration::from_millis(left_ms.max(0).unsigned_abs()));
    if left_ms <= 0 {
        return Check::new("token", Verdict::Failed, format!("the one from {origin} is over")).advise("get a new one");
    }
    let verdict = if left_ms < ENDS_SOON_MS { Verdict::Warning } else { Verdict::Ok };
    let check = Check::new("token", verdict, format!("from {origin}, good for another {left}"));
    if verdict == Verdict::Warning { check.advise("get a new one before you wait for something") } else { check }
}

async fn ask(client: &Client) -> Vec<Check> {
    let health = match client.look("/healthz").await {
        Ok(answer) => answer,
        Err(error) => {
            let mut checks = vec![Check::failed("gateway", &error)];
            checks.extend(
                ["services", "clock", "access"].map(|name| Check::skipped(name, "the gateway does not answer")),
            );
            return checks;
        }
    };
    if health.status != 200 || health.json().ok().is_none_or(|body| body["status"] != "ok") {
        let error = CliError::from_answer(health.status, b"");
        let mut checks = vec![Check::failed("gateway", &error)];
        checks.extend(["services", "clock", "access"].map(|name| Check::skipped(name, "that is no gateway")));
        return checks;
    }
    let gateway = Check::new("gateway", Verdict::Ok, format!("{} answers", client.base()));
    vec![gateway, services(client).await, clock(&health), access(client).await]
}

async fn services(client: &Client) -> Check {
    let body = match client.look("/readyz").await.and_then(|answer| answer.json()) {
        Ok(body) => body,
        Err(error) => return Check::failed("services", &error),
    };
    let down: Vec<String> = body["down"].as_array().into_iter().flatten().map(|name| at(name, "")).collect();
    if body["ready"] == true {
        return Check::new("services", Verdict::Ok, "everything that the gateway needs answers");
    }
    let advice = if down.iter().any(|name| name.starts_with("disk")) {
        "free space on the platform's disk; until then reads work, and triggers are refused"
    } else {
        "start them, or look into their logs; triggers that need them answer 503 until then"
    };
    Check::new("services", Verdict::Failed, format!("down: {}", down.join(", "))).advise(advice)
}

/// The gateway's clock against this machine's.
fn clock(answer: &Answer) -> Check {
    let date = answer.headers.get(http::header::DATE).and_then(|date| date.to_str().ok());
    let Some(theirs) = date.and_then(|date| chrono::DateTime::parse_from_rfc2822(date).ok()) else {
        return Check::skipped("clock", "the gateway does not say what time it is");
    };
    let apart_ms = SystemClock.now().as_ms().saturating_sub(theirs.timestamp_millis()).saturating_abs();
    let found = format!("{} s apart", apart_ms / 1000);
    if apart_ms > SKEW_MS_MAX {
        return Check::new("clock", Verdict::Failed, found)
            .advise("set this machine's clock, or the gateway's: tokens are taken for over, or for not valid yet");
    }
    Check::new("clock", Verdict::Ok, found)
}

async fn access(client: &Client) -> Check {
    let me: Value = match client.get_json("/v1/me").await {
        Ok(me) => me,
        Err(error) => return Check::failed("access", &error),
    };
    let count = |key: &str| me[key].as_array().map_or(0, Vec::len);
    let found = format!(
        "{} with {} scopes on {} tenants until {}",
        at(&me, "/subject"),
        count("scopes"),
        count("tenants"),
        time_at(&me, "/expires_at")
    );
    if count("scopes") == 0 || count("tenants") == 0 {
        return Check::new("access", Verdict::Warning, found).advise("ask for a token that has scopes and tenants");
    }
    Check::new("access", Verdict::Ok, found)
}
