//! The audit row of a refused or carried-out control action.

use std::{sync::Arc, time::Duration};

use domain::{OperatorSubject, Reason, Refusal, TenantId, TrackingId};
use proto::cqs::v1::{AppendAuditRequest, AuditEntry, AuditOutcome};
use sha2::{Digest as _, Sha256};

use crate::{
    backend::{Peer, call_within},
    problem::Problem,
    state::Gateway,
};

/// Longest wait for the audit log: the operator's answer waits behind it.
const APPEND_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest detail, in bytes (CQS's bound).
const DETAIL_MAX_BYTES: usize = 1_000;

/// Who wrote, or will write, the audit row of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AuditedBy {
    /// The gateway refused (or nobody else saw the request): the gateway writes the row.
    Gateway,
    /// The service that refused wrote it.
    Service,
    /// Nobody: the outcome is unknown, so there is no refusal to write down.
    Nobody,
}

/// A trigger call that did not succeed.
pub(crate) struct Failure {
    pub(crate) problem: Problem,
    pub(crate) audited_by: AuditedBy,
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Self { problem, audited_by: AuditedBy::Gateway }
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Problem::from(refusal).into()
    }
}

/// What is known of a control action so far; grows as the request is understood.
pub(crate) struct Attempt {
    gateway: Arc<Gateway>,
    action: String,
    operator: OperatorSubject,
    /// Only a tenant of the operator's own token: the log of another tenant shows nothing of a stranger's tries.
    pub(crate) tenant: Option<TenantId>,
    pub(crate) tracking_id: Option<TrackingId>,
    pub(crate) reason: Option<Reason>,
    digest: String,
}

impl Attempt {
    pub(crate) fn new(gateway: &Arc<Gateway>, action: impl Into<String>, operator: &OperatorSubject) -> Self {
        Self {
            gateway: Arc::clone(gateway),
            action: action.into(),
            operator: operator.clone(),
            tenant: None,
            tracking_id: None,
            reason: None,
            digest: String::new(),
        }
    }

    /// Notes the body's digest.
    pub(crate) fn body(&mut self, bytes: &[u8]) {
        self.digest = domain::hex(Sha256::digest(bytes));
    }

    /// Writes the row of a refusal, unless someone else did.
    pub(crate) async fn refused(&self, failure: &Failure) {
        let refusal = failure.problem.refusal();
        tracing::warn!(
            action = self.action,
            operator = %self.operator,
            tracking_id = self.tracking_id.as_ref().map(TrackingId::as_str),
            audited_by = ?failure.audited_by,
            %refusal,
            "refused"
        );
        if failure.audited_by == AuditedBy::Gateway {
            let detail = if refusal.field.is_empty() {
                refusal.message.clone()
            } else {
                format!("{}: {}", refusal.field, refusal.message)
            };
            self.append(AuditOutcome::Refused, refusal.code.as_str(), detail).await;
        }
    }

    /// Writes the row of an action the gateway carried out itself.
    pub(crate) async fn accepted(&self, detail: String) {
        self.append(AuditOutcome::Accepted, "", detail).await;
    }

    async fn append(&self, outcome: AuditOutcome, error_code: &str, mut detail: String) {
        let mut end = detail.len().min(DETAIL_MAX_BYTES);
        while !detail.is_char_boundary(end) {
            end -= 1;
        }
        detail.truncate(end);
        let text = |value: Option<&str>| value.unwrap_or_default().to_owned();
        let entry = AuditEntry {
            operator_subject: self.operator.to_string(),
            tenant_id: text(self.tenant.as_ref().map(TenantId::as_str)),
            action: self.action.clone(),
            tracking_id: text(self.tracking_id.as_ref().map(TrackingId::as_str)),
            reason: text(self.reason.as_ref().map(Reason::as_str)),
            request_digest: self.digest.clone(),
            outcome: outcome.into(),
            error_code: error_code.to_owned(),
            detail,
            ..AuditEntry::default()
        };
        let mut cqs = self.gateway.cqs();
        let request = AppendAuditRequest { entries: vec![entry] };
        // The refusal stands whether or not its row could be written.
        if let Err(error) = call_within(Peer::Cqs, APPEND_TIMEOUT, cqs.append_audit(request)).await {
            tracing::error!(?error, action = self.action, operator = %self.operator, "audit row not written");
        }
    }
}
