//! What ids look like, said once for the whole document: every path segment, parameter and body field of an id's name.
//!
//! The rules are `domain`'s; here they only become patterns, so that generated clients refuse early what the gateway would.

use utoipa::openapi::{
    OpenApi, RefOr, Schema,
    path::{Operation, PathItem},
    schema::Object,
};

/// Of tenants, stores and records; `.` and `..` are none.
const ID: &str = "^(?!\\.{1,2}$)[A-Za-z0-9._-]{1,64}$";
/// Of operations.
const TRACKING_ID: &str = "^(?!\\.{1,2}$)[A-Za-z0-9._:-]{1,128}$";
/// Something that is not a space, and no control or invisible character.
const REASON: &str = "^[^\\u0000-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u180e\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff\\ufff9-\\ufffb]*\
    [^ \\u0000-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u180e\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff\\ufff9-\\ufffb]\
    [^\\u0000-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u180e\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff\\ufff9-\\ufffb]*$";

fn pattern_of(name: &str) -> Option<&'static str> {
    match name {
        "tenant" | "store" | "label" | "tenant_id" | "store_id" | "model_id" | "design_id" | "label_id"
        | "access_point_id" => Some(ID),
        "tracking_id" => Some(TRACKING_ID),
        "reason" => Some(REASON),
        _ => None,
    }
}

/// Adds the patterns to a finished document.
pub(crate) fn add(document: &mut OpenApi) {
    for item in document.paths.paths.values_mut() {
        for operation in operations(item) {
            for parameter in operation.parameters.iter_mut().flatten() {
                let RefOr::T(parameter) = parameter else { continue };
                let pattern = pattern_of(&parameter.name);
                if let Some(RefOr::T(Schema::Object(object))) = &mut parameter.schema {
                    set(object, pattern);
                }
            }
        }
    }
    let schemas = document.components.iter_mut().flat_map(|components| components.schemas.iter_mut());
    // Answers show what is there; only what is asked for has to fit.
    for (_, schema) in schemas.filter(|(name, _)| name.ends_with("Request")) {
        let RefOr::T(Schema::Object(object)) = schema else { continue };
        for (name, property) in &mut object.properties {
            let pattern = pattern_of(name);
            if let RefOr::T(Schema::Object(object)) = property {
                set(object, pattern);
            }
        }
    }
}

fn set(object: &mut Object, pattern: Option<&str>) {
    if let Some(pattern) = pattern
        && object.properties.is_empty()
    {
        object.pattern = Some(pattern.to_owned());
    }
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    [&mut item.get, &mut item.put, &mut item.post, &mut item.delete, &mut item.patch].into_iter().flatten()
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
        assert_eq!(body["reason"]["pattern"], REASON);
        let path = &document["paths"]["/v1/tenants/{tenant}/stores"]["get"]["parameters"];
        assert!(path.as_array().unwrap().iter().any(|one| one["name"] == "tenant" && one["schema"]["pattern"] == ID));
        for text in ["..", ".", "", "a/b", &"x".repeat(65)] {
            assert!(text.parse::<TenantId>().is_err());
        }
        assert!("x".repeat(64).parse::<TenantId>().is_ok() && "a:b".parse::<TrackingId>().is_ok());
        assert!(" ".parse::<Reason>().is_err() && "\u{ad}".parse::<Reason>().is_err());
    }
}
