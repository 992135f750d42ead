//! Heads: where in a lane of a queue (of a store) the next row may lie. Places: the lanes of a queue, to choose among.
//!
//! A head keeps two marks, one for labels and one for parents: no row before the mark is ready. A place has a mark, too,
//! not above those of its heads; one that is closed is not met at all, whatever lies below it. So a look begins at the mark, and does not walk over the rows that were claimed since yesterday but cannot be removed yet because somebody
//! holds an old snapshot.
//! - A unit that makes a row ready before its mark lowers it, at its end, holding the lane's lock together with other
//!   arrivals ([`super::locks::Lock::Arrivals`]). Nearly always the mark is low enough, and nothing is written.
//! - Upkeep, a claim that finds a head empty, and one after every few thousand rows that were claimed there (`advances`)
//!   raise it, alone with the lane's lock, so that no row that somebody is about to commit lies below. They do not wait for
//!   the lock: then it is raised next time.
//!
//! A mark may therefore be lower than the first row, never higher; which row is first is asked of the rows.

use domain::{LaneKind, StoreId, TenantId, Timestamp, limits};
use sqlx::postgres::PgRow;

use super::{PostgresUnit, arrays::queue_int, locks::Lock};
use crate::{
    StoreError,
    columns::{Columns, limit_int, store_text},
    model::{Head, HeadKey, RowKind},
    unit::Lanes as _,
};

/// Places or heads looked at together. The first one is nearly always it.
const CANDIDATES: usize = 32;

/// A place in the order of claiming.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Mark {
    pub(super) sla: i64,
    pub(super) id: i64,
}

impl Mark {
    /// Before every row.
    const LOWEST: Self = Self { sla: i64::MIN, id: i64::MIN };
}

/// The marks of a head; none: nothing is ready.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Marks {
    pub(super) labels: Option<Mark>,
    pub(super) parents: Option<Mark>,
}

impl Marks {
    pub(super) fn of(&self, kind: RowKind) -> Option<Mark> {
        match kind {
            RowKind::Label => self.labels,
            RowKind::Parent => self.parents,
        }
    }

    /// A row is ready there.
    pub(super) fn lower(&mut self, kind: RowKind, to: Mark) {
        let mark = match kind {
            RowKind::Label => &mut self.labels,
            RowKind::Parent => &mut self.parents,
        };
        *mark = Some(mark.map_or(to, |mark| mark.min(to)));
    }
}

/// A head as it is stored.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub(super) tenant: TenantId,
    pub(super) key: HeadKey,
    claim_sla: Timestamp,
    pub(super) marks: Marks,
}

pub(super) fn read_candidate(queue: i64, row: &PgRow) -> Result<Candidate, StoreError> {
    let columns = Columns { table: "cqs_head", row, key: "lane" };
    let mark = |sla, id| -> Result<Option<Mark>, StoreError> {
        let mark = columns.get::<Option<i64>>(sla)?.zip(columns.get::<Option<i64>>(id)?);
        Ok(mark.map(|(sla, id)| Mark { sla, id }))
    };
    Ok(Candidate {
        tenant: columns.parse("tenant")?,
        key: HeadKey { queue, lane: columns.get("lane")?, store: columns.parse_if("store")? },
        claim_sla: columns.time("claim_sla")?,
        marks: Marks { labels: mark("label_sla", "label_id")?, parents: mark("parent_sla", "parent_id")? },
    })
}

/// A place as it is stored: a lane in a queue.
#[derive(Debug, Clone)]
pub(super) struct Spot {
    pub(super) tenant: TenantId,
    queue: i64,
    pub(super) lane: i64,
    kind: LaneKind,
    /// Nothing under it is ready before.
    first_sla: Timestamp,
}

pub(super) fn read_spot(queue: i64, row: &PgRow) -> Result<Spot, StoreError> {
    let columns = Columns { table: "cqs_place", row, key: "lane" };
    Ok(Spot {
        tenant: columns.parse("tenant")?,
        queue,
        lane: columns.get("lane")?,
        kind: columns.parse("kind")?,
        first_sla: columns.time("first_sla")?,
    })
}

