//! What a unit does with the audit chain, and which part of it is asked for.

use std::future::Future;

use domain::{TenantId, Timestamp, TrackingId};

use super::Result;
use crate::{
    audit::chain::{Anchor, ChainHash},
    model::{AuditOutcome, AuditRow, SealedRow},
};

/// Which part of the audit log.
#[derive(Debug, Clone)]
pub struct AuditFilter {
    /// Of these tenants, 1 to 1,000.
    pub tenants: Vec<TenantId>,
    /// Only of this tracking id.
    pub tracking_id: Option<TrackingId>,
    /// Only on behalf of exactly this operator.
    pub operator_subject: Option<String>,
    /// Only this action.
    pub action: Option<String>,
    /// Only with this outcome.
    pub outcome: Option<AuditOutcome>,
    /// Only from then on.
    pub since: Option<Timestamp>,
    /// Only before then.
    pub until: Option<Timestamp>,
    /// Only rows before this position.
    pub before: i64,
    /// At most so many.
    pub limit: usize,
}

/// How much earlier than an entry before it an entry may be dated, in milliseconds (five minutes): units of work date their
/// entries when they begin and append them when they end, up to half a minute later. What is searched by time begins and
/// ends so much further out.
pub(crate) const AUDIT_DISORDER_MS: i64 = 300_000;

impl AuditFilter {
    /// What is read, one part after the other: a tenant with the action asked for, and with no tenant the brake, which
    /// concerns all of them. Of that, refusals are nobody's but the log's own: they concern an operator of some tenant.
    pub(crate) fn parts(&self) -> Vec<(&str, Option<&str>)> {
        let action = self.action.as_deref();
        let mut parts: Vec<_> = self.tenants.iter().map(|tenant| (tenant.as_str(), action)).collect();
        if self.tracking_id.is_none() {
            let brake = [true, false].map(crate::steps::brake::brake_action);
            parts.extend(
                brake.into_iter().filter(|of| action.is_none_or(|action| action == *of)).map(|of| ("", Some(of))),
            );
        }
        parts
    }
}

/// The audit log.
pub(crate) trait Audit: Send {
    /// Appends rows to the chain; their ids are not looked at.
    fn audit_append(&mut self, rows: &[AuditRow]) -> impl Future<Output = Result<()>> + Send
    where
        Self: Sized,
    {
        async move {
            let head = crate::steps::audit::head(self).await?;
            self.audit_put(&head.seal(rows)).await
        }
    }
    /// The last row's id and hash. Other units of work that append wait for this one's end.
    fn audit_tail(&mut self) -> impl Future<Output = Result<Option<(i64, String)>>> + Send;
    /// Where the chain begins: its genesis, and its cut where there is one.
    fn audit_anchors(&mut self) -> impl Future<Output = Result<Vec<Anchor>>> + Send;
    /// Stores an anchor; one of the same kind is overwritten.
    fn audit_anchor_put(&mut self, anchor: Anchor) -> impl Future<Output = Result<()>> + Send;
    /// Inserts rows with the ids and hashes they have.
    fn audit_put(&mut self, rows: &[(AuditRow, ChainHash)]) -> impl Future<Output = Result<()>> + Send;
    /// Rows with larger ids, oldest first.
    fn audit_walk(&mut self, after: i64, limit: usize) -> impl Future<Output = Result<Vec<SealedRow>>> + Send;
    /// Deletes rows up to that id, which a cut stands for, at most `limit`; how many.
    fn audit_delete(&mut self, up_to: i64, limit: usize) -> impl Future<Output = Result<usize>> + Send;
    /// A part of the log, newest first.
    fn audit_page(&mut self, filter: &AuditFilter) -> impl Future<Output = Result<Vec<SealedRow>>> + Send;
    /// Position of the newest row; 0 when there is none.
    fn audit_last(&mut self) -> impl Future<Output = Result<i64>> + Send;
    /// How far a reader has come; none: it never read.
    fn reader_find(&mut self, reader: &str) -> impl Future<Output = Result<Option<i64>>> + Send;
    /// Keeps how far a reader has come.
    fn reader_put(&mut self, reader: &str, position: i64) -> impl Future<Output = Result<()>> + Send;
}
