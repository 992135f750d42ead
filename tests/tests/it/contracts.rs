//! The contracts: what the decision record fixed stays, every trigger can be traced and tried dry, everything is
//! documented.

use std::{collections::BTreeMap, fs};

use prost::Message as _;
use prost_types::{
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet,
    ServiceDescriptorProto,
    field_descriptor_proto::{Label, Type},
};
use serde_json::Value;
use tests::source::workspace_root;

/// The first number an addition to a message of the decision record may have.
const FIRST_ADDITION: i32 = 16;

fn files() -> Vec<FileDescriptorProto> {
    let set = FileDescriptorSet::decode(proto::DESCRIPTORS).expect("the descriptors decode");
    set.file.into_iter().filter(|file| !file.package().starts_with("google.")).collect()
}

fn messages(files: &[FileDescriptorProto]) -> BTreeMap<String, &DescriptorProto> {
    files
        .iter()
        .flat_map(|file| {
            file.message_type.iter().map(move |message| (format!("{}.{}", file.package(), message.name()), message))
        })
        .collect()
}

/// Type of a field as the `.proto` writes it.
fn type_text(field: &FieldDescriptorProto) -> String {
    let name = match field.r#type() {
        Type::String => "string".to_owned(),
        Type::Bool => "bool".to_owned(),
        Type::Int32 => "int32".to_owned(),
        Type::Message => field.type_name().trim_start_matches('.').to_owned(),
        other => format!("{other:?}"),
    };
    if field.label() == Label::Repeated { format!("repeated {name}") } else { name }
}

struct Fixed {
    message: &'static str,
    fields: &'static [(i32, &'static str, &'static str)],
    /// Members of its one oneof.
    oneof: Option<(&'static str, &'static [&'static str])>,
}

/// The decision record's messages, letter by letter.
const FIXED: &[Fixed] = &[
    Fixed {
        message: "cqs.v1.SelfEnqueueRequest",
        fields: &[
            (1, "queue_name", "string"),
            (2, "items", "repeated cqs.v1.SplitItem"),
            (3, "reason", "string"),
            (4, "tracking_id", "string"),
            (5, "sla_timestamp", "google.protobuf.Timestamp"),
        ],
        oneof: None,
    },
    Fixed { message: "cqs.v1.SelfEnqueueResponse", fields: &[(1, "items_enqueued", "int32")], oneof: None },
    Fixed {
        message: "cqs.v1.SplitItem",
        fields: &[
            (1, "dto_type", "string"),
            (2, "dto_id", "string"),
            (3, "parent_id", "string"),
            (4, "alias_name", "string"),
        ],
        oneof: Some(("urn", &["dto_id", "parent_id"])),
    },
    Fixed {
        message: "ecc_image_render.v1.TriggerModelRefreshRequest",
        fields: &[
            (1, "tenant_id", "string"),
            (2, "store_id", "string"),
            (3, "model_id", "string"),
            (4, "reason", "string"),
            (5, "tracking_id", "string"),
            (6, "dry_run", "bool"),
        ],
        oneof: None,
    },
    Fixed {
        message: "ecc_image_render.v1.TriggerModelRefreshResponse",
        fields: &[(1, "items_enqueued", "int32")],
        oneof: None,
    },
    Fixed {
        message: "dtoflow.v1.TouchDtoRequest",
        fields: &[(1, "dto_type", "string"), (2, "dto_id", "repeated string")],
        oneof: None,
    },
];

#[test]
fn messages_of_the_decision_record_keep_their_fields() {
    let files = files();
    let messages = messages(&files);
    for fixed in FIXED {
        let message = messages.get(fixed.message).unwrap_or_else(|| panic!("{} is gone", fixed.message));
        let found: Vec<(i32, &str, String)> = message
            .field
            .iter()
            .filter(|field| field.number() < FIRST_ADDITION)
            .map(|field| (field.number(), field.name(), type_text(field)))
            .collect();
        let expected: Vec<(i32, &str, String)> =
            fixed.fields.iter().map(|(number, name, kind)| (*number, *name, (*kind).to_owned())).collect();
        assert_eq!(
            found, expected,
            "{}: below {FIRST_ADDITION} stands the decision record, nothing else",
            fixed.message
        );
        let oneofs: Vec<(&str, Vec<&str>)> = message
            .oneof_decl
            .iter()
            .zip(0..)
            .map(|(oneof, index)| {
                let members = message.field.iter().filter(|field| field.oneof_index == Some(index));
                (oneof.name(), members.map(FieldDescriptorProto::name).collect())
            })
            .collect();
        let expected: Vec<(&str, Vec<&str>)> =
            fixed.oneof.iter().map(|(name, members)| (*name, members.to_vec())).collect();
        assert_eq!(oneofs, expected, "{}", fixed.message);
    }
}

#[test]
fn every_trigger_takes_reason_tracking_id_and_dry_run() {
    let files = files();
    let messages = messages(&files);
    let triggers: Vec<_> = files
        .iter()
        .flat_map(|file| &file.service)
        .flat_map(|service| &service.method)
        .filter(|method| method.name().starts_with("Trigger"))
        .map(|method| method.input_type().trim_start_matches('.').to_owned())
        .collect();
    assert!(!triggers.is_empty(), "there is no trigger");
    for (name, message) in messages.iter().filter(|(name, _)| {
        let short = name.rsplit('.').next().unwrap_or_default();
        triggers.contains(name) || (short.starts_with("Trigger") && short.ends_with("Request"))
    }) {
        for (field, kind) in [("reason", "string"), ("tracking_id", "string"), ("dry_run", "bool")] {
            let found = message.field.iter().find(|candidate| candidate.name() == field);
            assert_eq!(found.map(type_text).as_deref(), Some(kind), "{name}.{field}");
        }
    }
}

#[test]
fn only_the_named_trigger_services_hold_triggers() {
    // A trigger on CQS or DTOflow would be the side door that the decision record rejects.
    for file in files().iter().filter(|file| ["cqs.v1", "dtoflow.v1"].contains(&file.package())) {
        for method in file.service.iter().flat_map(|service| &service.method) {
            assert!(!method.name().starts_with("Trigger"), "{}.{}", file.package(), method.name());
            assert!(!method.name().contains("Inject"), "{}.{}", file.package(), method.name());
        }
    }
}

/// Whether something at `path` has a comment; a file's comments are indexed by path.
struct Comments<'a>(BTreeMap<&'a [i32], bool>);

impl<'a> Comments<'a> {
    fn of(file: &'a FileDescriptorProto) -> Self {
        let locations = &file.source_code_info.as_ref().expect("descriptors carry source info").location;
        Self(
            locations
                .iter()
                .map(|location| {
                    let text = [location.leading_comments(), location.trailing_comments()].concat();
                    (location.path.as_slice(), !text.trim().is_empty())
                })
                .collect(),
        )
    }

