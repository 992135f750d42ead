//! One record as JSON: `{"dto_type": …, "dto_id": …, "record": {…}}`. Strict: an unknown or missing field is named.
//!
//! The fields of `record` are those of `records.v1`, with two friendlier forms: a palette is `bw`, `bwr`, `bwry`, `grey4`
//! or `spectra6`, and a model's layout is the JSON document itself (or a text that holds it).

use std::collections::BTreeMap;

use domain::{DtoType, Urn};
use prost::Message;
use proto::records::v1 as wire;
use serde::{Deserialize, de::DeserializeOwned};

use super::{Record, unique::Unique};

/// Why a text is not a record. Names the field.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// Not JSON, or a field is unknown, missing or of the wrong kind.
    #[error("{0}")]
    Json(String),
    /// The type is not in the list.
    #[error("dto_type: {0:?} is not a DTO type such as ecclink.v1")]
    Type(String),
    /// The type is a service's own output.
    #[error("dto_type: {0} is written by its service only and cannot be imported")]
    NotImported(DtoType),
    /// The URN is not one of that type.
    #[error("dto_id: {0}")]
    Urn(#[from] domain::UrnError),
    /// The record is not as its type wants it.
    #[error("record: {0}")]
    Field(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Envelope {
    dto_type: String,
    dto_id: String,
    record: Unique,
}

/// The record that `text` holds.
pub fn record_from_json(text: &str) -> Result<Record, RecordError> {
    // serde would take a JSON array for an object, its values by position.
    if text.trim_start().starts_with('[') {
        return Err(RecordError::Json("must be a JSON object".to_owned()));
    }
    let envelope: Envelope = serde_json::from_str(text).map_err(|error| RecordError::Json(without_line(&error)))?;
    let dto_type: DtoType = envelope.dto_type.parse().map_err(|_| RecordError::Type(envelope.dto_type.clone()))?;
    let payload = payload(dto_type, envelope.record.0)?;
    let urn = Urn::record(dto_type, &envelope.dto_id)?;
    Ok(Record { dto_type, urn, payload: payload.into() })
}

/// serde's text without its "line 1": the caller knows the line of the file.
fn without_line(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line 1 column ").next().unwrap_or(&text).to_owned()
}

fn parse<T: DeserializeOwned>(record: serde_json::Value) -> Result<T, RecordError> {
    if !record.is_object() {
        return Err(RecordError::Field("must be a JSON object".to_owned()));
    }
    serde_json::from_value(record).map_err(|error| RecordError::Field(error.to_string()))
}

fn payload(dto_type: DtoType, record: serde_json::Value) -> Result<Vec<u8>, RecordError> {
    Ok(match dto_type {
        DtoType::StoreItemValues => {
            let Values { values } = parse(record)?;
            wire::StoreItemValues { values }.encode_to_vec()
        }
        DtoType::EslType => {
            let EslType { width, height, palette, rotation, name } = parse(record)?;
            let palette = wire::Palette::from(palette).into();
            wire::EslType { width, height, palette, rotation, name }.encode_to_vec()
        }
        DtoType::AccessPoint => {
            let AccessPoint { driver, address } = parse(record)?;
            wire::AccessPoint { driver, address }.encode_to_vec()
        }
        DtoType::StoreEsl => {
            let StoreEsl { esltype_id, accesspoint_id, hardware_address } = parse(record)?;
            wire::StoreEsl { esltype_id, accesspoint_id, hardware_address }.encode_to_vec()
        }
        DtoType::EccModel => {
            let EccModel { layout, name } = parse(record)?;
            wire::EccModel { layout: document("layout", layout)?, name }.encode_to_vec()
        }
        DtoType::EccLink => {
            let EccLink { item_id, model_id, parameters } = parse(record)?;
            wire::EccLink { item_id, model_id, parameters }.encode_to_vec()
        }
        DtoType::Design => {
            let Design { svg, mappings, name } = parse(record)?;
            wire::Design { svg, mappings: document("mappings", mappings)?, name }.encode_to_vec()
        }
        DtoType::StudioLink => {
            let StudioLink { item_id, design_id } = parse(record)?;
            wire::StudioLink { item_id, design_id }.encode_to_vec()
        }
        DtoType::EccEslImage
        | DtoType::StudioEslImage
        | DtoType::EslImage
        | DtoType::StoreEslStatus
        | DtoType::AccessPointStatus => {
            return Err(RecordError::NotImported(dto_type));
        }
    })
}

/// A JSON document within a record: given as such, or as a text that holds it (kept as it is).
fn document(field: &str, value: serde_json::Value) -> Result<String, RecordError> {
    match value {
        serde_json::Value::String(text) => Ok(text),
        serde_json::Value::Object(_) => Ok(value.to_string()),
        _ => Err(RecordError::Field(format!("{field} must be a JSON object, or a text that holds one"))),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Values {
    values: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EslType {
    width: u32,
    height: u32,
    palette: Palette,
    #[serde(default)]
    rotation: u32,
    #[serde(default)]
    name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Palette {
    Bw,
    Bwr,
    Bwry,
    Grey4,
    Spectra6,
}

impl From<Palette> for wire::Palette {
    fn from(palette: Palette) -> Self {
        match palette {
            Palette::Bw => Self::Bw,
            Palette::Bwr => Self::Bwr,
            Palette::Bwry => Self::Bwry,
            Palette::Grey4 => Self::Grey4,
            Palette::Spectra6 => Self::Spectra6,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AccessPoint {
    driver: String,
    #[serde(default)]
    address: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StoreEsl {
    esltype_id: String,
    accesspoint_id: String,
    hardware_address: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EccModel {
    layout: serde_json::Value,
    #[serde(default)]
    name: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EccLink {
    item_id: String,
    model_id: String,
    #[serde(default)]
    parameters: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Design {
    svg: String,
    mappings: serde_json::Value,
    #[serde(default)]
    name: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StudioLink {
    item_id: String,
    design_id: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_importable_type_is_read() {
        for (dto_type, dto_id, record) in [
            ("storeitemvalues.v1", "t/T/s/S/items/I", r#"{"values":{"name":"Äpfel","price":"1.99"}}"#),
            ("esltype.v1", "t/T/esltypes/X", r#"{"width":296,"height":128,"palette":"bwr","rotation":90}"#),
            ("accesspoint.v1", "t/T/s/S/accesspoints/A", r#"{"driver":"folder"}"#),
            ("storeesl.v1", "t/T/s/S/esls/E", r#"{"esltype_id":"X","accesspoint_id":"A","hardware_address":"02"}"#),
            ("eccmodel.v1", "t/T/s/S/eccmodels/M", r#"{"layout":{"elements":[]}}"#),
            ("ecclink.v1", "t/T/s/S/ecclinks/E", r#"{"item_id":"I","model_id":"M","parameters":{"facings":"2"}}"#),
            ("design.v1", "t/T/designs/D", r#"{"svg":"<svg/>","mappings":{}}"#),
            ("studiolink.v1", "t/T/s/S/studiolinks/E", r#"{"item_id":"I","design_id":"D"}"#),
        ] {
            let text = format!(r#"{{"dto_type":"{dto_type}","dto_id":"{dto_id}","record":{record}}}"#);
            let read = record_from_json(&text).expect(dto_type);
            assert_eq!((read.dto_type.as_str(), read.urn.to_string().as_str()), (dto_type, dto_id));
            assert!(!read.payload.is_empty());
        }
        let panel = record_from_json(
            r#"{"dto_type":"esltype.v1","dto_id":"t/T/esltypes/X","record":{"width":296,"height":128,"palette":"grey4"}}"#,
        );
        let panel = wire::EslType::decode(panel.unwrap().payload).unwrap();
        assert_eq!((panel.palette(), panel.width, panel.rotation), (wire::Palette::Grey4, 296, 0));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let link =
            |record: &str| format!(r#"{{"dto_type":"ecclink.v1","dto_id":"t/T/s/S/ecclinks/E","record":{record}}}"#);
        for (text, named) in [
            (link(r#"{"item_id":"I","model_id":"M","modle":"x"}"#), "`modle`"),
            (link(r#"{"item_id":"I"}"#), "`model_id`"),
            (link(r#"["I","M",{}]"#), "a JSON object"),
            (r#"["ecclink.v1","t/T/s/S/ecclinks/E",{"item_id":"I","model_id":"M"}]"#.to_owned(), "a JSON object"),
            (link(r#"{"item_id":7,"model_id":"M"}"#), "integer `7`"),
            (link(r#"{"item_id":"I","model_id":"M","model_id":"N"}"#), "\"model_id\" is given twice"),
            (link(r#"{"item_id":"I","model_id":"M","parameters":{"a":"1","a":"2"}}"#), "\"a\" is given twice"),
            (
                r#"{"dto_type":"ecclink.v1","dto_id":"t/T/s/S/esls/E","record":{"item_id":"I","model_id":"M"}}"#
                    .to_owned(),
                "dto_id",
            ),
            (r#"{"dto_type":"ecclnk.v1","dto_id":"x","record":{}}"#.to_owned(), "ecclnk.v1"),
            (r#"{"dto_type":"eslimage.v1","dto_id":"x","record":{}}"#.to_owned(), "eslimage.v1"),
            (r#"{"dto_type":"ecclink.v1","dto_id":"x","record":{},"extra":1}"#.to_owned(), "`extra`"),
            ("{".to_owned(), "EOF"),
        ] {
            let error = record_from_json(&text).unwrap_err().to_string();
            assert!(error.contains(named), "{text}: {error}");
        }
    }
}
