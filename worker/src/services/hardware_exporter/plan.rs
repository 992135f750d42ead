//! The export rule. Pure.

use domain::{DtoType, Outcome, RecordId, Timestamp, Urn};
use picture::Digest;
use proto::records::v1::{DeliveryState, EslImage, Evidence, ImageSource, LeftBehind, StoreEsl, StoreEslStatus};

use super::{
    drivers::Pending,
    lanes::Sending,
    moved,
    status::{self, Outgoing, Step},
};
use crate::runtime::{Found, Input, LabelRef, Records};

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
    /// The picture is confirmed and the status says so, with this evidence.
    Confirmed(Evidence),
    /// It is confirmed, and this status must say so.
    SayConfirmed(StoreEslStatus, Vec<Input>),
    /// Nothing is sent, but the status must say this.
    Say(StoreEslStatus, Vec<Input>),
    /// The picture goes to the label's access point, or is looked after there.
    Carry(Box<Carry>),
    /// Something may wait for the label where it hangs no more: it is taken back first.
    Leave(Box<Leave>),
    /// All is done but for that, which is tried again then.
    LeaveLater(Timestamp),
    /// It cannot be sent: the status says why, and so does the outcome.
    Broken(StoreEslStatus, Vec<Input>),
}

/// Pictures to be taken back where the label hangs no more.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Leave {
    pub(super) label: LabelRef,
    /// What is to be taken back now.
    pub(super) due: Vec<LeftBehind>,
    /// Whether the label's present hardware has confirmed its picture.
    pub(super) is_confirmed: bool,
    /// The status before.
    pub(super) status: StoreEslStatus,
    /// Picture, label and status, with their versions; the status last.
    pub(super) inputs: Vec<Input>,
}

