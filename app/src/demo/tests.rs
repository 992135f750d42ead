use std::collections::{BTreeMap, BTreeSet};

use proto::records::v1::StoreEsl;

use super::*;

fn by_type(records: &[Record]) -> BTreeMap<DtoType, Vec<&Record>> {
    let mut by_type: BTreeMap<DtoType, Vec<&Record>> = BTreeMap::new();
    for record in records {
        by_type.entry(record.dto_type).or_default().push(record);
    }
    by_type
}

#[test]
fn the_tenant_is_complete_and_consistent() {
    let records = records().unwrap();
    let urns: BTreeSet<_> = records.iter().map(|record| record.urn.to_string()).collect();
    assert_eq!(urns.len(), records.len(), "no record twice");
    let by_type = by_type(&records);
    // Every label has a link; of each shop's 40 on a design, half have both.
    assert_eq!(by_type[&DtoType::StudioLink].len(), 3 * 40);
    assert_eq!(by_type[&DtoType::EccLink].len(), 1200 - 3 * 20);
    assert_eq!(by_type[&DtoType::Design].len(), 2);
    for link in &by_type[&DtoType::StudioLink] {
        let dto = StudioLink::decode(link.payload.clone()).unwrap();
        assert!(urns.contains(&format!("t/demo/s/{}/items/{}", link.urn.store().unwrap(), dto.item_id)));
        assert!(urns.contains(&format!("t/demo/designs/{}", dto.design_id)));
    }
    assert_eq!(by_type[&DtoType::StoreEsl].len(), 1200);
    assert_eq!(by_type[&DtoType::EccModel].len(), 9);
    assert!(by_type[&DtoType::EslType].len() >= 5);
    for link in &by_type[&DtoType::EccLink] {
        let dto = EccLink::decode(link.payload.clone()).unwrap();
        let store = format!("t/demo/s/{}", link.urn.store().unwrap());
        assert!(urns.contains(&format!("{store}/items/{}", dto.item_id)));
        assert!(urns.contains(&format!("{store}/eccmodels/{}", dto.model_id)));
        assert!(urns.contains(&link.urn.sibling(DtoType::StoreEsl).unwrap().to_string()));
    }
    for label in &by_type[&DtoType::StoreEsl] {
        let dto = StoreEsl::decode(label.payload.clone()).unwrap();
        assert!(urns.contains(&format!("t/demo/esltypes/{}", dto.esltype_id)));
    }
}

#[test]
fn every_start_makes_the_same_records() {
    let decoded = |record: &Record| (record.urn.to_string(), record.dto_type);
    let (once, again) = (records().unwrap(), records().unwrap());
    assert_eq!(once.iter().map(decoded).collect::<Vec<_>>(), again.iter().map(decoded).collect::<Vec<_>>());
    let values = |records: &[Record]| -> Vec<StoreItemValues> {
        by_type(records)[&DtoType::StoreItemValues]
            .iter()
            .map(|record| StoreItemValues::decode(record.payload.clone()).unwrap())
            .collect()
    };
    assert_eq!(values(&once), values(&again));
}

#[test]
fn hardware_addresses_are_all_different() {
    let records = records().unwrap();
    let addresses: BTreeSet<String> = by_type(&records)[&DtoType::StoreEsl]
        .iter()
        .map(|record| StoreEsl::decode(record.payload.clone()).unwrap().hardware_address)
        .collect();
    assert_eq!(addresses.len(), 1200);
}

#[test]
fn version_2_is_another_model_of_the_same_name() {
    let (first, second) = (model_version_1().unwrap(), model_version_2().unwrap());
    assert_eq!(first.urn, second.urn);
    assert_ne!(first.payload, second.payload);
}

