//! Query parameters that a request does not have are refused by name, wherever there are none at all, too: whoever writes
//! `?dry_run=true` behind a path must not believe that it was read.
//!
//! What a request has says its documentation, so no route can be forgotten. Here for what only reads; of an action the
//! body's reader does it, so that the refusal is audited like every other.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use axum::extract::MatchedPath;
use domain::Refusal;
use http::{Uri, request::Parts};
use utoipa::openapi::{OpenApi, RefOr, path::ParameterIn};

use crate::query::printable;

/// Of each documented path below `/v1/` the query parameters of its GET.
pub(crate) struct Known(BTreeMap<String, BTreeSet<String>>);

impl Known {
    /// As the document says.
    pub(crate) fn of(document: &OpenApi) -> Self {
        let read = document.paths.paths.iter().filter(|(path, _)| path.starts_with("/v1/"));
        let names = |(path, item): (&String, &utoipa::openapi::PathItem)| {
            let get = item.get.as_ref()?;
            let names = get.parameters.iter().flatten().filter_map(|parameter| match parameter {
                RefOr::T(parameter) if parameter.parameter_in == ParameterIn::Query => Some(parameter.name.clone()),
                _ => None,
            });
            Some((path.clone(), names.collect()))
        };
        Self(read.filter_map(names).collect())
    }
}

/// Refuses a GET with a parameter that its path does not have. Asked once the operator is known: before, every refusal is
/// the same 401.
pub(crate) fn check(parts: &Parts) -> Result<(), Refusal> {
    let known = parts.extensions.get::<Arc<Known>>();
    let path = parts.extensions.get::<MatchedPath>();
    match known.zip(path).and_then(|(known, path)| known.0.get(path.as_str())) {
        Some(names) => only(&parts.uri, names),
        None => Ok(()),
    }
}

/// Refuses the first parameter that is none of `names`.
pub(crate) fn only(uri: &Uri, names: &BTreeSet<String>) -> Result<(), Refusal> {
    let mut given = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
    match given.find(|(name, _)| !names.contains(name.as_ref())) {
        Some((name, _)) => Err(Refusal::field(printable(&name), "is not a parameter of this request")),
        None => Ok(()),
    }
}