impl PostgresUnit<'_> {
    /// The earliest claimable head of the lanes of a kind. Marks say in which order to look, the rows what is there.
    pub(super) async fn first_head(&mut self, queue: i64, kind: LaneKind) -> Result<Option<Head>, StoreError> {
        let mut best: Option<Head> = None;
        let mut after = (Timestamp::from_ms(i64::MIN), i64::MIN);
        loop {
            let rows = sqlx::query(
                "SELECT tenant, lane, kind, first_sla FROM cqs_place
                 WHERE queue = $1 AND kind = $2 AND first_sla IS NOT NULL AND NOT closed AND closed_until IS NULL
                    AND (first_sla, lane) > ($3, $4)
                 ORDER BY first_sla, lane LIMIT $5",
            )
            .bind(queue_int(queue))
            .bind(kind.as_str())
            .bind(after.0.as_ms())
            .bind(after.1)
            .bind(limit_int(CANDIDATES))
            .fetch_all(&mut *self.conn)
            .await?;
            for row in &rows {
                let spot = read_spot(queue, row)?;
                if best.as_ref().is_some_and(|best| (best.claim_sla, best.lane) < (spot.first_sla, spot.lane)) {
                    return Ok(best);
                }
                after = (spot.first_sla, spot.lane);
                if let Some(head) = self.head_at(&spot).await?
                    && best.as_ref().is_none_or(|best| (head.claim_sla, head.lane) < (best.claim_sla, best.lane))
                {
                    best = Some(head);
                }
            }
            if rows.len() < CANDIDATES {
                return Ok(best);
            }
        }
    }

    /// The earliest claimable head of the first lane of a kind after that one.
    pub(super) async fn next_head(
        &mut self,
        queue: i64,
        kind: LaneKind,
        mut after: i64,
    ) -> Result<Option<Head>, StoreError> {
        loop {
            let rows = sqlx::query(
                "SELECT tenant, lane, kind, first_sla FROM cqs_place
                 WHERE queue = $1 AND kind = $2 AND first_sla IS NOT NULL AND NOT closed AND closed_until IS NULL
                    AND lane > $3
                 ORDER BY lane LIMIT $4",
            )
            .bind(queue_int(queue))
            .bind(kind.as_str())
            .bind(after)
            .bind(limit_int(CANDIDATES))
            .fetch_all(&mut *self.conn)
            .await?;
            for row in &rows {
                let spot = read_spot(queue, row)?;
                after = spot.lane;
                if let Some(head) = self.head_at(&spot).await? {
                    return Ok(Some(head));
                }
            }
            if rows.len() < CANDIDATES {
                return Ok(None);
            }
        }
    }

    /// The earliest claimable head of a lane in a queue.
    async fn head_at(&mut self, spot: &Spot) -> Result<Option<Head>, StoreError> {
        let Some(leased_labels) = self.room_at(spot).await? else { return Ok(None) };
        let mut best: Option<Head> = None;
        // No head lies before its place's mark; entries of heads that are gone do.
        let mut after: (i64, Option<StoreId>) = (spot.first_sla.as_ms().saturating_sub(1), None);
        let mut empty = true;
        loop {
            let rows = sqlx::query(
                "SELECT tenant, lane, store, claim_sla, label_sla, label_id, parent_sla, parent_id FROM cqs_head
                 WHERE tenant = $1 AND lane = $2 AND queue = $3 AND claim_sla IS NOT NULL AND (claim_sla, store) > ($4, $5)
                 ORDER BY claim_sla, store LIMIT $6",
            )
            .bind(spot.tenant.as_str())
            .bind(spot.lane)
            .bind(queue_int(spot.queue))
            .bind(after.0)
            .bind(store_text(after.1.as_ref()))
            .bind(limit_int(CANDIDATES))
            .fetch_all(&mut *self.conn)
            .await?;
            for row in &rows {
                let candidate = read_candidate(spot.queue, row)?;
                let (mark, store) = (candidate.claim_sla, candidate.key.store.clone());
                if best.as_ref().is_some_and(|best| (best.claim_sla, &best.store) < (mark, &store)) {
                    return Ok(best);
                }
                after = (mark.as_ms(), store);
                match self.look(&candidate, leased_labels).await? {
                    Look::Head(head) => {
                        empty = false;
                        if best
                            .as_ref()
                            .is_none_or(|best| (head.claim_sla, &head.store) < (best.claim_sla, &best.store))
                        {
                            best = Some(head);
                        }
                    }
                    Look::Later => empty = false,
                    Look::Empty => {}
                }
            }
            if rows.len() < CANDIDATES {
                if empty {
                    self.raise_place(&spot.tenant, (spot.queue, spot.lane)).await?;
                }
                return Ok(best);
            }
        }
    }

    /// How many labels of the lane are leased in the queue; none when its gate lets nothing be leased there now. Where a
    /// limit holds, one unit at a time leases: each must see what the one before leased.
    async fn room_at(&mut self, spot: &Spot) -> Result<Option<i64>, StoreError> {
        if spot.kind != LaneKind::Operation {
            return Ok(Some(0));
        }
        let Some(lane) = self.lane_find(spot.lane).await? else { return Ok(None) };
        let limits = lane.gate.limits;
        if lane.gate.closed {
            return Ok(None);
        }
        if limits.throttle_per_s.is_none() && limits.max_in_flight.is_none() {
            return Ok(Some(0));
        }
        if !self.try_lock(Lock::Parents(spot.queue, spot.lane)).await? {
            return Ok(None);
        }
        let (leased, closed): (i64, bool) = sqlx::query_as(
            "SELECT (SELECT count(*) FROM cqs_lease l JOIN cqs_leased r ON r.tenant = l.tenant AND r.lease = l.generation
                    WHERE l.tenant = $1 AND l.lane = $2 AND l.lane <> 0 AND l.queue = $3 AND NOT r.is_parent),
                EXISTS (SELECT 1 FROM cqs_place
                    WHERE tenant = $1 AND lane = $2 AND queue = $3 AND closed_until IS NOT NULL)",
        )
        .bind(spot.tenant.as_str())
        .bind(spot.lane)
        .bind(queue_int(spot.queue))
        .fetch_one(&mut *self.conn)
        .await?;
        let full = limits.max_in_flight.is_some_and(|most| leased >= most);
        Ok((!full && !closed).then_some(leased))
    }

    /// What can be claimed at a head now; its first rows are locked then, so that nobody else finds them.
    async fn look(&mut self, at: &Candidate, leased_labels: i64) -> Result<Look, StoreError> {
        if let Some(store) = &at.key.store
            && (!self.try_lock(Lock::Store(at.key.queue, &at.tenant, store)).await? || self.is_held(at, store).await?)
        {
            return Ok(Look::Later);
        }
        let label = match at.marks.labels {
            Some(mark) => self.first_row(at, RowKind::Label, mark).await?,
            None => None,
        };
        let mut closed = false;
        let parent = match at.marks.parents {
            Some(mark) if self.is_open(at).await? => self.first_row(at, RowKind::Parent, mark).await?,
            parents => {
                closed = parents.is_some();
                None
            }
        };
        let sla = |mark: Mark| Timestamp::from_ms(mark.sla);
        let (label_sla, parent_sla) = (label.map(sla), parent.map(sla));
        let Some(claim_sla) = label_sla.into_iter().chain(parent_sla).min() else {
            if closed {
                // Parents that have to wait are no reason to raise a mark.
                return Ok(Look::Later);
            }
            // Empty, it would be looked at again and again.
            let raised = self.raise(&at.tenant, &at.key).await?;
            return Ok(if raised { Look::Empty } else { Look::Later });
        };
        // A claim begins where this look got to, not at the mark again.
        self.marks.insert(at.key.clone(), Marks { labels: label, parents: parent });
        let (lane, store) = (at.key.lane, at.key.store.clone());
        Ok(Look::Head(Head { lane, store, claim_sla, label_sla, parent_sla, leased_labels }))
    }

    /// What would be claimable at a head, were its store not held; its first rows are locked then.
    pub(super) async fn held_head(&mut self, key: &HeadKey) -> Result<Option<Head>, StoreError> {
        let tenant = self.tenant_of_stored(key.lane).await?;
        let found = sqlx::query(
            "SELECT tenant, lane, store, claim_sla, label_sla, label_id, parent_sla, parent_id FROM cqs_head
             WHERE tenant = $1 AND lane = $2 AND queue = $3 AND store = $4 AND claim_sla IS NOT NULL",
        )
        .bind(tenant.as_str())
        .bind(key.lane)
        .bind(queue_int(key.queue))
        .bind(store_text(key.store.as_ref()))
        .fetch_optional(&mut *self.conn)
        .await?;
        let Some(row) = found else { return Ok(None) };
        let at = read_candidate(key.queue, &row)?;
        let labels = match at.marks.labels {
            Some(mark) => self.first_row(&at, RowKind::Label, mark).await?,
            None => None,
        };
        let parents = match at.marks.parents {
            Some(mark) if self.is_open(&at).await? => self.first_row(&at, RowKind::Parent, mark).await?,
            _ => None,
        };
        self.marks.insert(key.clone(), Marks { labels, parents });
        let sla = |mark: Mark| Timestamp::from_ms(mark.sla);
        let (label_sla, parent_sla) = (labels.map(sla), parents.map(sla));
        Ok(label_sla.into_iter().chain(parent_sla).min().map(|claim_sla| Head {
            lane: key.lane,
            store: key.store.clone(),
            claim_sla,
            label_sla,
            parent_sla,
            leased_labels: 0,
        }))
    }

    /// Whether a lease holds the store.
    async fn is_held(&mut self, at: &Candidate, store: &StoreId) -> Result<bool, StoreError> {
        Ok(sqlx::query_scalar(
            "SELECT EXISTS (SELECT 1 FROM cqs_lease WHERE tenant = $1 AND queue = $2 AND store = $3 AND store <> '')",
        )
        .bind(at.tenant.as_str())
        .bind(queue_int(at.key.queue))
        .bind(store.as_str())
        .fetch_one(&mut *self.conn)
        .await?)
    }

    async fn first_row(&mut self, at: &Candidate, kind: RowKind, mark: Mark) -> Result<Option<Mark>, StoreError> {
        let first: Option<(i64, i64)> = sqlx::query_as(
            "SELECT sla, id FROM cqs_waiting
             WHERE tenant = $1 AND lane = $2 AND queue = $3 AND store = $4 AND is_parent = $5 AND due_at IS NULL
                AND (sla, id) >= ($6, $7)
             ORDER BY sla, id LIMIT 1 FOR UPDATE SKIP LOCKED",
        )
        .bind(at.tenant.as_str())
        .bind(at.key.lane)
        .bind(queue_int(at.key.queue))
        .bind(store_text(at.key.store.as_ref()))
        .bind(kind == RowKind::Parent)
        .bind(mark.sla)
        .bind(mark.id)
        .fetch_optional(&mut *self.conn)
        .await?;
        Ok(first.map(|(sla, id)| Mark { sla, id }))
    }

    /// Whether a parent of the lane may be claimed: none is leased, few labels are ready, and nobody else is at it.
    async fn is_open(&mut self, at: &Candidate) -> Result<bool, StoreError> {
        if !self.try_lock(Lock::Parents(at.key.queue, at.key.lane)).await? {
            return Ok(false);
        }
        // In a lane without stores the mark is the lane's own, and counting begins there.
        let from = at.marks.labels.filter(|_| at.key.store.is_none()).unwrap_or(Mark::LOWEST);
        let (leased, ready): (bool, i64) = sqlx::query_as(
            "SELECT EXISTS (
                SELECT 1 FROM cqs_lease l JOIN cqs_leased r ON r.tenant = l.tenant AND r.lease = l.generation
                WHERE l.tenant = $1 AND l.lane = $2 AND l.lane <> 0 AND l.queue = $3 AND r.is_parent),
                (SELECT count(*) FROM (
                    SELECT 1 FROM cqs_waiting
                    WHERE tenant = $1 AND lane = $2 AND queue = $3 AND NOT is_parent AND due_at IS NULL
                        AND (sla, id) >= ($4, $5)
                    LIMIT $6) AS ready)",
        )
        .bind(at.tenant.as_str())
        .bind(at.key.lane)
        .bind(queue_int(at.key.queue))
        .bind(from.sla)
        .bind(from.id)
        .bind(limits::LANE_READY_MAX)
        .fetch_one(&mut *self.conn)
        .await?;
        Ok(!leased && ready < limits::LANE_READY_MAX)
    }

    /// Where the first row of a head lies that this unit looked at.
    pub(super) fn mark_of(&self, head: &HeadKey, kind: RowKind) -> Mark {
        self.marks.get(head).and_then(|marks| marks.of(kind)).unwrap_or(Mark::LOWEST)
    }
}

/// What a head holds now.
enum Look {
    /// Something to be claimed.
    Head(Head),
    /// Nothing that this unit may claim now.
    Later,
    /// Nothing.
    Empty,
}
