-- Failures and their retries, where a record is, the audit chain, retention.

-- Why a row that came back from a lease waits; '' for others.
ALTER TABLE cqs_waiting ADD COLUMN cause TEXT NOT NULL DEFAULT '';
-- Where a record is.
CREATE INDEX cqs_leased_urn ON cqs_leased (urn);

-- The lane of the operation that took the failure over; NULL: nobody did. The row stays: it did fail here.
ALTER TABLE cqs_dead ADD COLUMN retried_by INTEGER;
-- Failures of an operation are kept as long as the operation, others for a time of their own.
ALTER TABLE cqs_dead ADD COLUMN of_operation INTEGER NOT NULL DEFAULT 0 CHECK (of_operation IN (0, 1));
UPDATE cqs_dead SET of_operation = 1 WHERE lane IN (SELECT lane FROM cqs_operation);
-- Listed and retried by lane, queue and, as the row id stands last in an index by itself, age.
CREATE INDEX cqs_dead_list ON cqs_dead (lane, queue);
CREATE INDEX cqs_dead_at ON cqs_dead (at) WHERE of_operation = 0;

-- Which failure left the mark; NULL where something else did.
ALTER TABLE cqs_undelivered ADD COLUMN dead INTEGER;
UPDATE cqs_undelivered SET dead = last.id
FROM (SELECT queue, urn, dto_type, max(id) AS id FROM cqs_dead WHERE is_parent = 0 GROUP BY queue, urn, dto_type) last
WHERE last.queue = cqs_undelivered.queue AND last.urn = cqs_undelivered.urn AND last.dto_type = cqs_undelivered.dto_type;

-- Failures of an operation by cause, counted as they come, so that reading an operation costs the same whatever failed.
CREATE TABLE cqs_dead_group (
    lane       INTEGER NOT NULL,
    queue      INTEGER NOT NULL,
    cause      TEXT    NOT NULL,
    failed     INTEGER NOT NULL CHECK (failed > 0),
    retried    INTEGER NOT NULL CHECK (retried BETWEEN 0 AND failed),
    sample_urn TEXT    NOT NULL,
    PRIMARY KEY (lane, queue, cause)
) WITHOUT ROWID;
INSERT INTO cqs_dead_group (lane, queue, cause, failed, retried, sample_urn)
SELECT lane, queue, cause, count(*), 0, min(urn) FROM cqs_dead
WHERE lane IN (SELECT lane FROM cqs_operation) GROUP BY lane, queue, cause;

-- "Move the failures of parent_lane in this queue, with this cause, up to this one, into lane": written when a retry is
-- accepted, one row per queue whatever their number, and carried out in bounded rounds.
CREATE TABLE cqs_retry (
    lane               INTEGER NOT NULL,          -- the retry's
    queue              INTEGER NOT NULL,
    parent_lane        INTEGER NOT NULL,
    tracking_id        TEXT    NOT NULL,          -- the retry's
    parent_tracking_id TEXT    NOT NULL,
    cause              TEXT,                      -- NULL: any
    up_to              INTEGER NOT NULL,          -- last cqs_dead.id it covers
    position           INTEGER NOT NULL,          -- last cqs_dead.id looked at
    labels             INTEGER NOT NULL CHECK (labels >= 0),   -- moved so far
    parents            INTEGER NOT NULL CHECK (parents >= 0),
    done               INTEGER NOT NULL CHECK (done IN (0, 1)),
    PRIMARY KEY (lane, queue)
) WITHOUT ROWID;
CREATE INDEX cqs_retry_parent ON cqs_retry (parent_lane);
CREATE INDEX cqs_retry_pending ON cqs_retry (lane, queue) WHERE done = 0;

-- Retention.
CREATE INDEX cqs_operation_finished ON cqs_operation (finished_at) WHERE finished_at IS NOT NULL;

-- The audit chain. Entries from before it have no hash of their own; 'genesis' holds theirs together.
ALTER TABLE cqs_audit ADD COLUMN hash TEXT NOT NULL DEFAULT '';
CREATE TABLE cqs_audit_anchor (
    kind TEXT    PRIMARY KEY CHECK (kind IN ('genesis', 'cut')),
    id   INTEGER NOT NULL,                        -- of the last entry it stands for
    hash TEXT    NOT NULL                         -- of the chain up to there
) WITHOUT ROWID;
CREATE INDEX cqs_audit_actor ON cqs_audit (tenant, operator_subject, id);
CREATE INDEX cqs_audit_action ON cqs_audit (tenant, action, id);
-- Retention may delete what a cut stands for, and nothing else may be deleted.
DROP TRIGGER cqs_audit_no_delete;
CREATE TRIGGER cqs_audit_no_delete BEFORE DELETE ON cqs_audit
WHEN NOT EXISTS (SELECT 1 FROM cqs_audit_anchor WHERE kind = 'cut' AND OLD.id <= id)
BEGIN SELECT RAISE(ABORT, 'cqs_audit is append-only'); END;