/// A picture that is not confirmed.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Carry {
    pub(super) label: LabelRef,
    /// Type of the source image, which has the label's id.
    pub(super) source: DtoType,
    pub(super) outgoing: Outgoing,
    pub(super) access_point: Urn,
    /// The status before.
    pub(super) before: StoreEslStatus,
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
    pub(super) fn decide(self, now: Timestamp) -> Decision {
        let Self { label, image, esl, status } = self;
        let inputs = vec![image.input, esl.input, status.input];
        let Some(esl) = esl.record else { return Decision::Forget(inputs) };
        let hangs = (esl.accesspoint_id.as_str(), esl.hardware_address.as_str());
        let before = moved::rehung(status.record.unwrap_or_default(), hangs, now);
        let due = moved::due(&before, now);
        if !due.is_empty() {
            let is_confirmed = image.record.as_ref().is_some_and(|image| is_confirmed(&before, image, &esl));
            return Decision::Leave(Box::new(Leave { label, due, is_confirmed, status: before, inputs }));
        }
        let Some(image) = image.record else {
            // What it shows and what may still be on its way stays as it is.
            let step = Step::of(DeliveryState::Unassigned, now, "no picture is meant for the label");
            return Decision::Say(status::said(before, step), inputs);
        };
        if is_confirmed(&before, &image, &esl) {
            if let Some(until) = moved::next(&before, now) {
                return Decision::LeaveLater(until);
            }
            if before.state() == DeliveryState::Confirmed {
                return Decision::Confirmed(before.evidence());
            }
            let (cause, evidence) = ("the label shows it already", before.evidence());
            let step = Step { state: DeliveryState::Confirmed, at: now, cause, evidence };
            return Decision::SayConfirmed(status::said(before, step), inputs);
        }
        let source = match image.source() {
            ImageSource::Studio => DtoType::StudioEslImage,
            ImageSource::Ecc | ImageSource::Unspecified => DtoType::EccEslImage,
        };
        match esl.accesspoint_id.parse::<RecordId>() {
            Ok(id) => Decision::Carry(Box::new(Carry {
                source,
                access_point: label.neighbour(DtoType::AccessPoint, &id),
                outgoing: Outgoing {
                    digest: image.digest.to_vec(),
                    hardware_address: esl.hardware_address,
                    access_point: id,
                },
                label,
                before,
                inputs,
            })),
            Err(wrong) => {
                let error = format!("the label's access point {:?} {wrong}", esl.accesspoint_id);
                Decision::Broken(status::failed(before, &error, now), inputs)
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

impl Carry {
    /// Whether this very picture may be on its way to this very hardware, so that looking comes before sending.
    pub(super) fn is_underway(&self) -> bool {
        let over = matches!(
            self.before.state(),
            DeliveryState::Lost | DeliveryState::Failed | DeliveryState::Superseded | DeliveryState::Confirmed
        );
        !over
            && !self.before.sent_digest.is_empty()
            && self.before.sent_digest == self.outgoing.digest
            && self.before.sent_hardware_address == self.outgoing.hardware_address
            && self.before.sent_accesspoint_id == self.outgoing.access_point.as_str()
    }

    /// Not before then. The label is handed over where its access point took this very picture, as far as anybody knows:
    /// nothing said since that it lost it.
    pub(super) fn later(&self, until: Timestamp, cause: String) -> Outcome {
        let handed_over = self.is_underway() && status::is_taken(&self.before);
        Outcome::Follow { until, cause, handed_over }
    }

    /// What was sent last, wherever.
    pub(super) fn sending(&self) -> Sending {
        Sending {
            label: self.label.clone(),
            digest: self.before.sent_digest.to_vec(),
            at: status::sent_at(&self.before).unwrap_or_default(),
        }
    }

    /// What was sent before through the label's present access point and may still be on its way there.
    pub(super) fn pending(&self) -> Option<Pending> {
        let digest = <[u8; 32]>::try_from(self.before.sent_digest.as_ref()).ok()?;
        (self.before.sent_accesspoint_id == self.outgoing.access_point.as_str()).then(|| Pending {
            label: self.label.clone(),
            hardware_address: self.before.sent_hardware_address.clone(),
            digest: Digest::from_bytes(digest),
            receipt: self.before.sent_receipt.clone(),
            state: self.before.state(),
            sent_at: status::sent_at(&self.before).unwrap_or_default(),
        })
    }

    /// Whether the status must say "sent" before the picture goes out although the target keeps late workers out: only
    /// where a later reader could take an older picture for confirmed.
    pub(super) fn replaces_a_confirmed_one(&self) -> bool {
        !self.before.confirmed_digest.is_empty() && self.before.sent_digest != self.outgoing.digest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost::Message as _;

    const NOW: Timestamp = Timestamp::from_ms(1_800_000_000_000);

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
        State::of(&label, &read).unwrap().decide(NOW)
    }

    fn confirmed(byte: u8, address: &str) -> StoreEslStatus {
        let sent = StoreEslStatus {
            sent_digest: vec![byte; 32].into(),
            sent_hardware_address: address.into(),
            ..StoreEslStatus::default()
        };
        status::confirmed(sent, Evidence::Written, "written", NOW)
    }

    fn carry(image: u8, status: Option<&StoreEslStatus>) -> Carry {
        match decide(Some(image), Some("H"), status) {
            Decision::Carry(carry) => *carry,
            other => panic!("{other:?}"),
        }
    }

    fn sent(carry: &Carry) -> StoreEslStatus {
        status::announced(&carry.before, &carry.outgoing, NOW, None)
    }

    #[test]
    fn sends_unless_this_hardware_last_confirmed_this_digest() {
        let status = confirmed(7, "H");
        assert_eq!(decide(Some(7), Some("H"), Some(&status)), Decision::Confirmed(Evidence::Written));
        assert!(matches!(decide(Some(8), Some("H"), Some(&status)), Decision::Carry(_)));
        assert!(matches!(decide(Some(7), Some("other"), Some(&status)), Decision::Carry(_)));
        assert!(matches!(decide(Some(7), Some("H"), None), Decision::Carry(_)));
        let withdrawn = status::withdrawn(status, "reset", NOW);
        assert!(matches!(decide(Some(7), Some("H"), Some(&withdrawn)), Decision::Carry(_)));
    }

    #[test]
    fn a_return_to_the_confirmed_picture_is_sent_while_another_may_have_arrived() {
        let to_8 = carry(8, Some(&confirmed(7, "H")));
        assert!(to_8.replaces_a_confirmed_one());
        let back = carry(7, Some(&sent(&to_8)));
        assert!(back.replaces_a_confirmed_one() && !back.is_underway());
        let arrived = status::confirmed(sent(&back), Evidence::Written, "written", NOW);
        assert_eq!(decide(Some(7), Some("H"), Some(&arrived)), Decision::Confirmed(Evidence::Written));
    }

    #[test]
    fn a_first_picture_needs_no_announcement_and_attempts_count_per_picture() {
        let first = carry(1, None);
        assert!(!first.replaces_a_confirmed_one());
        let once = status::retried(sent(&first), "full", NOW);
        assert_eq!((once.attempts, once.last_error.as_str()), (1, "full"));
        assert_eq!(sent(&carry(1, Some(&once))).attempts, 2);
        assert_eq!(sent(&carry(2, Some(&once))).attempts, 1);
    }

    #[test]
    fn a_picture_is_looked_after_only_where_it_was_sent_and_while_it_may_be_there() {
        let on_its_way = sent(&carry(1, None));
        assert!(carry(1, Some(&on_its_way)).is_underway());
        assert!(!carry(2, Some(&on_its_way)).is_underway());
        assert_eq!(carry(2, Some(&on_its_way)).pending().map(|one| one.digest), Some(Digest::from_bytes([1; 32])));
        let lost = status::lost(on_its_way.clone(), "gone", NOW);
        assert!(!carry(1, Some(&lost)).is_underway());
        let away = status::unreachable(on_its_way.clone(), "refused", NOW);
        assert!(carry(1, Some(&away)).is_underway());
    }

    #[test]
    fn what_a_label_left_behind_is_taken_back_before_anything_is_sent_and_it_is_not_done_before() {
        let elsewhere = StoreEslStatus { sent_accesspoint_id: "B".into(), ..sent(&carry(1, None)) };
        let Decision::Leave(leave) = decide(Some(2), Some("H"), Some(&elsewhere)) else {
            panic!("nothing is taken back")
        };
        assert_eq!((leave.due[0].accesspoint_id.as_str(), leave.is_confirmed), ("B", false));
        let later = moved::kept(leave.status.clone(), &leave.due[0], ("away", NOW), Some(NOW.plus_ms(1)));
        assert!(carry(2, Some(&later)).pending().is_none(), "it does not wait for an access point that is away");
        let confirmed = status::confirmed(sent(&carry(2, Some(&later))), Evidence::Written, "written", NOW);
        assert_eq!(decide(Some(2), Some("H"), Some(&confirmed)), Decision::LeaveLater(NOW.plus_ms(1)));
        let gone = moved::gone(confirmed, &later.left_behind[0], ("nothing waits", NOW));
        assert_eq!(decide(Some(2), Some("H"), Some(&gone)), Decision::Confirmed(Evidence::Written));
    }

    #[test]
    fn without_a_picture_the_label_is_unassigned_and_keeps_its_last() {
        let Decision::Say(status, _) = decide(None, Some("H"), Some(&confirmed(7, "H"))) else { panic!("unassigned") };
        assert_eq!(status.state(), DeliveryState::Unassigned);
        assert_eq!(status.confirmed_digest, vec![7; 32]);
        let Decision::SayConfirmed(again, _) = decide(Some(7), Some("H"), Some(&status)) else {
            panic!("not sent again")
        };
        assert_eq!((again.state(), again.evidence()), (DeliveryState::Confirmed, Evidence::Written));
    }

    #[test]
    fn without_a_label_the_status_goes() {
        assert!(matches!(decide(Some(7), None, Some(&confirmed(7, "H"))), Decision::Forget(_)));
    }
}