#[test]
fn version_2_is_of_the_model_of_most_labels() {
    let refreshed = refreshed_model();
    let urn = first_of_type(DtoType::EccModel, refreshed.model).urn;
    assert_eq!(urn, model_version_2().unwrap().urn);
    let links = records()
        .unwrap()
        .into_iter()
        .filter(|record| record.dto_type == DtoType::EccLink && record.urn.store() == urn.store())
        .map(|record| EccLink::decode(record.payload).unwrap().model_id);
    let linked = links.filter(|model| model == refreshed.model).count();
    assert_eq!(linked, refreshed.labels as usize);
    assert!((200..LABELS_PER_STORE as usize).contains(&linked), "{linked}");
}

fn first_of_type(dto_type: DtoType, id: &str) -> Record {
    let mut records = records().unwrap().into_iter();
    records.find(|record| record.dto_type == dto_type && record.urn.record_id().unwrap().as_str() == id).unwrap()
}

/// The item and panel of a label of the tenant, as its link names them.
fn inputs(records: &BTreeMap<String, &Record>, link: &Record, item: &str) -> (BTreeMap<String, String>, render::Panel) {
    let store = format!("t/demo/s/{}", link.urn.store().unwrap());
    let get = |urn: String| records[&urn].payload.clone();
    let item = StoreItemValues::decode(get(format!("{store}/items/{item}"))).unwrap();
    let label = StoreEsl::decode(get(link.urn.sibling(DtoType::StoreEsl).unwrap().to_string())).unwrap();
    let panel = EslType::decode(get(format!("t/demo/esltypes/{}", label.esltype_id))).unwrap();
    let panel = render::Panel {
        width: panel.width,
        height: panel.height,
        palette: picture::Palette::from_number(panel.palette).unwrap(),
        rotation: picture::Rotation::from_degrees(i32::try_from(panel.rotation).unwrap()).unwrap(),
    };
    (item.values, panel)
}

/// Renders a label of the tenant as its panel would show it.
fn render_label(records: &BTreeMap<String, &Record>, link: &Record, layout: &str) -> picture::Picture {
    let of = EccLink::decode(link.payload.clone()).unwrap();
    let (item, panel) = inputs(records, link, &of.item_id);
    let model = render::EccModel::parse(layout).unwrap();
    let input = render::EccInput { panel, item: &item, parameters: &of.parameters };
    render::render(&model, &input).unwrap_or_else(|error| unreachable!("{}: {error}", link.urn))
}

#[test]
fn every_label_of_a_design_renders() {
    let records = records().unwrap();
    let by_urn: BTreeMap<String, &Record> = records.iter().map(|record| (record.urn.to_string(), record)).collect();
    let mut seen = BTreeSet::new();
    for link in records.iter().filter(|record| record.dto_type == DtoType::StudioLink) {
        let of = StudioLink::decode(link.payload.clone()).unwrap();
        let (item, panel) = inputs(&by_urn, link, &of.item_id);
        let design = Design::decode(by_urn[&format!("t/demo/designs/{}", of.design_id)].payload.clone()).unwrap();
        let design = render::StudioDesign::parse(&design.svg, &design.mappings).unwrap();
        let input = render::EccInput { panel, item: &item, parameters: &BTreeMap::new() };
        let shown =
            render::studio_render(&design, &input).unwrap_or_else(|error| unreachable!("{}: {error}", link.urn));
        seen.insert(shown.digest());
    }
    assert!(seen.len() > 100, "{} different pictures", seen.len());
}

#[test]
fn every_label_renders_and_version_2_looks_different() {
    let records = records().unwrap();
    let by_urn: BTreeMap<String, &Record> = records.iter().map(|record| (record.urn.to_string(), record)).collect();
    let mut seen = BTreeSet::new();
    for link in records.iter().filter(|record| record.dto_type == DtoType::EccLink) {
        let of = EccLink::decode(link.payload.clone()).unwrap();
        let layout = models::MODELS.iter().find(|model| model.id == of.model_id).unwrap().layout;
        let shown = render_label(&by_urn, link, layout);
        seen.insert(shown.digest());
        if of.model_id == models::STANDARD {
            assert_ne!(shown, render_label(&by_urn, link, models::STANDARD_VERSION_2), "{}", link.urn);
        }
    }
    assert!(seen.len() > 1000, "{} different pictures", seen.len());
}
