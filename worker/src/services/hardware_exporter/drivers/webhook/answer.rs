//! What the system says of a picture.

use daemon::outbound::HttpAnswer;
use domain::Timestamp;
use http::StatusCode;
use proto::records::v1::{DeliveryState, Evidence};
use serde::Deserialize;

use super::super::{Delivered, Pending};

/// Characters of a cause that are kept.
const CAUSE_CHARS_MAX: usize = 200;
/// How long the callback of a system that takes no questions is waited for, in milliseconds: an hour, in which every tag
/// checks in. Then the picture is sent again.
pub(super) const CALLBACK_MS_MAX: i64 = 60 * 60 * 1_000;
/// Longest id of the system's own, in bytes.
const ID_BYTES_MAX: usize = 100;

/// The body of an answer or a callback.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct Said {
    state: Option<Stage>,
    #[serde(default)]
    id: String,
    #[serde(default)]
    cause: String,
}

/// How far a picture is over there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Stage {
    /// Taken; more will be said.
    Accepted,
    /// Waits for the label.
    Queued,
    /// Put down for good where the system can say no more.
    Written,
    /// The label has the bytes.
    Transferred,
    /// The panel shows it.
    Displayed,
    /// Lost; to be sent again.
    Lost,
    /// Will never arrive as things are.
    Failed,
}

impl Said {
    pub(super) fn read(body: &[u8]) -> Option<Self> {
        serde_json::from_slice(body).ok()
    }

    /// Whether it says anything.
    pub(super) const fn names_a_state(&self) -> bool {
        self.state.is_some()
    }

    fn cause(&self, otherwise: &str) -> String {
        let cause: String = self.cause.chars().filter(|it| !it.is_control()).take(CAUSE_CHARS_MAX).collect();
        if cause.is_empty() { otherwise.to_owned() } else { cause }
    }

    /// What it means; nothing where no state is named.
    pub(super) fn meaning(&self, receipt: &str) -> Option<Delivered> {
        let receipt = if self.id.is_empty() || self.id.len() > ID_BYTES_MAX { receipt } else { &self.id }.to_owned();
        let stage = self.state?;
        let underway = |state| Delivered::Underway { state, receipt, proof: self.cause("the system says so") };
        let confirmed = |evidence, proof: &str| Delivered::Confirmed { evidence, proof: proof.to_owned() };
        Some(match stage {
            Stage::Accepted => underway(DeliveryState::Accepted),
            Stage::Queued => underway(DeliveryState::Queued),
            Stage::Written => confirmed(Evidence::Written, "the system says: written"),
            Stage::Transferred => confirmed(Evidence::Transferred, "the system says: transferred"),
            Stage::Displayed => confirmed(Evidence::Displayed, "the system says: displayed"),
            Stage::Lost => Delivered::Lost { cause: self.cause("the system says: lost") },
            Stage::Failed => Delivered::Permanent { cause: self.cause("the system says: failed") },
        })
    }
}

/// To a picture that was sent.
pub(super) fn to_sending(answer: &HttpAnswer) -> Delivered {
    let said = Said::read(&answer.body);
    let status = answer.status;
    let cause = |otherwise: String| said.as_ref().map_or(otherwise.clone(), |said| said.cause(&otherwise));
    match status {
        StatusCode::OK | StatusCode::ACCEPTED => said.and_then(|said| said.meaning("")).unwrap_or_else(|| {
            Delivered::Retryable { cause: format!("the system answered {} without a state", status.as_u16()) }
        }),
        StatusCode::CONFLICT => Delivered::Superseded { cause: cause("the system has a later one (409)".to_owned()) },
        StatusCode::UNPROCESSABLE_ENTITY => {
            Delivered::Permanent { cause: cause("the system refuses the picture (422)".to_owned()) }
        }
        redirect if redirect.is_redirection() => Delivered::Permanent {
            cause: format!("the system redirects ({}); redirects are not followed", redirect.as_u16()),
        },
        other => Delivered::Retryable { cause: cause(format!("the system answered {}", other.as_u16())) },
    }
}

/// To a question after a picture.
pub(super) fn to_looking(answer: &HttpAnswer, pending: &Pending, now: Timestamp) -> Delivered {
    match answer.status {
        StatusCode::NOT_FOUND => Delivered::Lost { cause: "the system knows nothing of the picture (404)".to_owned() },
        StatusCode::OK | StatusCode::ACCEPTED => Said::read(&answer.body)
            .and_then(|said| said.meaning(&pending.receipt))
            .unwrap_or_else(|| unchanged(pending, "the system names no state")),
        // It takes no questions: its callback is still to come, or was said to a worker that has ended.
        StatusCode::METHOD_NOT_ALLOWED if now.ms_since(pending.sent_at) > CALLBACK_MS_MAX => {
            Delivered::Lost { cause: "the system takes no questions and has not called back in time".to_owned() }
        }
        StatusCode::METHOD_NOT_ALLOWED => unchanged(pending, "the system takes no questions; its callback is awaited"),
        other => unchanged(pending, &format!("the system answered the question with {}", other.as_u16())),
    }
}

fn unchanged(pending: &Pending, proof: &str) -> Delivered {
    Delivered::Underway { state: pending.state, receipt: pending.receipt.clone(), proof: proof.to_owned() }
}
