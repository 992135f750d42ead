//! Calling the platform and the trigger services: bounded in time, every failure sorted into what an operator can act on.

use std::{fmt, future::Future, time::Duration};

use domain::{ErrorCode, Refusal, ServiceName};
use tonic::{Code, Response, Status};

use crate::problem::Problem;

/// Longest wait for one call. The slowest honest call counts a model's labels; a second is already slow.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// Whom a call goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Peer {
    /// The change queue service.
    Cqs,
    /// The store of records.
    DtoFlow,
    /// The service that owns a trigger.
    Trigger(ServiceName),
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cqs => f.write_str("cqs"),
            Self::DtoFlow => f.write_str("dtoflow"),
            Self::Trigger(service) => write!(f, "{service}"),
        }
    }
}

/// Why a call gave no answer to use.
#[derive(Debug)]
pub(crate) enum CallError {
    /// The peer looked at the request and refused it.
    Refused(Refusal),
    /// The peer could not be reached; it did nothing.
    Down(Peer),
    /// The peer was reached but not something it needs; it did nothing.
    DownBehind(Peer),
    /// The peer may or may not have done it.
    NoAnswer(Peer),
    /// The peer and we do not understand each other (identity, contract): logged, ours to repair.
    Fault,
}

/// Awaits one call to `peer`.
pub(crate) async fn call<T>(
    peer: Peer,
    answer: impl Future<Output = Result<Response<T>, Status>>,
) -> Result<T, CallError> {
    call_within(peer, CALL_TIMEOUT, answer).await
}

/// Awaits one call to `peer` for at most `limit`.
pub(crate) async fn call_within<T>(
    peer: Peer,
    limit: Duration,
    answer: impl Future<Output = Result<Response<T>, Status>>,
) -> Result<T, CallError> {
    match tokio::time::timeout(limit, answer).await {
        Ok(Ok(response)) => Ok(response.into_inner()),
        Ok(Err(status)) => Err(sorted(peer, &status)),
        Err(_) => {
            tracing::warn!(%peer, limit_s = limit.as_secs(), "no answer in time");
            Err(CallError::NoAnswer(peer))
        }
    }
}

fn sorted(peer: Peer, status: &Status) -> CallError {
    let refusal = proto::refusal_from_status(status);
    // A peer that refuses names our code; a status without one comes from the transport or the gRPC library.
    let deliberate = status.metadata().contains_key(proto::ERROR_CODE_KEY);
    let error = match (deliberate, refusal.code) {
        (_, ErrorCode::Unauthenticated) => CallError::Fault,
        (true, ErrorCode::DeadlineExceeded) => CallError::NoAnswer(peer),
        (true, ErrorCode::Unavailable) => CallError::DownBehind(peer),
        (true, _) => CallError::Refused(refusal),
        (false, _) => match status.code() {
            Code::Unavailable => CallError::Down(peer),
            Code::DeadlineExceeded | Code::Cancelled | Code::Unknown | Code::Internal | Code::Aborted => {
                CallError::NoAnswer(peer)
            }
            Code::InvalidArgument | Code::NotFound | Code::AlreadyExists | Code::ResourceExhausted => {
                CallError::Refused(refusal)
            }
            _ => CallError::Fault,
        },
    };
    if !matches!(error, CallError::Refused(_)) {
        tracing::warn!(%peer, code = ?status.code(), message = status.message(), "call failed");
    }
    error
}

impl CallError {
    /// What an operator is told; `advice` says what to do when the outcome is unknown or nothing was done.
    pub(crate) fn problem(self, advice: &str) -> Problem {
        match self {
            // Our own grants are ours to repair; the operator's token is not at fault.
            Self::Refused(refusal) if refusal.code == ErrorCode::PermissionDenied => {
                tracing::error!(%refusal, "the gateway is not allowed a call it needs");
                Refusal::internal().into()
            }
            // One 404, whoever found nothing.
            Self::Refused(refusal) if refusal.code == ErrorCode::NotFound => Problem::not_found(),
            Self::Refused(refusal) => refusal.into(),
            Self::Down(peer) => {
                Refusal::new(ErrorCode::Unavailable, format!("{peer} does not answer; nothing was done; {advice}"))
                    .into()
            }
            Self::DownBehind(peer) => {
                let message = format!("{peer} cannot reach a service it needs; nothing was done; {advice}");
                Refusal::new(ErrorCode::Unavailable, message).into()
            }
            Self::NoAnswer(peer) => {
                let message = format!("{peer} gave no answer in time, the outcome is unknown; {advice}");
                Refusal::new(ErrorCode::DeadlineExceeded, message).into()
            }
            Self::Fault => {
                tracing::error!("a peer does not accept the gateway's call; see the line before");
                Refusal::internal().into()
            }
        }
    }
}

/// For reads: repeating them is always right.
impl From<CallError> for Problem {
    fn from(error: CallError) -> Self {
        let advice = "repeat the request";
        match error {
            // A read has no outcome that anybody could be in doubt about.
            CallError::NoAnswer(peer) => {
                let message = format!("{peer} gave no answer in time; {advice}");
                Refusal::new(ErrorCode::DeadlineExceeded, message).into()
            }
            error => error.problem(advice),
        }
    }
}
