//! The export rule. Pure.

use domain::{DtoType, RecordId, Urn};
use proto::records::v1::{DeliveryState, EslImage, Evidence, ImageSource, StoreEsl, StoreEslStatus};

use super::drivers::Delivered;
use crate::runtime::{Found, Input, LabelRef, Records, cause};

/// What is known of a label.
pub(super) struct State {
    label: LabelRef,
    image: Found<EslImage>,
    esl: Found<StoreEsl>,
    status: Found<StoreEslStatus>,
}

/// What to do with it.
#[derive(Debug, PartialEq)]
pub(super) enum Decision {
    /// The label is no more: its status goes.
    Forget(Vec<Input>),
    /// The picture is confirmed and the status says so.
    Confirmed,
    /// Nothing is sent, but the status must say this.
    Say(StoreEslStatus, Vec<Input>),
    /// Send the picture.
    Send(Box<Send>),
    /// It cannot be sent: the status says why, and so does the outcome.
    Broken(StoreEslStatus, Vec<Input>),
}

/// A picture to send.
#[derive(Debug, PartialEq)]
pub(super) struct Send {
    /// Type of the source image, which has the label's id.
    pub(super) source: DtoType,
    pub(super) digest: Vec<u8>,
    pub(super) access_point: Urn,
    pub(super) hardware_address: String,
    /// The status before.
    before: StoreEslStatus,
    /// Picture, label and status, with their versions; the status last.
    pub(super) inputs: Vec<Input>,
}

impl State {
    /// From the first read.
    pub(super) fn of(label: &LabelRef, read: &Records) -> Result<Self, String> {
        Ok(Self {
            label: label.clone(),
            image: read.record(&label.record(DtoType::EslImage))?,
            esl: read.record(&label.record(DtoType::StoreEsl))?,
            status: read.record(&label.record(DtoType::StoreEslStatus))?,
        })
    }

    /// The one rule, and what surrounds it.
    pub(super) fn decide(self) -> Decision {
        let Self { label, image, esl, status } = self;
        let inputs = vec![image.input, esl.input, status.input];
        let Some(esl) = esl.record else { return Decision::Forget(inputs) };
        let before = status.record.unwrap_or_default();
        let Some(image) = image.record else {
            // What it shows and what may still be on its way stays as it is.
            return said(DeliveryState::Unassigned, before, inputs);
        };
        if is_confirmed(&before, &image, &esl) {
            return if before.state() == DeliveryState::Confirmed {
                Decision::Confirmed
            } else {
                said(DeliveryState::Confirmed, before, inputs)
            };
        }
        let source = match image.source() {
            ImageSource::Studio => DtoType::StudioEslImage,
            ImageSource::Ecc | ImageSource::Unspecified => DtoType::EccEslImage,
        };
        match esl.accesspoint_id.parse::<RecordId>() {
            Ok(id) => Decision::Send(Box::new(Send {
                source,
                digest: image.digest.to_vec(),
                access_point: label.neighbour(DtoType::AccessPoint, &id),
                hardware_address: esl.hardware_address,
                before,
                inputs,
            })),
            Err(wrong) => {
                let error = format!("the label's access point {:?} {wrong}", esl.accesspoint_id);
                Decision::Broken(failed(&before, error), inputs)
            }
        }
    }
}

/// Whether the label's present hardware address last confirmed this digest. While something else is, or may be, on its
/// way, nobody knows what the label shows.
fn is_confirmed(status: &StoreEslStatus, image: &EslImage, esl: &StoreEsl) -> bool {
    !status.confirmed_digest.is_empty()
        && status.confirmed_digest == image.digest
        && status.confirmed_hardware_address == esl.hardware_address
        && status.sent_digest.is_empty()
}

fn said(state: DeliveryState, before: StoreEslStatus, inputs: Vec<Input>) -> Decision {
    Decision::Say(StoreEslStatus { state: state.into(), attempts: 0, last_error: String::new(), ..before }, inputs)
}

impl Send {
    /// The status while the picture is on its way.
    pub(super) fn sent(&self) -> StoreEslStatus {
        let again = self.before.sent_digest == self.digest;
        StoreEslStatus {
            state: DeliveryState::Sent.into(),
            sent_digest: self.digest.clone().into(),
            attempts: if again { self.before.attempts.saturating_add(1) } else { 1 },
            ..self.before.clone()
        }
    }

    /// Whether the status must say "sent" before the picture goes out: only then could a later reader take an older
    /// picture for confirmed.
    pub(super) fn must_be_announced(&self) -> bool {
        !self.before.confirmed_digest.is_empty() && self.before.sent_digest != self.digest
    }

