//! The verbs about failures, whichever way the platform is reached.

use cqs::{
    failure_store::{FailureAsk, RetryAsk},
    model::{Failure, FateState, RecordFate},
};
use domain::{Refusal, ServiceName, Timestamp};
use proto::{cqs::v1 as wire, refusal_from_status, timestamp_from_wire, timestamp_to_wire};

use crate::world::*;

/// Which failures of operation `of`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wanted {
    pub of: &'static str,
    pub queue: &'static str,
    pub cause: &'static str,
}

/// A retry by Ann.
pub fn retry_of(wanted: Wanted, tracking_id: &str) -> RetryAsk {
    RetryAsk {
        service: ServiceName::OperatorGateway,
        tenant: "T".parse().unwrap(),
        parent: wanted.of.parse().unwrap(),
        tracking_id: tracking_id.parse().unwrap(),
        queue: Some(wanted.queue).filter(|name| !name.is_empty()).map(|name| name.parse().unwrap()),
        cause: Some(wanted.cause).filter(|cause| !cause.is_empty()).map(str::to_owned),
        reason: "prices are there now".parse().unwrap(),
        operator_subject: Some("ann@example".parse().unwrap()),
        sla: None,
        request_digest: String::new(),
    }
}

fn time(at: Option<prost_types::Timestamp>) -> Option<Timestamp> {
    at.map(|at| timestamp_from_wire("at", &at).unwrap())
}

impl World {
    /// All failures, in pages of that size. Positions do not go over the wire and are left out.
    pub async fn failures(&self, wanted: Wanted, page: usize) -> Vec<Failure> {
        let mut all = Vec::new();
        if let Some(gate) = self.over_grpc() {
            let mut token = String::new();
            loop {
                let request = wire::ListFailuresRequest {
                    tenant_id: "T".to_owned(),
                    tracking_id: wanted.of.to_owned(),
                    queue_name: wanted.queue.to_owned(),
                    cause: wanted.cause.to_owned(),
                    page_size: i32::try_from(page).unwrap(),
                    page_token: token,
                };
                let answer =
                    gate.client(ServiceName::OperatorGateway).list_failures(request).await.unwrap().into_inner();
                assert!(answer.failures.len() <= page);
                all.extend(answer.failures.into_iter().map(failure_from_wire));
                token = answer.next_page_token;
                if token.is_empty() {
                    return all;
                }
            }
        }
        let mut after = None;
        loop {
            let ask = FailureAsk {
                tenant: "T".parse().unwrap(),
                tracking_id: wanted.of.parse().unwrap(),
                queue: Some(wanted.queue).filter(|name| !name.is_empty()).map(|name| name.parse().unwrap()),
                cause: Some(wanted.cause).filter(|cause| !cause.is_empty()).map(str::to_owned),
                after,
                limit: page,
            };
            let found = self.store.failures(ask).await.unwrap();
            assert!(found.failures.len() <= page);
            all.extend(found.failures.into_iter().map(|failure| Failure { position: 0, ..failure }));
            after = found.next;
            if after.is_none() {
                return all;
            }
        }
    }

    /// (items, replayed)
    pub async fn retry(&self, ask: RetryAsk) -> Result<(i64, bool), Refusal> {
        if let Some(gate) = self.over_grpc() {
            let request = retry_to_wire(&ask);
            let answer = gate.client(ask.service).retry_failures(request).await;
            let answer = answer.map_err(|status| refusal_from_status(&status))?.into_inner();
            return Ok((answer.items, answer.replayed));
        }
        let done = self.store.retry_failures(ask, self.now()).await.map_err(refusal)?;
        Ok((done.items, done.replayed))
    }

    /// Moves failures until no more can be moved now.
    pub async fn fill(&self) {
        while self.store.fill_retries(self.now()).await.unwrap().more {}
    }

    pub async fn fates(&self, urns: &[&str]) -> Vec<RecordFate> {
        if let Some(gate) = self.over_grpc() {
            let request = wire::GetRecordFatesRequest { dto_ids: urns.iter().map(|urn| (*urn).to_owned()).collect() };
            let answer = gate.client(ServiceName::OperatorGateway).get_record_fates(request).await.unwrap();
            return answer.into_inner().fates.into_iter().map(fate_from_wire).collect();
        }
        self.store.record_fates(urns.iter().map(|urn| urn.parse().unwrap()).collect()).await.unwrap()
    }
}

pub fn retry_to_wire(ask: &RetryAsk) -> wire::RetryFailuresRequest {
    wire::RetryFailuresRequest {
        tenant_id: ask.tenant.to_string(),
        tracking_id: ask.parent.to_string(),
        retry_tracking_id: ask.tracking_id.to_string(),
        queue_name: ask.queue.as_ref().map(ToString::to_string).unwrap_or_default(),
        cause: ask.cause.clone().unwrap_or_default(),
        reason: ask.reason.to_string(),
        operator_subject: ask.operator_subject.as_ref().map(ToString::to_string).unwrap_or_default(),
        sla_timestamp: ask.sla.map(timestamp_to_wire),
    }
}

fn failure_from_wire(wire: wire::Failure) -> Failure {
    let (urn, is_parent) = match wire.urn.unwrap() {
        wire::failure::Urn::DtoId(urn) => (urn, false),
        wire::failure::Urn::ParentId(urn) => (urn, true),
    };
    Failure {
        position: 0,
        queue: wire.queue_name.parse().unwrap(),
        dto_type: wire.dto_type.parse().unwrap(),
        urn: urn.parse().unwrap(),
        is_parent,
        cause: wire.cause,
        attempts: wire.attempts,
        at: time(wire.failed_at).unwrap(),
        retried_by: Some(wire.retried_by).filter(|id| !id.is_empty()).map(|id| id.parse().unwrap()),
        handed_over: wire.handed_over,
    }
}

fn fate_from_wire(wire: wire::RecordFate) -> RecordFate {
    let state = match wire.state() {
        wire::RecordFateState::Waiting => FateState::Waiting { due_at: time(wire.due_at), cause: wire.cause.clone() },
        wire::RecordFateState::Leased => FateState::Leased,
        wire::RecordFateState::Failed => {
            FateState::Dead { cause: wire.cause.clone(), at: time(wire.failed_at).unwrap() }
        }
        wire::RecordFateState::Unspecified => panic!("a fate without a state"),
    };
    RecordFate {
        queue: wire.queue_name.parse().unwrap(),
        dto_type: wire.dto_type.parse().unwrap(),
        urn: wire.dto_id.parse().unwrap(),
        state,
        attempts: wire.attempts,
        sla: time(wire.sla_timestamp).unwrap(),
        tracking_id: Some(wire.tracking_id).filter(|id| !id.is_empty()).map(|id| id.parse().unwrap()),
    }
}
