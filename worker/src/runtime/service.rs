//! What a service says: its queue, where each notification leads, and what a label's output shall be.

use std::sync::Arc;

use domain::{AliasName, Clock, DtoType, LeaseRef, Notification, Outcome, ParentShape, ServiceName, SplitItem, Urn};
use futures::future::BoxFuture;

use super::{CallError, Hand, Input, Label, LabelRef, Platform, RecordWrite, WriteState};

/// A worker service. It says what to write; reading the queue, writing and reporting are the runtime's.
pub(crate) trait Service: Send + Sync + 'static {
    /// Its name, identity and queue.
    fn name(&self) -> ServiceName;
    /// Whose writes its queue is told about.
    fn subscriptions(&self) -> &'static [DtoType];
    /// The parents it splits.
    fn shapes(&self) -> &'static [ParentShape];
    /// Whether one worker holds a store at a time.
    fn exclusive_by_store(&self) -> bool {
        false
    }
    /// Where a notification leads. Pure, and blind to where it came from.
    fn route(&self, item: &SplitItem) -> Route;
    /// Most notifications of the next batch; `configured` unless its work takes other than the usual time.
    fn batch_max(&self, configured: i32) -> i32 {
        configured
    }
    /// Batches that may wait in hand at once beyond those that work; 0 where batches only work. A batch waits when it has
    /// been in hand for some time: for hardware, not for the platform.
    fn waiting_batches(&self) -> usize {
        0
    }
    /// What must be written before a page of children of `parent` is enqueued. Repeated when the split is.
    fn before_children<'a>(
        &'a self,
        _context: Context<'a>,
        _parent: &'a Notification,
        _children: &'a [SplitItem],
    ) -> BoxFuture<'a, Result<(), CallError>> {
        Box::pin(std::future::ready(Ok(())))
    }
    /// Forgets what it cached of a record. Saves memory; correctness never depends on it.
    fn forget<'a>(&'a self, _urn: &'a Urn) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }
    /// What shall become of each label, in order.
    fn compute<'a>(
        &'a self,
        context: Context<'a>,
        labels: &'a [Label],
    ) -> BoxFuture<'a, Result<Vec<Verdict>, CallError>>;
}

/// What a service computes with.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    /// The platform, as this service.
    pub(crate) platform: &'a Platform,
    /// The lease under which the batch is handled.
    pub(crate) lease: &'a LeaseRef,
    /// For times that are written or reported.
    pub(crate) clock: &'a Arc<dyn Clock>,
    /// The batch in hand, for what is said beside it.
    pub(crate) hand: &'a Arc<Hand>,
}

/// Where a notification leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route {
    /// Handle this label.
    Label(LabelRef),
    /// Split it.
    Split(Expansion),
    /// Forget what is cached of the record; nothing else.
    Forget(Urn),
    /// Forget what is cached of the record, then split.
    ForgetAndSplit(Urn, Expansion),
    /// Not of this service.
    Unknown,
}

/// What a notification is split into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Expansion {
    /// One notification for each record found there.
    Records(AliasQuery),
    /// One parent for each store that has records there: the same parent, seen from that store, by the same alias.
    Stores(AliasQuery),
    /// This parent alone. Where it leaves an ordinary change, it is due so many milliseconds after it: a fan-out is bulk
    /// work, and other changes go first.
    Parent {
        /// The parent.
        parent: SplitItem,
        /// Milliseconds after the change's own SLA.
        allowance_ms: i64,
    },
}

/// Records found under a parent by an alias.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AliasQuery {
    pub(crate) dto_type: DtoType,
    pub(crate) alias: AliasName,
    pub(crate) parent: Urn,
}

/// What shall become of a label.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// Nothing to write.
    Settled(Outcome),
    /// Write the output, then report.
    Write(RecordWrite, Reported),
    /// An input changed while computing: compute again at once.
    Again,
}

/// What is reported once the output is written.
#[derive(Debug)]
pub(crate) enum Reported {
    /// Done when the write changed something, unchanged when not.
    AsWritten,
    /// This outcome, whatever the write changed.
    Always(Outcome),
    /// Nothing yet: with what was written the label is computed again at once.
    Again,
}

impl Reported {
    /// The outcome after the write; none where the label must be computed again.
    pub(crate) fn outcome(self, state: WriteState) -> Option<Outcome> {
        match (state, self) {
            (WriteState::InputChanged, _) | (_, Self::Again) => None,
            (_, Self::Always(outcome)) => Some(outcome),
            (WriteState::Written(_), Self::AsWritten) => Some(Outcome::Done),
            (WriteState::Unchanged(_), Self::AsWritten) => Some(Outcome::Unchanged),
        }
    }
}

impl Verdict {
    /// The label fails with this cause.
    pub(crate) fn failed(cause: impl Into<String>) -> Self {
        Self::Settled(Outcome::Failed { cause: cause.into() })
    }

    /// Puts the label's record of `dto_type`.
    pub(crate) fn put(label: &Label, dto_type: DtoType, record: &impl prost::Message, inputs: Vec<Input>) -> Self {
        Self::Write(RecordWrite::put(label, dto_type, record, inputs), Reported::AsWritten)
    }

    /// Deletes the label's record of `dto_type`.
    pub(crate) fn delete(label: &Label, dto_type: DtoType, inputs: Vec<Input>) -> Self {
        Self::Write(RecordWrite::delete(label, dto_type, inputs), Reported::AsWritten)
    }
}
