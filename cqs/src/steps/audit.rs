//! The audit log is appended to, read, and cut.

use crate::{
    StoreError,
    audit::chain::{Anchor, ChainHash, ChainHead},
    model::{AuditRow, SealedRow},
    store::FollowAsk,
    unit::{Audit, AuditFilter, Unit},
};

/// Rows read at once when the genesis is taken.
const GENESIS_ROWS: usize = 1_000;

/// Appends rows.
pub(crate) async fn append_audit<U: Unit>(unit: &mut U, rows: &[AuditRow]) -> Result<(), StoreError> {
    unit.audit_append(rows).await
}

/// A part of the log, newest first.
pub(crate) async fn audit<U: Unit>(unit: &mut U, filter: &AuditFilter) -> Result<Vec<SealedRow>, StoreError> {
    unit.audit_page(filter).await
}

/// What a reader has not seen yet, oldest first, once it is written down how far it has come. A reader that is new
/// begins at the end.
pub(crate) async fn follow<U: Unit>(unit: &mut U, ask: &FollowAsk) -> Result<Vec<SealedRow>, StoreError> {
    let known = unit.reader_find(&ask.reader).await?;
    let from = match known {
        None => unit.audit_last().await?,
        Some(position) => position.max(ask.done),
    };
    if known != Some(from) {
        unit.reader_put(&ask.reader, from).await?;
    }
    unit.audit_walk(from, ask.limit).await
}

/// The end of the chain. The first time it is asked for, the rows that are there already become its genesis.
pub(crate) async fn head<U: Audit>(unit: &mut U) -> Result<ChainHead, StoreError> {
    let tail = unit.audit_tail().await?;
    let anchors = unit.audit_anchors().await?;
    let mut base = match anchors.iter().find(|anchor| matches!(anchor, Anchor::Genesis(_))) {
        Some(Anchor::Genesis(head) | Anchor::Cut(head)) => *head,
        None => genesis(unit).await?,
    };
    for anchor in anchors {
        if let Anchor::Cut(cut) = anchor
            && cut.id > base.id
        {
            base = cut;
        }
    }
    Ok(match tail {
        None => base,
        Some((id, hash)) => match ChainHash::from_hex(&hash) {
            Some(hash) if id > base.id => ChainHead { id, hash },
            // A row that the chain does not have is passed over; the check of the log tells it.
            _ => ChainHead { id: id.max(base.id), hash: base.hash },
        },
    })
}

async fn genesis<U: Audit>(unit: &mut U) -> Result<ChainHead, StoreError> {
    let mut head = ChainHead::empty();
    loop {
        let page = unit.audit_walk(head.id, GENESIS_ROWS).await?;
        for sealed in &page {
            head = ChainHead { id: sealed.row.id, hash: head.hash.then(&sealed.row) };
        }
        if page.len() < GENESIS_ROWS {
            break;
        }
    }
    unit.audit_anchor_put(Anchor::Genesis(head)).await?;
    Ok(head)
}

/// Cuts the chain there and deletes some of what the cut stands for; true when more is to be deleted.
pub(crate) async fn audit_cut<U: Unit>(unit: &mut U, cut: ChainHead, limit: usize) -> Result<bool, StoreError> {
    unit.audit_anchor_put(Anchor::Cut(cut)).await?;
    Ok(unit.audit_delete(cut.id, limit).await? == limit)
}
