//! Queues.

use db::row::{Binds, ResultRow};
use domain::ParentShape;

use super::{Columns, alias_text};
use crate::{
    StoreError,
    model::{Exclusive, Queue},
};

/// The columns `name`, `subscriptions`, `shapes` and `exclusive_by_store` of `cqs_queue`.
pub(crate) fn bind_queue<Q: Binds>(query: Q, queue: &Queue) -> Result<Q, StoreError> {
    let subscriptions: Vec<&str> = queue.subscriptions.iter().map(|dto_type| dto_type.as_str()).collect();
    let shapes: Vec<(&str, &str)> =
        queue.shapes.iter().map(|shape| (shape.dto_type.as_str(), alias_text(shape.alias))).collect();
    Ok(query
        .with(queue.name.as_str())
        .with(serde_json::to_string(&subscriptions)?)
        .with(serde_json::to_string(&shapes)?)
        .with(queue.exclusive == Exclusive::ByStore))
}

/// A row of `cqs_queue`.
pub(crate) fn read_queue<R: ResultRow>(row: &R) -> Result<Queue, StoreError> {
    let columns = Columns { table: "cqs_queue", row, key: "name" };
    let subscriptions: Vec<String> =
        serde_json::from_str(columns.get("subscriptions")?).map_err(|_| columns.broken("subscriptions"))?;
    let shapes: Vec<(String, String)> =
        serde_json::from_str(columns.get("shapes")?).map_err(|_| columns.broken("shapes"))?;
    let shape = |(dto_type, alias): (String, String)| {
        let alias = if alias.is_empty() { None } else { Some(alias.parse().map_err(|_| columns.broken("shapes"))?) };
        Ok(ParentShape { dto_type: dto_type.parse().map_err(|_| columns.broken("shapes"))?, alias })
    };
    Ok(Queue {
        id: columns.queue("queue")?,
        name: columns.parse("name")?,
        subscriptions: subscriptions
            .iter()
            .map(|dto_type| dto_type.parse().map_err(|_| columns.broken("subscriptions")))
            .collect::<Result<_, _>>()?,
        shapes: shapes.into_iter().map(shape).collect::<Result<_, StoreError>>()?,
        exclusive: if columns.get("exclusive_by_store")? { Exclusive::ByStore } else { Exclusive::No },
        polled_at: columns.time_if("polled_at")?,
    })
}
