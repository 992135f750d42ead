//! Mishaps on demand, over HTTP: `POST /simulated/…`. No access point has such routes; whoever watches a simulated one wants
//! to see it reboot now, not by chance.

use std::{collections::BTreeMap, sync::Arc};

use axum::{
    Router,
    extract::{Path, Query, State},
    routing::post,
};
use http::StatusCode;

use super::{Control, Mac, Shared, TransferFault};

/// The routes.
pub(super) fn router() -> Router<Arc<Shared>> {
    Router::new().route("/simulated/{mishap}", post(happen))
}

/// 204: it happened; 400: there is no such mishap, or it needs a tag's `mac`.
async fn happen(
    State(shared): State<Arc<Shared>>,
    Path(mishap): Path<String>,
    Query(query): Query<BTreeMap<String, String>>,
) -> StatusCode {
    let tag = query.get("mac").and_then(|mac| mac.parse::<Mac>().ok());
    let control = match (mishap.as_str(), tag) {
        ("reboot", _) => Control::Reboot,
        ("radio-reset", _) => Control::RadioReset,
        ("forget-tags", _) => Control::ForgetTags,
        ("lose", Some(tag)) => Control::Transfer(tag, TransferFault::Lost),
        ("late", Some(tag)) => Control::Transfer(tag, TransferFault::Late(2)),
        ("twice", Some(tag)) => Control::Transfer(tag, TransferFault::Twice),
        ("reboot-tag", Some(tag)) => Control::RebootTag(tag),
        _ => return StatusCode::BAD_REQUEST,
    };
    shared.station().control(control);
    StatusCode::NO_CONTENT
}
