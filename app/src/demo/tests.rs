use std::collections::{BTreeMap, BTreeSet};

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
    assert_eq!(by_type[&DtoType::EccLink].len(), 1200);
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
    assert_eq!(refreshed_model().labels, 320);
}
