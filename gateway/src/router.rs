//! The router, on one page, and the document made from it.

use std::sync::Arc;

use axum::{
    Extension, Router,
    middleware::from_fn_with_state,
    response::{IntoResponse as _, Redirect, Response},
};
use domain::Refusal;
use http::{
    HeaderValue, Method, Uri,
    header::{AUTHORIZATION, CONTENT_TYPE, ETAG, IF_NONE_MATCH, LOCATION, RETRY_AFTER},
};
use tower_http::{catch_panic::CatchPanicLayer, cors::CorsLayer};
use utoipa::{
    Modify, OpenApi,
    openapi::{
        OpenApi as Document,
        security::{HttpAuthScheme, HttpBuilder, SecurityScheme},
    },
};
use utoipa_axum::{router::OpenApiRouter, routes};
use utoipa_swagger_ui::{Config, SwaggerUi};

use crate::{
    document, edge, notify,
    parameters::Known,
    problem::{Problem, ProblemBody},
    routes as r,
    state::{Gateway, GatewayParts},
};

/// The frame of the document; the routes fill it.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "reshelf operator gateway",
        description = "Lets operators force a service to process again, by named triggers, and follow what came of it.\n\n\
            Every refusal is `application/problem+json` with a stable `code`. Another tenant's object and an unknown one \
            give the same 404. A trigger may be repeated with the same `tracking_id`: the same request gives the same answer.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0"),
    ),
    servers((url = "/", description = "This gateway")),
    components(schemas(ProblemBody, r::triggers::TriggerAnswer, r::triggers::Accepted)),
    modifiers(&Bearer),
    tags(
        (name = "operator", description = "Who the token says you are."),
        (name = "triggers", description = "Force processing without a data change. Try with `dry_run: true` first."),
        (name = "operations", description = "What came of accepted triggers."),
        (name = "labels", description = "Tenants, stores, designs, models, labels and their pictures."),
        (name = "audit", description = "Who did what, and what was refused."),
        (name = "daemon", description = "Health and figures of this process."),
    )
)]
struct Frame;

struct Bearer;

impl Modify for Bearer {
    fn modify(&self, document: &mut Document) {
        let scheme = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .bearer_format("JWT")
            .description(Some("An operator token. The scopes an operation needs stand with its security requirement."))
            .build();
        document.components.get_or_insert_default().add_security_scheme("operator", SecurityScheme::Http(scheme));
    }
}

fn documented_routes() -> (Router<Arc<Gateway>>, Document) {
    let (routes, mut document) = OpenApiRouter::with_openapi(Frame::openapi())
        .routes(routes!(r::me::get_me))
        .routes(routes!(r::triggers::list_triggers))
        .routes(routes!(r::model_refresh::trigger_model_refresh))
        .routes(routes!(r::design_refresh::trigger_design_refresh))
        .routes(routes!(r::preview::preview_model_refresh))
        .routes(routes!(r::preview::preview_design_refresh))
        .routes(routes!(r::ecc_store_rerender::trigger_ecc_store_rerender))
        .routes(routes!(r::studio_store_rerender::trigger_studio_store_rerender))
        .routes(routes!(r::store_reexport::trigger_store_reexport))
        .routes(routes!(r::access_point_reexport::trigger_access_point_reexport))
        .routes(routes!(r::label_reexport::trigger_label_reexport))
        .routes(routes!(r::touch::touch_records))
        .routes(routes!(r::operations::list_operations))
        .routes(routes!(r::operations::list_tenant_operations))
        .routes(routes!(r::operations::get_operation, r::control::limits::set_operation_limits))
        .routes(routes!(r::events::get_operation_events))
        .routes(routes!(r::failures::list_failures))
        .routes(routes!(r::failures::retry_failures))
        .routes(routes!(r::control::pause::pause_operation))
        .routes(routes!(r::control::pause::resume_operation))
        .routes(routes!(r::control::cancel::cancel_operation))
        .routes(routes!(r::control::approval::approve_operation))
        .routes(routes!(r::control::approval::decline_operation))
        .routes(routes!(r::brake::get_brake, r::brake::set_brake))
        .routes(routes!(r::status::get_status))
        .routes(routes!(r::tenants::list_tenants))
        .routes(routes!(r::stores::list_stores))
        .routes(routes!(r::designs::list_designs))
        .routes(routes!(r::models::list_models))
        .routes(routes!(r::access_points::list_access_points))
        .routes(routes!(r::labels::list_labels))
        .routes(routes!(r::label::get_label))
        .routes(routes!(r::label_history::list_label_history))
        .routes(routes!(r::label_image::get_label_image))
        .routes(routes!(r::audit::list_audit))
        .routes(routes!(r::health::get_health))
        .routes(routes!(r::health::get_readiness))
        .routes(routes!(r::health::get_metrics))
        .split_for_parts();
    document::complete(&mut document);
    (routes, document)
}

/// The document, as served at `/openapi.json` and committed as `openapi/openapi.json`.
pub fn openapi_json() -> String {
    let (_, document) = documented_routes();
    // The document is a tree of texts; it always serialises.
    let mut text = document.to_pretty_json().unwrap_or_default();
    text.push('\n');
    text
}

/// The whole gateway.
pub fn router(parts: GatewayParts) -> Router {
    let login = parts.login.clone();
    let (gateway, origins) = Gateway::new(parts);
    let gateway = Arc::new(gateway);
    notify::start(&gateway);
    let (routes, document) = documented_routes();
    let known = Arc::new(Known::of(&document));
    let routes = routes.layer(Extension(known));
    let page = SwaggerUi::new("/docs")
        .config(Config::default().persist_authorization(false).try_it_out_enabled(true).validator_url("none"));
    let page = match login {
        None => page.url("/openapi.json", document),
        Some(login) => {
            // The document is a tree of texts; it always serialises.
            let document = login.decorated(serde_json::to_value(document).unwrap_or_default());
            page.external_url_unchecked("/openapi.json", document).oauth(login.oauth())
        }
    };
    let router = routes
        .merge(page)
        .fallback(elsewhere)
        .method_not_allowed_fallback(async || Problem::method_not_allowed())
        .layer(CatchPanicLayer::custom(|_| panicked()))
        .layer(from_fn_with_state(Arc::clone(&gateway), edge::bound))
        .layer(from_fn_with_state(Arc::clone(&gateway), edge::count))
        .layer(from_fn_with_state(Arc::clone(&gateway), edge::frame))
        .with_state(gateway);
    if origins.is_empty() { router } else { router.layer(cors(origins)) }
}

/// What is no route. Whoever opens the bare address in a browser wants the page.
async fn elsewhere(method: Method, uri: Uri) -> Response {
    if uri.path() == "/" && matches!(method, Method::GET | Method::HEAD) {
        return Redirect::to("/docs/").into_response();
    }
    Problem::not_found().into_response()
}

fn panicked() -> Response {
    tracing::error!("a handler panicked");
    Problem::from(Refusal::internal()).into_response()
}

fn cors(origins: Vec<HeaderValue>) -> CorsLayer {
    CorsLayer::new()
        .allow_origin(origins)
        .allow_methods([Method::GET, Method::POST, Method::PUT, Method::PATCH])
        .allow_headers([AUTHORIZATION, CONTENT_TYPE, IF_NONE_MATCH])
        .expose_headers([LOCATION, RETRY_AFTER, ETAG, http::HeaderName::from_static("x-request-id")])
}
