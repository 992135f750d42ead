//! Error code ↔ gRPC status: one of the two total matches over the table of codes.

use domain::{ErrorCode, Refusal};
use tonic::{Code, Status, metadata::MetadataValue};

/// Metadata key of the [`ErrorCode`]: its presence tells a peer's own refusal from a failure of the transport.
pub const ERROR_CODE_KEY: &str = "x-error-code";
/// Metadata key of the wrong field's path.
const FIELD_KEY: &str = "x-error-field";

fn grpc_code(code: ErrorCode) -> Code {
    match code {
        ErrorCode::InvalidArgument | ErrorCode::PayloadTooLarge => Code::InvalidArgument,
        ErrorCode::Unauthenticated => Code::Unauthenticated,
        ErrorCode::PermissionDenied => Code::PermissionDenied,
        ErrorCode::NotFound => Code::NotFound,
        ErrorCode::AlreadyExists => Code::AlreadyExists,
        ErrorCode::StaleLease | ErrorCode::FailedPrecondition => Code::FailedPrecondition,
        ErrorCode::ResourceExhausted | ErrorCode::StorageFull => Code::ResourceExhausted,
        ErrorCode::Unavailable => Code::Unavailable,
        ErrorCode::DeadlineExceeded => Code::DeadlineExceeded,
        ErrorCode::Internal => Code::Internal,
    }
}

/// The status that carries a refusal to another system.
pub fn status_from_refusal(refusal: &Refusal) -> Status {
    let mut status = Status::new(grpc_code(refusal.code), refusal.message.clone());
    status.metadata_mut().insert(ERROR_CODE_KEY, MetadataValue::from_static(refusal.code.as_str()));
    if !refusal.field.is_empty()
        && let Ok(field) = MetadataValue::try_from(refusal.field.as_str())
    {
        status.metadata_mut().insert(FIELD_KEY, field);
    }
    status
}

/// The refusal a status carries; statuses of the transport itself are mapped by their gRPC code.
pub fn refusal_from_status(status: &Status) -> Refusal {
    let text = |key| status.metadata().get(key).and_then(|value| value.to_str().ok());
    let code = text(ERROR_CODE_KEY).and_then(|code| code.parse().ok()).unwrap_or(match status.code() {
        Code::InvalidArgument => ErrorCode::InvalidArgument,
        Code::Unauthenticated => ErrorCode::Unauthenticated,
        Code::PermissionDenied => ErrorCode::PermissionDenied,
        Code::NotFound => ErrorCode::NotFound,
        Code::AlreadyExists => ErrorCode::AlreadyExists,
        Code::FailedPrecondition => ErrorCode::FailedPrecondition,
        Code::ResourceExhausted | Code::OutOfRange => ErrorCode::ResourceExhausted,
        Code::Unavailable => ErrorCode::Unavailable,
        // A cancelled call may have been carried out, so its outcome is as unknown as that of a late one. `Unknown` is what
        // tonic makes of a connection that broke with a call on it; our servers never answer it.
        Code::DeadlineExceeded | Code::Cancelled | Code::Unknown => ErrorCode::DeadlineExceeded,
        Code::Ok | Code::Aborted | Code::Unimplemented | Code::Internal | Code::DataLoss => ErrorCode::Internal,
    });
    Refusal { code, field: text(FIELD_KEY).unwrap_or_default().to_owned(), message: status.message().to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_survive_the_wire() {
        for code in ErrorCode::ALL {
            let refusal = Refusal::new(*code, "no").at("items[3].dto_id");
            assert_eq!(refusal_from_status(&status_from_refusal(&refusal)), refusal);
        }
    }

    #[test]
    fn a_cancelled_call_has_an_unknown_outcome() {
        assert_eq!(refusal_from_status(&Status::cancelled("timeout")).code, ErrorCode::DeadlineExceeded);
    }
}
