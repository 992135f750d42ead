//! Where an answer leads: the next page, what is listed below, the operation that was started.

use utoipa::openapi::{
    OpenApi, RefOr,
    link::{Link, LinkBuilder},
    path::Operation,
};

use super::operations;

/// One link: the operation whose answer leads on, its status, the operation it leads to, and the parameters of that one.
struct Lead(&'static str, &'static str, &'static str, &'static [(&'static str, &'static str)]);

const TENANT: (&str, &str) = ("tenant", "$request.path.tenant");
const STORE: (&str, &str) = ("store", "$request.path.store");
const TENANT_LISTED: (&str, &str) = ("tenant", "$response.body#/tenants/0/tenant_id");
const STORE_LISTED: (&str, &str) = ("store", "$response.body#/stores/0/store_id");
const LABEL_LISTED: (&str, &str) = ("label", "$response.body#/labels/0/label_id");

/// What is listed, and what can be asked of it.
const BELOW: &[Lead] = &[
    Lead("list_tenants", "200", "list_stores", &[TENANT_LISTED]),
    Lead("list_tenants", "200", "list_designs", &[TENANT_LISTED]),
    Lead("list_tenants", "200", "list_tenant_operations", &[TENANT_LISTED]),
    Lead("list_stores", "200", "list_models", &[TENANT, STORE_LISTED]),
    Lead("list_stores", "200", "list_access_points", &[TENANT, STORE_LISTED]),
    Lead("list_stores", "200", "list_labels", &[TENANT, STORE_LISTED]),
    Lead("list_labels", "200", "get_label", &[TENANT, STORE, LABEL_LISTED]),
    Lead("list_labels", "200", "get_label_image", &[TENANT, STORE, LABEL_LISTED]),
];

/// What can be asked of an operation that was started.
const OF_AN_OPERATION: &[&str] = &[
    "get_operation",
    "set_operation_limits",
    "pause_operation",
    "resume_operation",
    "cancel_operation",
    "approve_operation",
    "decline_operation",
    "list_failures",
    "retry_failures",
];

pub(super) fn add(document: &mut OpenApi) {
    for operation in document.paths.paths.values_mut().flat_map(operations) {
        let id = operation.operation_id.clone().unwrap_or_default();
        for Lead(_, status, to, parameters) in BELOW.iter().filter(|lead| lead.0 == id) {
            lead(operation, status, link(to, parameters));
        }
        if let Some(tenant) = tenant_of_started(&id) {
            for to in OF_AN_OPERATION {
                let parameters = [("tenant", tenant), ("tracking_id", "$response.body#/tracking_id")];
                lead(operation, "202", link(to, &parameters));
            }
        }
        next_page(operation, &id);
    }
}

/// Where the tenant of an operation stands that a call of `id` starts; none for calls that start none.
fn tenant_of_started(id: &str) -> Option<&'static str> {
    match id {
        "retry_failures" => Some("$request.path.tenant"),
        _ => id.starts_with("trigger_").then_some("$request.body#/tenant_id"),
    }
}

/// A list leads to its own next page.
fn next_page(operation: &mut Operation, id: &str) {
    let names: Vec<String> = operation.parameters.iter().flatten().filter_map(name_of).collect();
    if !names.iter().any(|name| name == "page_token") {
        return;
    }
    let mut parameters = vec![("page_token", "$response.body#/next_page_token")];
    for (name, place) in [TENANT, STORE, ("tracking_id", "$request.path.tracking_id")] {
        if place.starts_with("$request.path") && operation_has_segment(operation, name) {
            parameters.push((name, place));
        }
    }
    lead(operation, "200", link(id, &parameters));
}

fn name_of(parameter: &RefOr<utoipa::openapi::path::Parameter>) -> Option<String> {
    match parameter {
        RefOr::T(parameter) => Some(parameter.name.clone()),
        RefOr::Ref(_) => None,
    }
}

fn operation_has_segment(operation: &Operation, name: &str) -> bool {
    operation.parameters.iter().flatten().any(|parameter| match parameter {
        RefOr::T(parameter) => {
            parameter.name == name && matches!(parameter.parameter_in, utoipa::openapi::path::ParameterIn::Path)
        }
        RefOr::Ref(_) => false,
    })
}

fn link(to: &str, parameters: &[(&str, &str)]) -> Link {
    let link = LinkBuilder::new().operation_id(to);
    parameters.iter().fold(link, |link, (name, place)| link.parameter(*name, *place)).build()
}

fn lead(operation: &mut Operation, status: &str, link: Link) {
    if let Some(RefOr::T(response)) = operation.responses.responses.get_mut(status) {
        response.links.insert(link.operation_id.clone(), RefOr::T(link));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    /// Every link names an operation of the document and parameters that it has.
    #[test]
    fn links_lead_somewhere() {
        let document: Value = serde_json::from_str(&crate::openapi_json()).unwrap();
        let operations: Vec<&Value> = document["paths"]
            .as_object()
            .unwrap()
            .values()
            .flat_map(|item| item.as_object().unwrap().values())
            .collect();
        let mut found = 0;
        for operation in &operations {
            let responses = operation["responses"].as_object().unwrap().values();
            for (name, link) in responses.filter_map(|response| response["links"].as_object()).flatten() {
                let to = operations.iter().find(|known| known["operationId"] == link["operationId"]);
                let to = to.unwrap_or_else(|| panic!("{name} leads nowhere"));
                for parameter in link["parameters"].as_object().unwrap().keys() {
                    let known = to["parameters"].as_array().unwrap().iter().any(|one| one["name"] == *parameter);
                    assert!(known, "{name} has no {parameter}");
                }
                found += 1;
            }
        }
        assert!(found > 80, "only {found} links");
    }
}
