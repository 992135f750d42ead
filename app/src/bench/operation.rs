//! A running refresh: controlled, waited for, then its figures.

use std::time::Duration;

use domain::ServiceName;
use proto::{
    CqsClient,
    cqs::v1::{
        ControlOperationRequest, ControlOperationResponse, GetOperationRequest, OperationState,
        control_operation_request::Action,
    },
};
use serde_json::{Map, Value};

use super::{
    Report, TENANT,
    figures::{per_second, rounded},
    platform::Bench,
    progress,
    watch::{Spent, Watch},
};

/// Between two looks at an operation.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Operations between two lines of progress.
const TELL_EVERY: usize = 20;

/// Waits until every operation has succeeded.
pub(super) async fn wait(bench: &Bench, ids: &[String]) -> anyhow::Result<()> {
    let mut cqs: CqsClient = bench.cqs_as(ServiceName::OperatorGateway)?;
    for (number, id) in ids.iter().enumerate() {
        if number > 0 && number % TELL_EVERY == 0 {
            progress(format!("{number} of {} operations have succeeded", ids.len()));
        }
        loop {
            let ask = GetOperationRequest { tenant_id: TENANT.to_owned(), tracking_id: id.clone() };
            let operation = cqs.get_operation(ask).await?.into_inner();
            match operation.state() {
                OperationState::Succeeded => break,
                OperationState::FinishedWithFailures => anyhow::bail!("{id} failed: {:?}", operation.failures),
                OperationState::Running | OperationState::Unspecified => tokio::time::sleep(LOOK_EVERY).await,
                stopped => anyhow::bail!("{id} is {}", stopped.as_str_name()),
            }
        }
    }
    Ok(())
}

/// Carries out an action on an operation, as the gateway does.
pub(super) async fn control(
    cqs: &mut CqsClient,
    tracking_id: &str,
    action: Action,
) -> anyhow::Result<ControlOperationResponse> {
    let request = ControlOperationRequest {
        tenant_id: TENANT.to_owned(),
        tracking_id: tracking_id.to_owned(),
        operator_subject: "bench@localhost".to_owned(),
        reason: "benchmark".to_owned(),
        action: Some(action),
    };
    Ok(cqs.control_operation(request).await?.into_inner())
}

/// Notes what a refresh of so many labels took.
pub(super) async fn finish(report: &mut Report, labels: u64, spent: &Spent, seen: Watch) {
    let (wall, cpu, writer) = (spent.wall(), spent.cpu(), spent.writer());
    let seen = seen.stop().await;
    report.set("seconds", rounded(wall.as_secs_f64()));
    report.set("labels_per_s", per_second(labels, wall));
    report.set("labels_per_cpu_s", per_second(labels, cpu));
    report.set("labels_per_writer_cpu_s", per_second(labels, writer));
    report.set("peak_waiting", seen.values().map(|queue| queue.peak_waiting).max());
    let stages: Map<String, Value> =
        seen.into_iter().map(|(queue, seen)| (queue.to_string(), per_second(labels, seen.busy_until).into())).collect();
    report.set("stage_labels_per_s", stages);
}
