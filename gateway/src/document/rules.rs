//! What ids, times and texts look like: every path segment, parameter and body field, by its name.
//!
//! The rules are `domain`'s and the routes'; here they only become patterns and bounds of the document's dialect.

use domain::{DtoType, RecordScope, ServiceName};
use serde_json::{Value, json};
use utoipa::{
    Number,
    openapi::{
        OpenApi, RefOr, Schema, SchemaFormat,
        extensions::Extensions,
        path::{Parameter, ParameterIn},
        schema::{AdditionalProperties, KnownFormat, Object, OneOf, SchemaType, Type},
    },
};

use super::operations;

/// Of tenants, stores and records; `.` and `..` are none.
const ID: &str = "^(?!\\.{1,2}$)[A-Za-z0-9._-]{1,64}$";
/// Of operations.
const TRACKING_ID: &str = "^(?!\\.{1,2}$)[A-Za-z0-9._:-]{1,128}$";
/// Control and invisible characters, which no text that people read may hold.
const UNCLEAN: &str = "\\u0000-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u180e\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff\\ufff9-\\ufffb\
    \u{e0000}-\u{e007f}";
/// Actions of the audit log.
const ACTION: &str = "^[A-Za-z][A-Za-z -]{0,63}$";
/// Outcomes of the audit log.
const OUTCOME: &str = "^(ACCEPTED|REPLAYED|REFUSED)$";
/// States of operations, with commas between.
const STATES: &str = "^(AWAITING_APPROVAL|RUNNING|PAUSED|HELD|CANCELLING|CANCELLED|SUCCEEDED|FINISHED_WITH_FAILURES)\
    (,(AWAITING_APPROVAL|RUNNING|PAUSED|HELD|CANCELLING|CANCELLED|SUCCEEDED|FINISHED_WITH_FAILURES))*$";
/// Years before the first are none of RFC 3339's.
const TIME: &str = "^(?!0000)";
/// Ids of an operation's events.
const REVISION: &str = "^[0-9]{0,18}$";
/// Longest RFC 3339 time that is read, in characters.
const TIME_MAX_CHARS: usize = 35;

/// Something that is not a space, and nothing unclean.
fn reason() -> String {
    format!("^[^{UNCLEAN}]*[^ {UNCLEAN}][^{UNCLEAN}]*$")
}

/// Services that handle labels.
fn services() -> String {
    let handling = ServiceName::ALL.iter().filter(|service| service.queue().is_some());
    format!("^({})$", handling.map(|service| service.as_str()).collect::<Vec<_>>().join("|"))
}

/// What is known of a value by its name.
#[derive(Default)]
struct Rule {
    pattern: Option<String>,
    format: Option<SchemaFormat>,
    length_max: Option<usize>,
    /// What the demo tenant has under this name.
    example: Option<&'static str>,
}

impl Rule {
    fn pattern(pattern: impl Into<String>) -> Self {
        Self { pattern: Some(pattern.into()), ..Self::default() }
    }

    fn example(self, example: &'static str) -> Self {
        Self { example: Some(example), ..self }
    }

    fn of(name: &str) -> Option<Self> {
        Some(match name {
            "tenant" => Self::pattern(ID).example("demo"),
            "store" => Self::pattern(ID).example("berlin"),
            "label" => Self::pattern(ID).example("L0001"),
            "tenant_id" | "store_id" | "model_id" | "design_id" | "label_id" | "access_point_id" => Self::pattern(ID),
            "tracking_id" => Self::pattern(TRACKING_ID),
            "reason" => Self::pattern(reason()),
            "service" => Self::pattern(services()),
            "action" => Self::pattern(ACTION),
            "outcome" => Self::pattern(OUTCOME),
            "state" => Self::pattern(STATES),
            "Last-Event-ID" => Self::pattern(REVISION),
            "sla_timestamp" | "until" | "since" => Self {
                format: Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)),
                length_max: Some(TIME_MAX_CHARS),
                ..Self::pattern(TIME)
            },
            // Opaque: only an answer of the gateway has one that means something.
            "page_token" => Self { format: Some(SchemaFormat::Custom("page-token".to_owned())), ..Self::default() },
            "plan_id" => Self { format: Some(SchemaFormat::Custom("plan-id".to_owned())), ..Self::default() },
            _ => return None,
        })
    }

    fn set(self, object: &mut Object) {
        if !object.properties.is_empty() {
            return;
        }
        object.pattern = self.pattern.or(object.pattern.take());
        object.format = self.format.or(object.format.take());
        object.max_length = self.length_max.or(object.max_length);
    }
}

/// Adds the rules to a finished document.
pub(super) fn add(document: &mut OpenApi) {
    for operation in document.paths.paths.values_mut().flat_map(operations) {
        for parameter in operation.parameters.iter_mut().flatten() {
            if let RefOr::T(parameter) = parameter {
                of_parameter(parameter);
            }
        }
    }
    let schemas = document.components.iter_mut().flat_map(|components| components.schemas.iter_mut());
    // Answers show what is there; only what is asked for has to fit.
    for (_, schema) in schemas.filter(|(name, _)| name.ends_with("Request")) {
        if let RefOr::T(Schema::Object(object)) = schema {
            of_body(object);
        }
    }
    if let Some(components) = &mut document.components {
        components.schemas.insert("TouchRecord".to_owned(), RefOr::T(touch_record()));
        if let Some(RefOr::T(Schema::Object(event))) = components.schemas.get_mut("OperationEvent")
            && let Some(RefOr::T(Schema::Object(data))) = event.properties.get_mut("data")
        {
            let operation = ("contentSchema", json!({"$ref": "#/components/schemas/Operation"}));
            data.extensions.get_or_insert_default().merge(Extensions::from_iter([operation]));
        }
    }
}

