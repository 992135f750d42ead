//! What a call to the platform can fail with, as the runtime acts on it.

use domain::{ErrorCode, Refusal, limits::CAUSE_MAX_BYTES};
use tonic::Status;

/// A failed call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CallError {
    /// The lease is over: drop the batch, write nothing more.
    #[error("the lease is over")]
    Stale,
    /// Not now: the platform is away, full, or does not (yet) know us. Nothing is wrong with the items.
    #[error("{0}")]
    NotNow(Refusal),
    /// The call itself is wrong and stays wrong.
    #[error("{0}")]
    Never(Refusal),
    /// A fault of the platform; the same call may work later.
    #[error("{0}")]
    Fault(Refusal),
}

/// A cause as CQS and a status record take it: never empty, cut to its bound at a whole character.
pub(crate) fn cause(mut text: String) -> String {
    let mut end = text.len().min(CAUSE_MAX_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    if text.is_empty() { "no cause was given".to_owned() } else { text }
}

impl CallError {
    /// A fault on our side of the wire: an answer that does not fit its call.
    pub(crate) fn answer(what: &str) -> Self {
        Self::Fault(Refusal::new(ErrorCode::Internal, what))
    }
}

impl From<Refusal> for CallError {
    fn from(refusal: Refusal) -> Self {
        match refusal.code {
            ErrorCode::StaleLease => Self::Stale,
            // Identity and permission are configuration: an operator mends them, then the items are as good as ever.
            ErrorCode::Unavailable
            | ErrorCode::DeadlineExceeded
            | ErrorCode::ResourceExhausted
            | ErrorCode::StorageFull
            | ErrorCode::Unauthenticated
            | ErrorCode::PermissionDenied => Self::NotNow(refusal),
            ErrorCode::InvalidArgument
            | ErrorCode::PayloadTooLarge
            | ErrorCode::NotFound
            | ErrorCode::AlreadyExists
            | ErrorCode::FailedPrecondition => Self::Never(refusal),
            ErrorCode::Internal => Self::Fault(refusal),
        }
    }
}

impl From<Status> for CallError {
    fn from(status: Status) -> Self {
        proto::refusal_from_status(&status).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_cut_at_a_whole_character_and_never_empty() {
        let long = cause("ä".repeat(501) + "x");
        assert_eq!((long.len(), long.chars().count()), (1_000, 500));
        assert!(!cause(String::new()).is_empty());
    }
}
