//! What the document says beyond what stands at the routes: the rules of ids and texts, and where an answer leads.
//!
//! Said once for the whole document, by name: a path segment, parameter or body field of one name means one thing
//! everywhere. Generated clients refuse early what the gateway would, and tests that are made from the document know what
//! is valid.
//!
//! Deliberately not here: what each operation does and answers (`routes`), the frame (`router`).

use utoipa::openapi::{
    OpenApi,
    path::{Operation, PathItem},
};

mod links;
mod rules;

/// Completes a document made from the routes.
pub(crate) fn complete(document: &mut OpenApi) {
    rules::add(document);
    links::add(document);
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    [&mut item.get, &mut item.put, &mut item.post, &mut item.delete, &mut item.patch].into_iter().flatten()
}
