//! Every type: a good record passes, each broken field is named.

use super::*;

fn fault<M: Message>(dto_type: DtoType, message: &M) -> String {
    Record::decode(dto_type, &message.encode_to_vec().into()).expect_err("must be refused").to_string()
}

fn passes<M: Message>(dto_type: DtoType, message: &M) {
    assert_eq!(Record::decode(dto_type, &message.encode_to_vec().into()).map(|_| ()), Ok(()));
}

fn values(entries: &[(&str, &str)]) -> std::collections::BTreeMap<String, String> {
    entries.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn image() -> wire::SourceEslImage {
    wire::SourceEslImage {
        picture: vec![1; 300].into(),
        digest: vec![2; 32].into(),
        width: 296,
        height: 128,
        palette: wire::Palette::Bwr.into(),
    }
}

fn shown() -> wire::EslImage {
    wire::EslImage {
        source: wire::ImageSource::Ecc.into(),
        digest: vec![2; 32].into(),
        width: 296,
        height: 128,
        palette: wire::Palette::Bwr.into(),
    }
}

#[test]
fn bytes_of_no_message_are_refused() {
    for dto_type in DtoType::ALL {
        let fault = Record::decode(*dto_type, &Bytes::from_static(b"\xff\xff\xff")).expect_err("not a message");
        assert_eq!(fault.to_string(), "does not decode as a record of its type");
        assert!(Record::decode(*dto_type, &Bytes::new()).is_err(), "{dto_type} has required fields");
    }
}

#[test]
fn item_values() {
    let record = |values| wire::StoreItemValues { values };
    passes(DtoType::StoreItemValues, &record(values(&[("name", "Müsli"), ("price", "1.99")])));
    let refused = |entries: &[(&str, &str)]| fault(DtoType::StoreItemValues, &record(values(entries)));
    assert_eq!(refused(&[]), "values is required");
    assert_eq!(refused(&[("Name", "x")]), "values has a name that is not 1 to 64 of a-z 0-9 _");
    assert_eq!(refused(&[("name", &"x".repeat(2_001))]), "values.name must be at most 2000 bytes");
    let many = (0..201).map(|n| (format!("n{n}"), String::new())).collect();
    assert_eq!(fault(DtoType::StoreItemValues, &record(many)), "values must have at most 200 entries");
}

#[test]
fn esl_types() {
    let good = wire::EslType { width: 296, height: 128, palette: 1, rotation: 90, name: "2.9\"".to_owned() };
    passes(DtoType::EslType, &good);
    let refused = |record: wire::EslType| fault(DtoType::EslType, &record);
    assert_eq!(refused(wire::EslType { width: 0, ..good.clone() }), "width must be 1 to 2048");
    assert_eq!(refused(wire::EslType { height: 2_049, ..good.clone() }), "height must be 1 to 2048");
    assert_eq!(refused(wire::EslType { palette: 0, ..good.clone() }), "palette is required");
    assert_eq!(refused(wire::EslType { palette: 99, ..good.clone() }), "palette is not a known value");
    assert_eq!(refused(wire::EslType { rotation: 45, ..good.clone() }), "rotation must be 0, 90, 180 or 270");
    assert_eq!(refused(wire::EslType { name: "x".repeat(201), ..good }), "name must be at most 200 bytes");
}

#[test]
fn hardware() {
    let point = wire::AccessPoint { driver: "folder".to_owned(), address: String::new() };
    passes(DtoType::AccessPoint, &point);
    assert_eq!(fault(DtoType::AccessPoint, &wire::AccessPoint::default()), "driver is required");
    let esl = wire::StoreEsl {
        esltype_id: "X".to_owned(),
        accesspoint_id: "A".to_owned(),
        hardware_address: "00:11:22".to_owned(),
    };
    passes(DtoType::StoreEsl, &esl);
    let refused = |record: wire::StoreEsl| fault(DtoType::StoreEsl, &record);
    assert_eq!(refused(wire::StoreEsl { esltype_id: String::new(), ..esl.clone() }), "esltype_id is required");
    assert!(
        refused(wire::StoreEsl { accesspoint_id: "a/b".to_owned(), ..esl.clone() }).starts_with("accesspoint_id may")
    );
    assert_eq!(refused(wire::StoreEsl { hardware_address: " ".to_owned(), ..esl }), "hardware_address is required");
}

#[test]
fn models_designs_and_links() {
    passes(DtoType::EccModel, &wire::EccModel { layout: "{}".to_owned(), name: String::new() });
    assert_eq!(fault(DtoType::EccModel, &wire::EccModel::default()), "layout is required");
    let design = wire::Design { svg: "<svg/>".to_owned(), mappings: "{}".to_owned(), name: String::new() };
    passes(DtoType::Design, &design);
    assert_eq!(fault(DtoType::Design, &wire::Design { mappings: String::new(), ..design }), "mappings is required");
    let link =
        wire::EccLink { item_id: "I".to_owned(), model_id: "M".to_owned(), parameters: values(&[("facings", "2")]) };
    passes(DtoType::EccLink, &link);
    let refused = |record: wire::EccLink| fault(DtoType::EccLink, &record);
    assert_eq!(refused(wire::EccLink { item_id: String::new(), ..link.clone() }), "item_id is required");
    assert_eq!(refused(wire::EccLink { model_id: String::new(), ..link.clone() }), "model_id is required");
    assert!(refused(wire::EccLink { parameters: values(&[("A", "")]), ..link }).starts_with("parameters has a name"));
    let link = wire::StudioLink { item_id: "I".to_owned(), design_id: "D".to_owned() };
    passes(DtoType::StudioLink, &link);
    assert_eq!(
        fault(DtoType::StudioLink, &wire::StudioLink { design_id: String::new(), ..link }),
        "design_id is required"
    );
}

#[test]
fn pictures() {
    for dto_type in [DtoType::EccEslImage, DtoType::StudioEslImage] {
        passes(dto_type, &image());
        assert_eq!(fault(dto_type, &wire::SourceEslImage { picture: Bytes::new(), ..image() }), "picture is required");
        let large = vec![0; 256 * 1024 + 1].into();
        assert_eq!(
            fault(dto_type, &wire::SourceEslImage { picture: large, ..image() }),
            "picture must be at most 262144 bytes"
        );
        let short = vec![0; 31].into();
        assert_eq!(fault(dto_type, &wire::SourceEslImage { digest: short, ..image() }), "digest must be 32 bytes");
    }
    passes(DtoType::EslImage, &shown());
    assert_eq!(fault(DtoType::EslImage, &wire::EslImage { source: 0, ..shown() }), "source is required");
    assert_eq!(fault(DtoType::EslImage, &wire::EslImage { digest: Bytes::new(), ..shown() }), "digest is required");
}

#[test]
fn statuses() {
    let good = wire::StoreEslStatus {
        state: wire::DeliveryState::Confirmed.into(),
        confirmed_digest: vec![1; 32].into(),
        confirmed_hardware_address: "00:11".to_owned(),
        evidence: wire::Evidence::Written.into(),
        ..wire::StoreEslStatus::default()
    };
    passes(DtoType::StoreEslStatus, &good);
    let refused = |record: wire::StoreEslStatus| fault(DtoType::StoreEslStatus, &record);
    assert_eq!(refused(wire::StoreEslStatus { state: 0, ..good.clone() }), "state is required");
    assert_eq!(refused(wire::StoreEslStatus { evidence: 9, ..good.clone() }), "evidence is not a known value");
    let short = vec![0; 3].into();
    assert_eq!(refused(wire::StoreEslStatus { sent_digest: short, ..good.clone() }), "sent_digest must be 32 bytes");
    assert_eq!(
        refused(wire::StoreEslStatus { last_error: "x".repeat(1_001), ..good }),
        "last_error must be at most 1000 bytes"
    );
}

#[test]
fn what_a_label_left_behind_and_access_points() {
    let left = wire::LeftBehind {
        accesspoint_id: "A".to_owned(),
        hardware_address: "00:11:22".to_owned(),
        digest: vec![1; 32].into(),
        ..wire::LeftBehind::default()
    };
    let status = |left_behind| wire::StoreEslStatus {
        state: wire::DeliveryState::Sent.into(),
        left_behind,
        ..wire::StoreEslStatus::default()
    };
    passes(DtoType::StoreEslStatus, &status(vec![left.clone(); 4]));
    let refused = |left_behind| fault(DtoType::StoreEslStatus, &status(left_behind));
    assert_eq!(refused(vec![left.clone(); 5]), "left_behind must have at most 4 entries");
    let nowhere = wire::LeftBehind { accesspoint_id: String::new(), ..left.clone() };
    assert_eq!(refused(vec![nowhere]), "left_behind.accesspoint_id is required");
    let nothing = wire::LeftBehind { digest: vec![1; 31].into(), ..left };
    assert_eq!(refused(vec![nothing]), "left_behind.digest must be 32 bytes");
    assert_eq!(fault(DtoType::AccessPointStatus, &wire::AccessPointStatus::default()), "up_since is required");
}
