//! Operations.

use db::row::{Binds, ResultRow};

use super::{Columns, ms, subject_text};
use crate::{StoreError, model::Operation};

/// The columns of `cqs_operation` after `id`, in their order.
pub(crate) fn bind_operation<Q: Binds>(query: Q, operation: &Operation) -> Q {
    query
        .with(operation.tenant.as_str())
        .with(operation.tracking_id.as_str())
        .with(operation.lane)
        .with(operation.queue.as_str())
        .with(operation.trigger.as_str())
        .with(operation.scope.as_ref().map(ToString::to_string).unwrap_or_default())
        .with(operation.reason.as_str())
        .with(subject_text(operation.operator_subject.as_ref()))
        .with(operation.accepted_at.as_ms())
        .with(operation.sla.as_ms())
        .with(ms(operation.sla_chosen))
        .with(operation.items_digest.as_str())
        .with(operation.items_enqueued)
        .with(ms(operation.finished_at))
}

/// A row of `cqs_operation`.
pub(crate) fn read_operation<R: ResultRow>(row: &R) -> Result<Operation, StoreError> {
    let columns = Columns { table: "cqs_operation", row, key: "id" };
    Ok(Operation {
        id: columns.get("id")?,
        tenant: columns.parse("tenant")?,
        tracking_id: columns.parse("tracking_id")?,
        lane: columns.get("lane")?,
        queue: columns.parse("queue")?,
        trigger: columns.get("trigger_name")?,
        scope: columns.parse_if("scope")?,
        reason: columns.parse("reason")?,
        operator_subject: columns.parse_if("operator_subject")?,
        accepted_at: columns.time("accepted_at")?,
        sla: columns.time("sla")?,
        sla_chosen: columns.time_if("sla_chosen")?,
        items_digest: columns.get("items_digest")?,
        items_enqueued: columns.get("items_enqueued")?,
        finished_at: columns.time_if("finished_at")?,
    })
}
