//! The alias index against the records it is derived from, by the table of DOMAIN.

use std::collections::BTreeSet;

use prost::Message as _;
use proto::records::v1 as records;
use sqlx::Row as _;

use crate::tables::{RecordKey, Tables};

/// An entry of the index: type, alias, base, store, id (and tenant first).
type Entry = [String; 6];

/// Under which (alias, base) a record is found.
fn aliases(dto_type: &str, key: &RecordKey, payload: &[u8]) -> Vec<(&'static str, String)> {
    let by_store = ("by_store", String::new());
    let by_label = ("by_storeesl", format!("esls/{}", key.id));
    match dto_type {
        "accesspoint.v1" | "eccmodel.v1" | "ecceslimage.v1" | "studioeslimage.v1" | "storeeslstatus.v1" => {
            vec![by_store]
        }
        "storeesl.v1" => {
            let record = records::StoreEsl::decode(payload).expect("a stored storeesl.v1 decodes");
            vec![by_store, ("by_accesspoint", format!("accesspoints/{}", record.accesspoint_id))]
        }
        "ecclink.v1" => {
            let record = records::EccLink::decode(payload).expect("a stored ecclink.v1 decodes");
            let (model, item) = (format!("eccmodels/{}", record.model_id), format!("items/{}", record.item_id));
            vec![by_store, by_label, ("by_eccmodel", model), ("by_item", item)]
        }
        "studiolink.v1" => {
            let record = records::StudioLink::decode(payload).expect("a stored studiolink.v1 decodes");
            let (design, item) = (format!("designs/{}", record.design_id), format!("items/{}", record.item_id));
            vec![by_store, by_label, ("by_design", design), ("by_item", item)]
        }
        "eslimage.v1" => vec![by_store, by_label],
        "design.v1" => vec![("by_tenant", String::new())],
        "storeitemvalues.v1" | "esltype.v1" | "accesspointstatus.v1" => Vec::new(),
        other => panic!("there is no {other}"),
    }
}

/// Entries that lack a record, and records that lack an entry.
pub(super) async fn check(tables: &mut Tables) -> Vec<String> {
    let records = tables.records(None).await;
    let expected: BTreeSet<Entry> = records
        .all()
        .flat_map(|(dto_type, key, record)| {
            aliases(dto_type, key, &record.payload).into_iter().map(move |(alias, base)| {
                let (tenant, store, id) = (key.tenant.clone(), key.store.clone(), key.id.clone());
                [tenant, dto_type.to_owned(), alias.to_owned(), base, store, id]
            })
        })
        .collect();
    let found: BTreeSet<Entry> = sqlx::query("SELECT tenant, dto_type, alias, base, store, id FROM dto_alias")
        .fetch_all(&mut tables.0)
        .await
        .expect("the alias table")
        .iter()
        .map(|row| std::array::from_fn(|column| row.get(column)))
        .collect();
    let missing = expected.difference(&found).map(|entry| format!("alias entry missing: {entry:?}"));
    let surplus = found.difference(&expected).map(|entry| format!("alias entry without record: {entry:?}"));
    missing.chain(surplus).collect()
}
