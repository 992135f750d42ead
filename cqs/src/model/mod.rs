//! Rows, lanes, heads, leases, ledger counts: what the tables of a twin hold, in the words of the domain.

mod audit;
mod control;
mod failure;
mod lane;
mod ledger;
mod operation;
mod overview;
mod queue;
mod row;

pub use audit::{AuditOutcome, AuditRow, SealedRow};
pub use control::{
    Act, Action, ActionKind, Approval, ApprovalState, BlockCause, Blocked, Control, ControlAsk, Gate, Hold,
    LimitChange, Limited, Limits, Pace, Pause, PlaceReport, Receipt, State, StopFrom, StopWhen, Terms,
};
pub use failure::{DeadRange, DeadRow, Failure, FateState, Lineage, RecordFate, RetryRule};
pub use lane::{Head, HeadChange, HeadKey, Lane, LaneClass, Lease, NewLane, SplitCounts};
pub use ledger::{ByEvidence, Counts, LedgerKey, QueueCounts};
pub(crate) use operation::expansion_complete;
pub use operation::{DeadLetter, FailureGroup, Family, Member, Operation, OperationReport, StageReport};
pub use overview::{BACKLOG_MAX, COUNTED_MAX, Load, OperationTally, Overview, QueueReport};
pub use queue::{Backlog, Exclusive, Queue};
pub use row::{CoalesceKey, Company, RecordKey, Row, RowKind, coalesce_key, coalesce_key_ref, record_key};
