//! Every refusal as RFC 9457 `application/problem+json`: the HTTP side of the one table of error codes.

use std::collections::BTreeMap;

use axum::response::{IntoResponse, Response};
use domain::{ErrorCode, OperatorScope, Refusal};
use http::{
    HeaderValue, StatusCode,
    header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE},
};
use serde::Serialize;
use utoipa::{
    ToSchema,
    openapi::{ContentBuilder, Ref, RefOr, ResponseBuilder, response::Response as DocumentedResponse},
};

/// Seconds a client should wait before it tries again after 503 and 429: services restart within a few seconds.
const RETRY_AFTER_S: u32 = 5;

/// HTTP status of a code: one of the two total matches over the table.
fn http_status(code: ErrorCode) -> StatusCode {
    match code {
        ErrorCode::InvalidArgument => StatusCode::BAD_REQUEST,
        ErrorCode::Unauthenticated => StatusCode::UNAUTHORIZED,
        ErrorCode::PermissionDenied => StatusCode::FORBIDDEN,
        ErrorCode::NotFound => StatusCode::NOT_FOUND,
        ErrorCode::AlreadyExists | ErrorCode::StaleLease | ErrorCode::FailedPrecondition => StatusCode::CONFLICT,
        ErrorCode::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
        ErrorCode::StorageFull => StatusCode::INSUFFICIENT_STORAGE,
        ErrorCode::PayloadTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        ErrorCode::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        ErrorCode::DeadlineExceeded => StatusCode::GATEWAY_TIMEOUT,
        ErrorCode::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

fn title(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::InvalidArgument => "The request is wrong",
        ErrorCode::Unauthenticated => "No valid operator token",
        ErrorCode::PermissionDenied => "The token does not allow this",
        ErrorCode::NotFound => "Not found",
        ErrorCode::AlreadyExists => "The tracking id names another request",
        ErrorCode::StaleLease => "The lease is over",
        ErrorCode::FailedPrecondition => "The state does not allow it",
        ErrorCode::ResourceExhausted => "Too much at once",
        ErrorCode::StorageFull => "The platform's disk is full",
        ErrorCode::PayloadTooLarge => "The body is too large",
        ErrorCode::Unavailable => "A needed service does not answer",
        ErrorCode::DeadlineExceeded => "No answer in time",
        ErrorCode::Internal => "A fault of ours",
    }
}

/// What an answer that is not a success says.
#[derive(Serialize, ToSchema)]
#[schema(as = Problem)]
pub(crate) struct ProblemBody {
    /// Names the kind of problem, stable: `/problems/{code}`.
    #[serde(rename = "type")]
    #[schema(example = "/problems/INVALID_ARGUMENT")]
    kind: String,
    /// The kind, for people.
    title: &'static str,
    /// The HTTP status.
    status: u16,
    /// The kind, for programs.
    #[schema(value_type = String, example = "INVALID_ARGUMENT")]
    code: &'static str,
    /// One sentence about this case.
    detail: String,
    /// The field, path segment, parameter or header that is wrong, when a single one is.
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    /// Whether the same request may succeed later. Triggers may always be repeated with the same `tracking_id`.
    retryable: bool,
}

/// A refusal on its way out.
#[derive(Debug, Clone)]
pub struct Problem {
    refusal: Refusal,
    /// HTTP's own refusals (method, media type) keep their status; all others follow from the code.
    status: Option<StatusCode>,
    scope: Option<OperatorScope>,
    /// When to try again, in seconds, where that is known better than by [`RETRY_AFTER_S`].
    retry_after_s: Option<u32>,
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        Self { refusal, status: None, scope: None, retry_after_s: None }
    }
}

impl Problem {
    /// The one 401: it never says why.
    pub(crate) fn unauthenticated() -> Self {
        Refusal::new(ErrorCode::Unauthenticated, "a valid operator token is needed: Authorization: Bearer <token>")
            .into()
    }

    /// Whether a token is right cannot be told. Says nothing about the token.
    pub(crate) fn no_keys() -> Self {
        Refusal::new(ErrorCode::Unavailable, "the identity provider does not answer; nothing was done").into()
    }

    /// More than is allowed in this time; nothing was done.
    pub(crate) fn too_many(what: &str, retry_after_s: u32) -> Self {
        let refusal = Refusal::new(ErrorCode::ResourceExhausted, format!("too many {what}; nothing was done"));
        Self { retry_after_s: Some(retry_after_s), ..refusal.into() }
    }

    /// The one 404: unknown, or outside the token; nobody can tell which.
    pub(crate) fn not_found() -> Self {
        Refusal::new(ErrorCode::NotFound, "there is no such object, or this token may not see it").into()
    }

    pub(crate) fn missing_scope(scope: OperatorScope) -> Self {
        let refusal = Refusal::new(ErrorCode::PermissionDenied, format!("the token lacks the scope {scope}"));
        Self { scope: Some(scope), ..refusal.into() }
    }

    pub(crate) fn method_not_allowed() -> Self {
        let refusal = Refusal::field("method", "this path does not take this method");
        Self { status: Some(StatusCode::METHOD_NOT_ALLOWED), ..refusal.into() }
    }

    pub(crate) fn unsupported_media(field: &str, message: &str) -> Self {
        let refusal = Refusal::field(field, message);
        Self { status: Some(StatusCode::UNSUPPORTED_MEDIA_TYPE), ..refusal.into() }
    }

