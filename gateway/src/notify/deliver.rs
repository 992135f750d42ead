//! Telling one endpoint, in order, until the gateway stops.

use std::{sync::Arc, time::Duration};

use daemon::outbound::{HttpAnswer, HttpCall, OutboundError};
use domain::ErrorCode;
use http::{HeaderName, HeaderValue, Method, header::CONTENT_TYPE};
use proto::cqs::v1::{AppendAuditRequest, AuditEntry, AuditOutcome, FollowAuditRequest};

use super::{
    Endpoint,
    event::{self, Event},
};
use crate::{
    backend::{Peer, call},
    state::Gateway,
};

/// Time between two looks at the audit log.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Rows of one look.
const ROWS: i32 = 100;
/// Longest wait for an answer.
const WITHIN: Duration = Duration::from_secs(10);
/// Longest answer, in bytes: only its status counts.
const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// First pause after a failure; it doubles with each.
const PAUSE_FIRST: Duration = Duration::from_secs(1);
/// Longest pause.
const PAUSE_MAX: Duration = Duration::from_hours(1);
/// Attempts in all, over some five hours; then the event is given up, which is logged and written to the audit log.
const ATTEMPTS_MAX: u32 = 16;

/// Tells one endpoint until the gateway stops.
pub(super) async fn run(gateway: Arc<Gateway>, index: usize) {
    let Some(endpoint) = gateway.webhooks.endpoints.get(index) else { return };
    let stop = gateway.shutdown.soft.clone();
    let mut done = 0;
    loop {
        let told = tokio::select! {
            () = stop.cancelled() => return,
            told = some(&gateway, endpoint, done) => told,
        };
        if let Some(position) = told {
            done = position;
            continue;
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
    }
}

/// Looks for more and tells the next event; the position of the last row that is done with, none when there was nothing.
async fn some(gateway: &Gateway, endpoint: &Endpoint, done: i64) -> Option<i64> {
    let request = FollowAuditRequest { reader: format!("webhook {}", endpoint.name), done_id: done, page_size: ROWS };
    let rows = match call(Peer::Cqs, gateway.cqs().follow_audit(request)).await {
        Ok(answer) => answer.entries,
        Err(error) => {
            tracing::warn!(?error, endpoint = endpoint.name, "the audit log could not be followed");
            return None;
        }
    };
    let mut position = None;
    for row in rows {
        match event::event(gateway, &row).await {
            Ok(Some(event)) if endpoint.wants(&row, &event) => {
                tell(gateway, endpoint, (&row, &event)).await;
                // What was told is written down before the next one is.
                return Some(row.id);
            }
            Ok(_) => position = Some(row.id),
            Err(error) => {
                tracing::warn!(?error, endpoint = endpoint.name, "what happened could not be read");
                return position;
            }
        }
    }
    position
}

impl Endpoint {
    fn wants(&self, row: &AuditEntry, event: &Event) -> bool {
        let tenant = row.tenant_id.is_empty()
            || self.tenants.is_empty()
            || self.tenants.iter().any(|tenant| tenant.as_str() == row.tenant_id);
        tenant && (self.types.is_empty() || self.types.contains(&event.kind))
    }
}

/// Tells one event, again and again until the endpoint has it or it is given up.
async fn tell(gateway: &Gateway, endpoint: &Endpoint, (row, event): (&AuditEntry, &Event)) {
    let mut pause = PAUSE_FIRST;
    for attempt in 1..=ATTEMPTS_MAX {
        let cause = match post(gateway, endpoint, event).await {
            Ok(answer) if answer.status.is_success() => {
                tracing::info!(endpoint = endpoint.name, event = event.id, kind = %event.kind, attempt, "webhook told");
                return;
            }
            Ok(answer) => format!("answered {}", answer.status),
            Err(error) => error.to_string(),
        };
        tracing::warn!(endpoint = endpoint.name, event = event.id, kind = %event.kind, attempt, cause, "webhook not told");
        if attempt < ATTEMPTS_MAX {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }
    tracing::error!(endpoint = endpoint.name, event = event.id, kind = %event.kind, "webhook given up");
    let given_up = AuditEntry {
        tenant_id: row.tenant_id.clone(),
        action: "webhook".to_owned(),
        tracking_id: row.tracking_id.clone(),
        outcome: AuditOutcome::Refused.into(),
        error_code: ErrorCode::Unavailable.to_string(),
        detail: format!("{} could not be told of {} ({})", endpoint.name, event.kind, event.id),
        ..AuditEntry::default()
    };
    let request = AppendAuditRequest { entries: vec![given_up] };
    if let Err(error) = call(Peer::Cqs, gateway.cqs().append_audit(request)).await {
        tracing::error!(?error, endpoint = endpoint.name, "audit row not written");
    }
}

async fn post(gateway: &Gateway, endpoint: &Endpoint, event: &Event) -> Result<HttpAnswer, OutboundError> {
    let now_s = gateway.clock.now().as_ms().div_euclid(1000);
    let signature = endpoint.secret.sign(&event.id, now_s, &event.body);
    // Ids, numbers and base64 are always a header's value.
    let text = |text: &str| HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static(""));
    let headers = vec![
        (CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (HeaderName::from_static("webhook-id"), text(&event.id)),
        (HeaderName::from_static("webhook-timestamp"), HeaderValue::from(now_s)),
        (HeaderName::from_static("webhook-signature"), text(&signature)),
    ];
    let request = HttpCall {
        peer: &endpoint.peer,
        method: Method::POST,
        path: &endpoint.path,
        headers,
        body: event.body.clone().into(),
        within: WITHIN,
        answer_bytes_max: ANSWER_BYTES_MAX,
    };
    match (&gateway.webhooks.tls, endpoint.encrypted) {
        (Some(tls), true) => gateway.webhooks.outbound.https(tls, request).await,
        _ => gateway.webhooks.outbound.http(request).await,
    }
}