fn of_parameter(parameter: &mut Parameter) {
    let Some(RefOr::T(Schema::Object(object))) = &mut parameter.schema else { return };
    // Left out is left out: no parameter or header can be null.
    if let SchemaType::Array(types) = &object.schema_type
        && let [kind, Type::Null] | [Type::Null, kind] = types.as_slice()
    {
        object.schema_type = SchemaType::Type(kind.clone());
    }
    let Some(rule) = Rule::of(&parameter.name) else { return };
    if matches!(parameter.parameter_in, ParameterIn::Path) {
        object.example = rule.example.map(Value::from);
    }
    rule.set(object);
}

fn of_body(object: &mut Object) {
    for (name, property) in &mut object.properties {
        if let (true, RefOr::T(Schema::Array(records))) = (name == "records", &mut *property) {
            records.unique_items = true;
        }
        let RefOr::T(Schema::Object(object)) = property else { continue };
        if let Some(rule) = Rule::of(name) {
            rule.set(object);
        }
        if matches!(object.format, Some(SchemaFormat::KnownFormat(KnownFormat::Int64))) {
            object.minimum.get_or_insert(Number::Int(isize::MIN));
            object.maximum.get_or_insert(Number::Int(isize::MAX));
        }
    }
    // One keyword for all: several would stand in the document in an order of their own at each start.
    let mut all = Vec::new();
    if object.properties.contains_key("max_drift") {
        all.push(json!({"dependentRequired": {"max_drift": ["plan_id"]}}));
    }
    if object.properties.contains_key("page_token") {
        all.push(json!({
            "if": {"properties": {"page_token": {"type": "string"}}, "required": ["page_token"]},
            "then": {"properties": {"dry_run": {"const": true}}},
        }));
    }
    if !all.is_empty() {
        let all = [("allOf", Value::Array(all))];
        object.extensions.get_or_insert_default().merge(Extensions::from_iter(all));
    }
}

/// A record's URN is its type's.
fn touch_record() -> Schema {
    let id = "(?!\\.{1,2}(/|$))[A-Za-z0-9._-]{1,64}";
    let kinds = DtoType::ALL.iter().map(|dto_type| {
        let place = match dto_type.scope() {
            RecordScope::Tenant => format!("t/{id}"),
            RecordScope::Store => format!("t/{id}/s/{id}"),
        };
        let mut object = Object::new();
        object.schema_type = Type::Object.into();
        let mut dto_type_of = text("Its type.");
        dto_type_of.enum_values = Some(vec![json!(dto_type.as_str())]);
        let mut dto_id = text("Its URN.");
        dto_id.pattern = Some(format!("^{place}/{}/{id}$", dto_type.collection().as_str()));
        object.properties.insert("dto_type".to_owned(), RefOr::T(Schema::Object(dto_type_of)));
        object.properties.insert("dto_id".to_owned(), RefOr::T(Schema::Object(dto_id)));
        object.required = vec!["dto_type".to_owned(), "dto_id".to_owned()];
        object.additional_properties = Some(Box::new(AdditionalProperties::FreeForm(false)));
        RefOr::T(Schema::Object(object))
    });
    let mut record = OneOf::new();
    record.description = Some("One record, by type and URN.".to_owned());
    record.items = kinds.collect();
    Schema::OneOf(record)
}

fn text(description: &str) -> Object {
    let mut object = Object::new();
    object.schema_type = Type::String.into();
    object.description = Some(description.to_owned());
    object
}

#[cfg(test)]
mod tests {
    use domain::{Reason, TenantId, TrackingId};

    use super::*;

    /// The patterns say what the types do. (Lookaheads are the pattern dialect's; here they are spelt out.)
    #[test]
    fn patterns_follow_the_types() {
        let document: serde_json::Value = serde_json::from_str(&crate::openapi_json()).unwrap();
        let body = &document["components"]["schemas"]["ModelRefreshRequest"]["properties"];
        assert_eq!(body["tenant_id"]["pattern"], ID);
        assert_eq!(body["tracking_id"]["pattern"], TRACKING_ID);
        assert_eq!(body["reason"]["pattern"], reason());
        assert_eq!(body["sla_timestamp"]["format"], "date-time");
        let path = &document["paths"]["/v1/tenants/{tenant}/stores"]["get"]["parameters"];
        assert!(path.as_array().unwrap().iter().any(|one| one["name"] == "tenant" && one["schema"]["pattern"] == ID));
        for text in ["..", ".", "", "a/b", &"x".repeat(65)] {
            assert!(text.parse::<TenantId>().is_err());
        }
        assert!("x".repeat(64).parse::<TenantId>().is_ok() && "a:b".parse::<TrackingId>().is_ok());
        assert!(" ".parse::<Reason>().is_err() && "\u{ad}".parse::<Reason>().is_err());
        assert!("\u{e0001}".parse::<Reason>().is_err());
    }
}