    /// What is refused, and why.
    pub fn refusal(&self) -> &Refusal {
        &self.refusal
    }

    /// The same problem, about that field where it is that something is not there.
    #[must_use]
    pub(crate) fn about(self, field: &str) -> Self {
        if self.refusal.code == ErrorCode::NotFound { self.at(field) } else { self }
    }

    /// The same problem, about that field.
    #[must_use]
    pub(crate) fn at(mut self, field: &str) -> Self {
        field.clone_into(&mut self.refusal.field);
        self
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let Refusal { code, field, message } = self.refusal;
        let status = self.status.unwrap_or_else(|| http_status(code));
        let retryable = matches!(
            code,
            ErrorCode::ResourceExhausted
                | ErrorCode::StorageFull
                | ErrorCode::Unavailable
                | ErrorCode::DeadlineExceeded
        );
        let body = ProblemBody {
            kind: format!("/problems/{code}"),
            title: title(code),
            status: status.as_u16(),
            code: code.as_str(),
            detail: message,
            field: Some(field).filter(|field| !field.is_empty()),
            retryable,
        };
        // A struct of texts, numbers and booleans always serialises.
        let mut response = (status, serde_json::to_vec(&body).unwrap_or_default()).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if code == ErrorCode::Unauthenticated {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(scope) = self.scope
            && let Ok(value) = HeaderValue::try_from(format!("Bearer error=\"insufficient_scope\", scope=\"{scope}\""))
        {
            headers.insert(WWW_AUTHENTICATE, value);
        }
        if retryable {
            headers.insert(RETRY_AFTER, self.retry_after_s.unwrap_or(RETRY_AFTER_S).into());
        }
        response
    }
}

fn documented(description: &str) -> RefOr<DocumentedResponse> {
    ResponseBuilder::new()
        .description(description)
        .content(
            "application/problem+json",
            ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).build(),
        )
        .build()
        .into()
}

fn documented_all(list: &[(&str, &str)]) -> BTreeMap<String, RefOr<DocumentedResponse>> {
    list.iter().map(|(status, description)| ((*status).to_owned(), documented(description))).collect()
}

/// The problems any authenticated read may answer with.
pub(crate) struct ReadProblems;

impl utoipa::IntoResponses for ReadProblems {
    fn responses() -> BTreeMap<String, RefOr<DocumentedResponse>> {
        documented_all(&[
            ("400", "A path segment or parameter is wrong; `field` names it."),
            ("401", "No valid operator token."),
            ("403", "The token lacks the scope that `detail` names."),
            ("404", "Unknown, or outside this token's tenants and stores."),
            ("429", "More requests than one operator or address may send; see Retry-After."),
            ("500", "A fault of ours; the service's log has the cause."),
            ("503", "A needed service does not answer, or too many requests are in hand; see Retry-After."),
            ("504", "No answer in time; repeat the request."),
        ])
    }
}

/// The problems a question with a body may answer with.
pub(crate) struct AskProblems;

impl utoipa::IntoResponses for AskProblems {
    fn responses() -> BTreeMap<String, RefOr<DocumentedResponse>> {
        let mut all = ReadProblems::responses();
        all.extend(documented_all(&[
            ("413", "The body is larger than its description allows."),
            ("415", "The body is not application/json."),
        ]));
        all
    }
}

/// The problems a control action may answer with.
pub(crate) struct ControlProblems;

impl utoipa::IntoResponses for ControlProblems {
    fn responses() -> BTreeMap<String, RefOr<DocumentedResponse>> {
        documented_all(&[
            ("400", "The body is wrong; `field` names where. Nothing was done."),
            ("401", "No valid operator token."),
            ("403", "The token lacks the scope that `detail` names, or its holder asked for the operation."),
            ("404", "Unknown, or outside this token's tenants and stores."),
            ("409", "The operation stands where this is not possible; `detail` says where."),
            ("413", "The body is larger than its description allows."),
            ("415", "The body is not application/json."),
            ("429", "Too many actions; see Retry-After."),
            ("500", "A fault of ours; the service's log has the cause."),
            ("503", "A needed service does not answer; nothing was done; see Retry-After."),
            ("504", "The outcome is unknown: look at the operation, then repeat."),
        ])
    }
}

/// The problems a trigger may answer with.
pub(crate) struct TriggerProblems;

impl utoipa::IntoResponses for TriggerProblems {
    fn responses() -> BTreeMap<String, RefOr<DocumentedResponse>> {
        documented_all(&[
            ("400", "The body is wrong; `field` names where. Nothing was done."),
            ("401", "No valid operator token."),
            ("403", "The token lacks the scope that `detail` names."),
            ("404", "Unknown, or outside this token's tenants and stores."),
            ("409", "The tracking id names another request; `field` names what differs."),
            ("413", "The body is larger than its description allows."),
            ("415", "The body is not application/json."),
            ("429", "More requests than one operator, tenant or address may send; nothing was done; see Retry-After."),
            ("500", "A fault of ours; the service's log has the cause."),
            ("503", "A needed service does not answer; nothing was done; see Retry-After."),
            ("504", "The outcome is unknown: repeat with the same tracking_id."),
        ])
    }
}
