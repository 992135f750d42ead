//! `/v1/tenants/{tenant}/operations/{tracking_id}/events`: an operation as a stream of server-sent events.
//!
//! Every event is a whole snapshot with the operation's revision as its id, so one that is lost does no harm and a
//! client that comes back with `Last-Event-ID` gets only what is newer. The stream ends after the final state, when the
//! token ends, and when the gateway stops; whoever comes back after the final state is told to stop (204).

use std::{sync::Arc, time::Duration};

use axum::{
    extract::State,
    response::{
        IntoResponse as _, Response,
        sse::{Event, KeepAlive, Sse},
    },
};
use domain::{OperatorScope, Refusal, TenantId, TrackingId};
use futures::{Stream, stream};
use http::{HeaderMap, HeaderName, StatusCode};
use proto::cqs::v1::Operation as WireOperation;
use tokio::time::Instant;
use utoipa::ToSchema;

use super::{funnel, operation_view::operation, operations::find_visible};
use crate::{
    auth::Operator,
    follow::{Follower, Seen},
    problem::{Problem, ReadProblems},
    query::{Segments, segment},
    state::Gateway,
};

/// Time between two signs of life while nothing changes: proxies close what is silent for a minute or half of one.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// When a client shall come back after a stream that broke.
const COME_BACK_AFTER: Duration = Duration::from_secs(2);
/// The last event a client has.
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// One event of the stream, once its lines are taken apart.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes what `event` writes")]
pub(crate) struct OperationEvent {
    /// Always `operation`.
    #[schema(pattern = "^operation$")]
    event: String,
    /// `revision` of the operation: what `Last-Event-ID` names.
    #[schema(pattern = "^[0-9]{1,18}$")]
    id: String,
    /// The operation, as JSON.
    #[schema(content_media_type = "application/json")]
    data: String,
    /// Milliseconds after which to come back when the stream breaks; with the first event.
    retry: Option<u32>,
}

/// Follow an operation.
#[utoipa::path(
    get, path = "/v1/tenants/{tenant}/operations/{tracking_id}/events", operation_id = "get_operation_events",
    tag = "operations", description = "Server-sent events, each named `operation`, with the whole operation as JSON and \
    its `revision` as id. Comments keep the connection alive. The stream ends after the final state. At most 16 streams \
    an operator, 256 in all.",
    security(("operator" = ["operations:read"])),
    params(
        ("tenant" = String, Path, description = "The tenant."),
        ("tracking_id" = String, Path, description = "The operation."),
        ("Last-Event-ID" = Option<String>, Header, description = "Id of the last event one has; only newer ones are sent.")
    ),
    responses(
        (status = 200, description = "The stream.", body = OperationEvent, content_type = "text/event-stream"),
        (status = 204, description = "It is over, and `Last-Event-ID` is the last event there is."),
        (status = 429, description = "Too many streams are open."),
        ReadProblems
    )
)]
pub(crate) async fn get_operation_events(
    State(gateway): State<Arc<Gateway>>,
    operator: Operator,
    Segments((tenant, tracking_id)): Segments<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let reach = operator.require(OperatorScope::OperationsRead)?;
    let tenant: TenantId = segment("tenant", &tenant)?;
    let tracking_id: TrackingId = segment("tracking_id", &tracking_id)?;
    let last = last_event(&headers)?;
    let found = find_visible(&gateway, reach, (&tenant, &tracking_id)).await?;
    if funnel::is_over(found.state()) && last.is_some_and(|last| last >= found.revision) {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let follower =
        gateway.follows.follow((gateway.cqs(), &gateway.shutdown), &(tenant, tracking_id), operator.subject())?;
    let left_ms = operator.expires_at().as_ms().saturating_sub(gateway.clock.now().as_ms());
    let until = Instant::now() + Duration::from_millis(u64::try_from(left_ms).unwrap_or(0));
    let following = Following { follower, first: Some(Arc::new(found)), last, until, begun: false, over: false };
    let events = Sse::new(events(following)).keep_alive(KeepAlive::new().interval(HEARTBEAT));
    Ok(events.into_response())
}

/// `Last-Event-ID`, which is a revision.
fn last_event(headers: &HeaderMap) -> Result<Option<i64>, Refusal> {
    let wrong = || Refusal::field("last-event-id", "is not the id of an event of this stream");
    match headers.get(LAST_EVENT_ID) {
        None => Ok(None),
        Some(value) if value.is_empty() => Ok(None),
        Some(value) => {
            let digits = value.to_str().ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
            digits.filter(|text| text.len() <= 18).and_then(|text| text.parse().ok()).map(Some).ok_or_else(wrong)
        }
    }
}

/// One stream.
struct Following {
    follower: Follower,
    /// What the client is shown at once.
    first: Seen,
    /// Revision of the last event that the client has.
    last: Option<i64>,
    /// When the token ends.
    until: Instant,
    begun: bool,
    over: bool,
}

impl Following {
    /// The next snapshot the client does not have; none at the end.
    async fn newer(&mut self) -> Option<Arc<WireOperation>> {
        loop {
            let seen = if let Some(first) = self.first.take() {
                first
            } else {
                tokio::select! {
                    changed = self.follower.seen.changed() => changed.ok()?,
                    () = tokio::time::sleep_until(self.until) => return None,
                }
                let Some(seen) = self.follower.seen.borrow_and_update().clone() else { continue };
                seen
            };
            self.over = funnel::is_over(seen.state());
            if self.last.is_none_or(|last| seen.revision > last) {
                self.last = Some(seen.revision);
                return Some(seen);
            }
            if self.over {
                return None;
            }
        }
    }
}

fn events(following: Following) -> impl Stream<Item = Result<Event, axum::Error>> {
    stream::unfold(following, async |mut following| {
        if following.over {
            return None;
        }
        let seen = following.newer().await?;
        let event = event(&seen, !following.begun);
        following.begun = true;
        Some((event, following))
    })
}

fn event(seen: &WireOperation, first: bool) -> Result<Event, axum::Error> {
    let shown = operation(seen.clone()).map_err(|problem| axum::Error::new(problem.refusal().clone()))?;
    let event = Event::default().event("operation").id(seen.revision.to_string()).json_data(shown)?;
    Ok(if first { event.retry(COME_BACK_AFTER) } else { event })
}
