//! The part of the store trait about the chain of the audit log.

use crate::{
    audit::chain::{Anchor, ChainHead},
    model::SealedRow,
    store::Step,
};

/// The chain of the audit log.
pub trait AuditStore: Send + Sync + 'static {
    /// The end of the chain.
    fn audit_head(&self) -> Step<'_, ChainHead>;

    /// Where it begins: its genesis, and its cut where there is one.
    fn audit_anchor(&self) -> Step<'_, Vec<Anchor>>;

    /// Rows with larger ids, oldest first, of all tenants.
    fn audit_walk(&self, after: i64, limit: usize) -> Step<'_, Vec<SealedRow>>;

    /// Cuts the chain there and deletes at most `limit` of the rows up to there; true when more is to be deleted. Only for
    /// a cut that was signed.
    fn audit_cut(&self, cut: ChainHead, limit: usize) -> Step<'_, bool>;
}

/// Implements [`AuditStore`] for a twin as `steps_of!` does the rest.
macro_rules! audit_steps_of {
    ($store:ty) => {
        impl $crate::audit_store::AuditStore for $store {
            fn audit_head(&self) -> $crate::store::Step<'_, $crate::audit::chain::ChainHead> {
                // The first time, it writes.
                self.write((), |unit, ()| Box::pin($crate::steps::audit::head(unit)))
            }

            fn audit_anchor(&self) -> $crate::store::Step<'_, Vec<$crate::audit::chain::Anchor>> {
                self.read((), |unit, ()| Box::pin($crate::unit::Audit::audit_anchors(unit)))
            }

            fn audit_walk(&self, after: i64, limit: usize) -> $crate::store::Step<'_, Vec<$crate::model::SealedRow>> {
                self.read((), move |unit, ()| Box::pin($crate::unit::Audit::audit_walk(unit, after, limit)))
            }

            fn audit_cut(&self, cut: $crate::audit::chain::ChainHead, limit: usize) -> $crate::store::Step<'_, bool> {
                self.write((), move |unit, ()| Box::pin($crate::steps::audit::audit_cut(unit, cut, limit)))
            }
        }
    };
}
pub(crate) use audit_steps_of;