    fn missing(&self, path: &[i32]) -> bool {
        !self.0.get(path).copied().unwrap_or(false)
    }
}

// Field numbers of descriptor.proto, of which comment paths are made.
const FILE_MESSAGE: i32 = 4;
const FILE_ENUM: i32 = 5;
const FILE_SERVICE: i32 = 6;
const MEMBERS: i32 = 2;

#[test]
fn every_field_value_and_rpc_is_documented() {
    let mut missing = Vec::new();
    for file in &files() {
        let comments = Comments::of(file);
        for (message, index) in file.message_type.iter().zip(0..) {
            for (field, member) in message.field.iter().zip(0..) {
                if comments.missing(&[FILE_MESSAGE, index, MEMBERS, member]) {
                    missing.push(format!("{}.{}.{}", file.package(), message.name(), field.name()));
                }
            }
        }
        for (kind, index) in file.enum_type.iter().zip(0..) {
            missing.extend(undocumented_values(file, kind, index, &comments));
        }
        for (service, index) in file.service.iter().zip(0..) {
            missing.extend(undocumented_rpcs(file, service, index, &comments));
        }
    }
    assert!(missing.is_empty(), "no comment: {missing:#?}");
}

fn undocumented_values(
    file: &FileDescriptorProto,
    kind: &EnumDescriptorProto,
    index: i32,
    comments: &Comments<'_>,
) -> Vec<String> {
    let values = kind.value.iter().zip(0..);
    values
        // The zero value means "not set" in every enum and says so by its name.
        .filter(|(value, _)| !value.name().ends_with("_UNSPECIFIED"))
        .filter(|(_, member)| comments.missing(&[FILE_ENUM, index, MEMBERS, *member]))
        .map(|(value, _)| format!("{}.{}.{}", file.package(), kind.name(), value.name()))
        .collect()
}

fn undocumented_rpcs(
    file: &FileDescriptorProto,
    service: &ServiceDescriptorProto,
    index: i32,
    comments: &Comments<'_>,
) -> Vec<String> {
    let methods = service.method.iter().zip(0..);
    methods
        .filter(|(_, member)| comments.missing(&[FILE_SERVICE, index, MEMBERS, *member]))
        .map(|(method, _)| format!("{}.{}/{}", file.package(), service.name(), method.name()))
        .collect()
}

/// The committed document of the REST API.
fn openapi() -> Value {
    let text = fs::read_to_string(workspace_root().join("openapi/openapi.json")).expect("openapi/openapi.json");
    serde_json::from_str(&text).expect("openapi/openapi.json is JSON")
}

/// Every name an operator writes or reads: path segments, parameters, properties.
fn operator_names(value: &Value, names: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            for (key, inner) in object {
                match (key.as_str(), inner) {
                    ("paths", Value::Object(paths)) => {
                        names.extend(paths.keys().flat_map(|path| path.split('/').map(str::to_owned)));
                    }
                    ("properties", Value::Object(properties)) => names.extend(properties.keys().cloned()),
                    ("parameters", Value::Array(parameters)) => {
                        names.extend(parameters.iter().filter_map(|one| one["name"].as_str()).map(str::to_owned));
                    }
                    _ => {}
                }
                operator_names(inner, names);
            }
        }
        Value::Array(list) => list.iter().for_each(|inner| operator_names(inner, names)),
        _ => {}
    }
}

#[test]
fn no_operator_path_or_field_names_a_queue_or_a_notification() {
    let mut names = Vec::new();
    operator_names(&openapi(), &mut names);
    assert!(names.iter().any(|name| name == "model-refresh") && names.iter().any(|name| name == "tracking_id"));
    let inner = |name: &&String| {
        let words = name.to_ascii_lowercase();
        // "items_enqueued" is the decision record's word for a count and names no queue.
        words
            .split(|c: char| !c.is_ascii_alphanumeric())
            .any(|word| ["queue", "queues", "notification", "notifications"].contains(&word))
    };
    let wrong: Vec<&String> = names.iter().filter(inner).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn every_example_of_a_trigger_is_a_dry_run() {
    let document = openapi();
    let paths = document["paths"].as_object().expect("paths");
    // A preview only looks; it has no other way.
    let is_trigger = |path: &str| path.starts_with("/v1/triggers/") && !path.ends_with("/preview");
    let triggers: Vec<_> = paths.iter().filter(|(path, _)| is_trigger(path)).collect();
    assert!(triggers.len() >= 2, "model-refresh and touch at least");
    for (path, methods) in triggers {
        let content = &methods["post"]["requestBody"]["content"]["application/json"];
        assert_eq!(content["example"]["dry_run"], true, "{path}: {content}");
    }
}
