//! Invariants as queries. Each gives one text per violation.

/// Something that must hold.
pub(super) struct Invariant {
    /// What, in words.
    pub(super) name: &'static str,
    /// Finds what breaks it: one column, a text.
    pub(super) violations: &'static str,
}

/// All of them, cheapest first.
pub(super) const ALL: &[Invariant] = &[
    Invariant {
        name: "the file is sound",
        violations: "SELECT integrity_check FROM pragma_integrity_check WHERE integrity_check <> 'ok'",
    },
    Invariant {
        // Waiting, leased and failed are counted from the rows; done, coalesced and cancelled are the ledger's word, so
        // the equation ties it to what really lies in the queues. What waits in a cancelled lane was counted as cancelled.
        name: "enqueued = done + failed + coalesced + cancelled + waiting + leased, the last two and failed counted from rows",
        violations: "
            WITH ledger AS (
                SELECT lane, queue, is_parent, sum(enqueued) AS enqueued, sum(done) AS done, sum(unchanged) AS unchanged,
                    sum(failed) AS failed, sum(coalesced) AS coalesced, sum(cancelled) AS cancelled,
                    sum(waiting) AS waiting, sum(leased) AS leased
                FROM (
                    SELECT lane, queue, is_parent, enqueued, done, unchanged, failed, coalesced, cancelled, waiting, leased
                    FROM cqs_ledger
                    UNION ALL
                    SELECT lane, queue, is_parent, enqueued, done, unchanged, failed, coalesced, cancelled, waiting, leased
                    FROM cqs_ledger_delta)
                GROUP BY lane, queue, is_parent),
            rows AS (
                SELECT lane, queue, is_parent, sum(waits) AS waiting, sum(leased) AS leased, sum(dead) AS dead
                FROM (
                    SELECT lane, queue, is_parent, 1 AS waits, 0 AS leased, 0 AS dead FROM cqs_waiting
                    WHERE lane NOT IN (SELECT lane FROM cqs_lane WHERE cancelled_at IS NOT NULL)
                    UNION ALL
                    SELECT l.lane, l.queue, r.is_parent, 0, 1, 0
                    FROM cqs_leased r JOIN cqs_lease l ON l.generation = r.lease
                    UNION ALL
                    SELECT lane, queue, is_parent, 0, 0, 1 FROM cqs_dead)
                WHERE lane IN (SELECT lane FROM cqs_operation)
                GROUP BY lane, queue, is_parent)
            SELECT format('lane %d queue %d %s: ledger enqueued %d done %d unchanged %d failed %d coalesced %d cancelled %d waiting %d leased %d; rows waiting %d leased %d dead %d',
                lane, queue, iif(is_parent, 'parents', 'labels'), enqueued, done, unchanged, failed, coalesced, cancelled,
                ledger.waiting, ledger.leased, rows.waiting, rows.leased, dead)
            FROM ledger FULL JOIN rows USING (lane, queue, is_parent)
            WHERE coalesce(ledger.waiting, 0) <> coalesce(rows.waiting, 0)
                OR coalesce(ledger.leased, 0) <> coalesce(rows.leased, 0)
                OR coalesce(failed, 0) <> coalesce(dead, 0)
                OR coalesce(enqueued, 0) <> coalesce(done, 0) + coalesce(dead, 0) + coalesce(coalesced, 0)
                    + coalesce(cancelled, 0) + coalesce(rows.waiting, 0) + coalesce(rows.leased, 0)
                OR unchanged > done OR min(enqueued, done, unchanged, failed, coalesced, cancelled) < 0",
    },
    Invariant {
        // Of a cancelled lane the rows are removed, and the ledger's word is the only one.
        name: "as many labels are counted as handed over as there are rows that are",
        violations: "
            WITH ledger AS (
                SELECT lane, queue, is_parent, sum(handed_over) AS handed_over FROM (
                    SELECT lane, queue, is_parent, handed_over FROM cqs_ledger
                    UNION ALL SELECT lane, queue, is_parent, handed_over FROM cqs_ledger_delta)
                GROUP BY lane, queue, is_parent),
            rows AS (
                SELECT lane, queue, is_parent, count(*) AS found FROM (
                    SELECT lane, queue, is_parent FROM cqs_waiting WHERE handed_over = 1
                    UNION ALL
                    SELECT l.lane, l.queue, r.is_parent
                    FROM cqs_leased r JOIN cqs_lease l ON l.generation = r.lease WHERE r.handed_over = 1)
                WHERE lane IN (SELECT lane FROM cqs_operation)
                GROUP BY lane, queue, is_parent)
            SELECT format('lane %d queue %d %s: %s counted, %s found', lane, queue, iif(is_parent, 'parents', 'labels'),
                handed_over, found)
            FROM ledger FULL JOIN rows USING (lane, queue, is_parent)
            WHERE iif(lane IN (SELECT lane FROM cqs_lane WHERE cancelled_at IS NOT NULL),
                    coalesce(handed_over, 0) < coalesce(found, 0), coalesce(handed_over, 0) <> coalesce(found, 0))
                OR coalesce(iif(is_parent, found, 0), 0) > 0 OR coalesce(handed_over, 0) < 0",
    },
    Invariant {
        name: "what is confirmed by evidence was handled, and parents are not",
        violations: "
            SELECT format('lane %d queue %d %s: done %d, by evidence %d %d %d', lane, queue,
                iif(is_parent, 'parents', 'labels'), done, written, transferred, displayed)
            FROM (
                SELECT lane, queue, is_parent, sum(done) AS done, sum(written) AS written, sum(transferred) AS transferred,
                    sum(displayed) AS displayed
                FROM (
                    SELECT lane, queue, is_parent, done, written, transferred, displayed FROM cqs_ledger
                    UNION ALL
                    SELECT lane, queue, is_parent, done, written, transferred, displayed FROM cqs_ledger_delta)
                GROUP BY lane, queue, is_parent)
            WHERE written + transferred + displayed > iif(is_parent, 0, done) OR min(written, transferred, displayed) < 0",
    },
    Invariant {
        name: "as many failures are counted as handed over as there are that were",
        violations: "
            WITH ledger AS (
                SELECT lane, queue, is_parent, sum(failed_handed_over) AS counted FROM (
                    SELECT lane, queue, is_parent, failed_handed_over FROM cqs_ledger
                    UNION ALL SELECT lane, queue, is_parent, failed_handed_over FROM cqs_ledger_delta)
                GROUP BY lane, queue, is_parent),
            found AS (
                SELECT lane, queue, is_parent, sum(handed_over) AS found FROM cqs_dead
                WHERE lane IN (SELECT lane FROM cqs_operation) GROUP BY lane, queue, is_parent)
            SELECT format('lane %d queue %d %s: %s counted, %s found', lane, queue, iif(is_parent, 'parents', 'labels'),
                counted, found)
            FROM ledger FULL JOIN found USING (lane, queue, is_parent)
            WHERE coalesce(counted, 0) <> coalesce(found, 0) OR coalesce(iif(is_parent, found, 0), 0) > 0",
    },
    Invariant {
        name: "only operations have a ledger",
        violations: "
            SELECT format('lane %d', lane) FROM (SELECT lane FROM cqs_ledger UNION SELECT lane FROM cqs_ledger_delta)
            WHERE lane NOT IN (SELECT lane FROM cqs_operation)",
    },
    Invariant {
        name: "an operation has a lane of its tenant and tracking id, and one accepted entry in the audit log",
        violations: "
            SELECT format('%s %s', o.tenant, o.tracking_id) FROM cqs_operation o
            LEFT JOIN cqs_lane l ON l.lane = o.lane
            WHERE l.lane IS NULL OR l.kind <> 'operation' OR l.tenant <> o.tenant OR l.tracking_id <> o.tracking_id
                OR (SELECT count(*) FROM cqs_audit a
                    WHERE a.tenant = o.tenant AND a.tracking_id = o.tracking_id AND a.action IN ('SelfEnqueue', 'RetryFailures')
                        AND a.outcome = 'accepted') <> 1",
    },
    Invariant {
        name: "an operation is finished exactly when nothing of it waits, is leased, or is still to be moved into it",
        violations: "
            SELECT format('%s %s finished at %s', tenant, tracking_id, finished_at) FROM cqs_operation o
            WHERE (finished_at IS NOT NULL) <> (
                NOT EXISTS (SELECT 1 FROM cqs_waiting w JOIN cqs_lane l USING (lane)
                    WHERE w.lane = o.lane AND l.cancelled_at IS NULL)
                AND NOT EXISTS (SELECT 1 FROM cqs_leased r JOIN cqs_lease l ON l.generation = r.lease WHERE l.lane = o.lane)
                AND NOT EXISTS (SELECT 1 FROM cqs_retry t WHERE t.lane = o.lane AND t.done = 0))",
    },
    Invariant {
        name: "what still waits in a cancelled lane is being cleared, and was counted as cancelled",
        violations: "
            SELECT format('lane %d queue %d: %d rows, %d cancelled, clearing %d', lane, queue, rows, cancelled, clearing)
            FROM (
                SELECT w.lane, w.queue, w.is_parent, l.clearing, count(*) AS rows,
                    (SELECT coalesce(sum(cancelled), 0) FROM (
                        SELECT lane, queue, is_parent, cancelled FROM cqs_ledger
                        UNION ALL SELECT lane, queue, is_parent, cancelled FROM cqs_ledger_delta) c
                        WHERE c.lane = w.lane AND c.queue = w.queue AND c.is_parent = w.is_parent) AS cancelled
                FROM cqs_waiting w JOIN cqs_lane l USING (lane)
                WHERE l.cancelled_at IS NOT NULL GROUP BY w.lane, w.queue, w.is_parent)
            WHERE clearing = 0 OR rows > cancelled",
    },
    Invariant {
        name: "failures of operations are counted by cause, with those that a retry took over",
        violations: "
            WITH found AS (
                SELECT lane, queue, cause, count(*) AS failed, count(retried_by) AS retried, sum(handed_over) AS handed_over
                FROM cqs_dead
                WHERE lane IN (SELECT lane FROM cqs_operation) GROUP BY lane, queue, cause)
            SELECT format('lane %d queue %d %s: counted %s, %s, %s, found %s, %s, %s', lane, queue, cause, g.failed,
                g.retried, g.handed_over, f.failed, f.retried, f.handed_over)
            FROM cqs_dead_group g FULL JOIN found f USING (lane, queue, cause)
            WHERE (g.failed, g.retried, g.handed_over) IS NOT (f.failed, f.retried, f.handed_over)",
    },
    Invariant {
        name: "a retry took over as many failures as its rules say",
        violations: "
            WITH found AS (
                SELECT retried_by AS lane, queue, sum(is_parent = 0) AS labels, sum(is_parent) AS parents,
                    sum(handed_over) AS handed_over
                FROM cqs_dead WHERE retried_by IS NOT NULL GROUP BY retried_by, queue)
            SELECT format('lane %d queue %d: rule %s, %s, %s, found %s, %s, %s', lane, queue, r.labels, r.parents,
                r.handed_over, f.labels, f.parents, f.handed_over)
            FROM cqs_retry r FULL JOIN found f USING (lane, queue)
            WHERE (coalesce(r.labels, 0), coalesce(r.parents, 0), coalesce(r.handed_over, 0))
                IS NOT (coalesce(f.labels, 0), coalesce(f.parents, 0), coalesce(f.handed_over, 0))",
    },
    Invariant {
        name: "a lease holds items",
        violations: "
            SELECT format('lease %d', generation) FROM cqs_lease
            WHERE generation NOT IN (SELECT lease FROM cqs_leased)",
    },
    Invariant {
        name: "a leased item has its lease",
        violations: "
            SELECT format('item %d of lease %d', id, lease) FROM cqs_leased
            WHERE lease NOT IN (SELECT generation FROM cqs_lease)",
    },
    Invariant {
        name: "an item is in one place",
        violations: "
            SELECT format('item %d in %s', id, group_concat(place)) FROM (
                SELECT id, 'waiting' AS place FROM cqs_waiting
                UNION ALL SELECT id, 'leased' FROM cqs_leased
                UNION ALL SELECT row_id, 'dead' FROM cqs_dead)
            GROUP BY id HAVING count(*) > 1",
    },
    Invariant {
        name: "what waits in a lane of a queue is unique by type, URN and alias",
        violations: "
            SELECT format('%d of %s %s in lane %d of queue %d', count(*), dto_type, urn, lane, queue) FROM cqs_waiting
            GROUP BY queue, lane, dto_type, urn, alias HAVING count(*) > 1",
    },
    Invariant {
        name: "a parent is leased alone in its lane of a queue",
        violations: "
            SELECT format('lane %d of queue %d', l.lane, l.queue)
            FROM cqs_leased r JOIN cqs_lease l ON l.generation = r.lease WHERE r.is_parent = 1
            GROUP BY l.lane, l.queue HAVING count(*) > 1",
    },
    Invariant {
        name: "an item lies in a lane of its tenant and in a queue that exists",
        violations: "
            SELECT format('item %d, %s', id, urn) FROM (
                SELECT id, queue, lane, urn FROM cqs_waiting
                UNION ALL
                SELECT r.id, l.queue, l.lane, r.urn FROM cqs_leased r JOIN cqs_lease l ON l.generation = r.lease) item
            LEFT JOIN cqs_lane lane ON lane.lane = item.lane
            LEFT JOIN cqs_queue queue ON queue.queue = item.queue
            WHERE queue.queue IS NULL OR lane.lane IS NULL
                OR (urn <> 't/' || tenant AND substr(urn, 1, length(tenant) + 3) <> 't/' || tenant || '/')",
    },
    Invariant {
        name: "a tenant has one ordinary lane",
        violations: "
            SELECT tenant FROM cqs_lane WHERE kind = 'ordinary' GROUP BY tenant HAVING count(*) > 1",
    },
    Invariant {
        name: "one lease holds a store of an exclusive queue, and only its items",
        violations: "
            SELECT format('queue %d store %s', l.queue, l.store) FROM cqs_lease l
            JOIN cqs_queue q ON q.queue = l.queue
            WHERE q.exclusive_by_store = 1 AND l.store <> ''
            GROUP BY l.queue, l.store HAVING count(*) > 1
            UNION ALL
            SELECT format('lease %d of store %s holds %s', l.generation, l.store, r.urn) FROM cqs_leased r
            JOIN cqs_lease l ON l.generation = r.lease
            WHERE l.store <> '' AND r.urn NOT LIKE 't/%/s/' || l.store || '/%' AND r.urn NOT LIKE 't/%/s/' || l.store",
    },
    Invariant {
        name: "heads count what waits and is leased, and know what comes first",
        violations: "
            WITH found AS (
                SELECT queue, lane, store, sum(ready_label) AS ready_labels, sum(ready_parent) AS ready_parents,
                    sum(delayed) AS delayed, sum(leased_parent) AS leased_parents,
                    min(iif(ready_label, sla, NULL)) AS label_sla, min(iif(ready_parent, sla, NULL)) AS parent_sla
                FROM (
                    SELECT queue, lane, store, due_at IS NULL AND is_parent = 0 AS ready_label,
                        due_at IS NULL AND is_parent = 1 AS ready_parent, due_at IS NOT NULL AS delayed,
                        0 AS leased_parent, sla
                    FROM cqs_waiting
                    UNION ALL
                    SELECT l.queue, l.lane, l.store, 0, 0, 0, 1, NULL
                    FROM cqs_leased r JOIN cqs_lease l ON l.generation = r.lease WHERE r.is_parent = 1)
                GROUP BY queue, lane, store)
            SELECT format('queue %d lane %d store %s: head %s, rows %s', queue, lane, store,
                json_array(h.ready_labels, h.ready_parents, h.delayed, h.leased_parents, h.label_sla, h.parent_sla),
                json_array(f.ready_labels, f.ready_parents, f.delayed, f.leased_parents, f.label_sla, f.parent_sla))
            FROM cqs_head h FULL JOIN found f USING (queue, lane, store)
            WHERE (h.ready_labels, h.ready_parents, h.delayed, h.leased_parents) IS NOT
                    (f.ready_labels, f.ready_parents, f.delayed, f.leased_parents)
                OR h.label_sla IS NOT f.label_sla OR h.parent_sla IS NOT f.parent_sla",
    },
    Invariant {
        name: "a head is held exactly while a lease holds its store",
        violations: "
            SELECT format('queue %d lane %d store %s', queue, lane, store) FROM cqs_head h
            WHERE held <> EXISTS (
                SELECT 1 FROM cqs_lease l WHERE l.queue = h.queue AND l.store = h.store AND l.store <> '')",
    },
    Invariant {
        name: "alias counts are the entries",
        violations: "
            WITH entries AS (
                SELECT tenant, dto_type, alias, base, store, count(*) AS found FROM dto_alias
                GROUP BY tenant, dto_type, alias, base, store)
            SELECT format('%s %s %s %s %s: %d entries, %d counted', tenant, store, dto_type, alias, base, found, entries.entries)
            FROM (SELECT tenant, dto_type, alias, base, store, found, c.entries FROM entries
                FULL JOIN dto_alias_count c USING (tenant, dto_type, alias, base, store)) entries
            WHERE found IS NOT entries.entries",
    },
    Invariant {
        name: "what the exporter sends is what the merger chose",
        violations: "
            SELECT format('%s/%s/%s has a status and no picture that was ever merged', s.tenant, s.store, s.id)
            FROM dto s LEFT JOIN dto i ON i.tenant = s.tenant AND i.store = s.store AND i.id = s.id
                AND i.dto_type = 'eslimage.v1'
            WHERE s.dto_type = 'storeeslstatus.v1' AND s.payload IS NOT NULL AND i.id IS NULL",
    },
];