    /// The status after the driver answered.
    pub(super) fn answered(&self, delivered: &Delivered, evidence: Evidence) -> StoreEslStatus {
        let sent = self.sent();
        let error = |text: &String| cause(text.clone());
        match delivered {
            Delivered::Confirmed => StoreEslStatus {
                state: DeliveryState::Confirmed.into(),
                confirmed_digest: self.digest.clone().into(),
                confirmed_hardware_address: self.hardware_address.clone(),
                sent_digest: Vec::new().into(),
                attempts: 0,
                last_error: String::new(),
                evidence: evidence.into(),
            },
            Delivered::Underway(state) => StoreEslStatus { state: (*state).into(), ..sent },
            Delivered::Retryable { cause } | Delivered::Superseded { cause } => {
                StoreEslStatus { last_error: error(cause), ..sent }
            }
            Delivered::Permanent { cause } => {
                StoreEslStatus { state: DeliveryState::Failed.into(), last_error: error(cause), ..sent }
            }
            Delivered::Unreachable { cause } => {
                StoreEslStatus { state: DeliveryState::Unreachable.into(), last_error: error(cause), ..sent }
            }
        }
    }

    /// The status when nothing could be handed to a driver: what is confirmed stays so.
    pub(super) fn not_sent(&self, cause: &str) -> StoreEslStatus {
        failed(&self.before, cause.to_owned())
    }
}

fn failed(before: &StoreEslStatus, error: String) -> StoreEslStatus {
    StoreEslStatus { state: DeliveryState::Failed.into(), last_error: cause(error), ..before.clone() }
}

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::*;

    fn decide(image: Option<u8>, esl: Option<&str>, status: Option<&StoreEslStatus>) -> Decision {
        let label = LabelRef::of(&"t/T/s/S/esls/E".parse().unwrap()).unwrap();
        let image = image.map(|byte| EslImage { source: 1, digest: vec![byte; 32].into(), ..Default::default() });
        let esl = esl.map(|address| StoreEsl {
            esltype_id: "X".into(),
            accesspoint_id: "A".into(),
            hardware_address: address.into(),
        });
        let read = Records::of([
            (DtoType::EslImage, label.record(DtoType::EslImage), image.map(|record| (1, record.encode_to_vec()))),
            (DtoType::StoreEsl, label.record(DtoType::StoreEsl), esl.map(|record| (1, record.encode_to_vec()))),
            (
                DtoType::StoreEslStatus,
                label.record(DtoType::StoreEslStatus),
                status.map(|record| (1, record.encode_to_vec())),
            ),
        ]);
        State::of(&label, &read).unwrap().decide()
    }

    fn confirmed(byte: u8, address: &str) -> StoreEslStatus {
        StoreEslStatus {
            state: DeliveryState::Confirmed.into(),
            confirmed_digest: vec![byte; 32].into(),
            confirmed_hardware_address: address.into(),
            evidence: Evidence::Written.into(),
            ..Default::default()
        }
    }

    fn send(image: u8, status: Option<&StoreEslStatus>) -> Send {
        match decide(Some(image), Some("H"), status) {
            Decision::Send(send) => *send,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn sends_unless_this_hardware_last_confirmed_this_digest() {
        let status = confirmed(7, "H");
        assert_eq!(decide(Some(7), Some("H"), Some(&status)), Decision::Confirmed);
        assert!(matches!(decide(Some(8), Some("H"), Some(&status)), Decision::Send(_)));
        assert!(matches!(decide(Some(7), Some("other"), Some(&status)), Decision::Send(_)));
        assert!(matches!(decide(Some(7), Some("H"), None), Decision::Send(_)));
        let withdrawn = StoreEslStatus { confirmed_digest: Vec::new().into(), ..status };
        assert!(matches!(decide(Some(7), Some("H"), Some(&withdrawn)), Decision::Send(_)));
    }

    #[test]
    fn a_return_to_the_confirmed_picture_is_sent_while_another_may_have_arrived() {
        let to_8 = send(8, Some(&confirmed(7, "H")));
        assert!(to_8.must_be_announced());
        let on_its_way = to_8.sent();
        let back = send(7, Some(&on_its_way));
        assert!(back.must_be_announced());
        let arrived = back.answered(&Delivered::Confirmed, Evidence::Written);
        assert_eq!(arrived, confirmed(7, "H"));
        assert_eq!(decide(Some(7), Some("H"), Some(&arrived)), Decision::Confirmed);
    }

    #[test]
    fn a_first_picture_needs_no_announcement_and_attempts_count_per_picture() {
        let first = send(1, None);
        assert!(!first.must_be_announced());
        let once = first.answered(&Delivered::Retryable { cause: "full".into() }, Evidence::Written);
        assert_eq!((once.attempts, once.last_error.as_str()), (1, "full"));
        assert_eq!(send(1, Some(&once)).sent().attempts, 2);
        assert_eq!(send(2, Some(&once)).sent().attempts, 1);
    }

    #[test]
    fn without_a_picture_the_label_is_unassigned_and_keeps_its_last() {
        let Decision::Say(status, _) = decide(None, Some("H"), Some(&confirmed(7, "H"))) else { panic!("unassigned") };
        assert_eq!(status.state(), DeliveryState::Unassigned);
        assert_eq!(status.confirmed_digest, vec![7; 32]);
        let Decision::Say(again, _) = decide(Some(7), Some("H"), Some(&status)) else { panic!("not sent again") };
        assert_eq!(again, confirmed(7, "H"));
    }

    #[test]
    fn without_a_label_the_status_goes() {
        assert!(matches!(decide(Some(7), None, Some(&confirmed(7, "H"))), Decision::Forget(_)));
    }
}
