-- Failures and their retries, where a record is, the audit chain, retention.

-- Why a row that came back from a lease waits; '' for others.
ALTER TABLE cqs_waiting ADD COLUMN cause text COLLATE "C" NOT NULL DEFAULT '';
-- Where a record is.
CREATE INDEX cqs_leased_urn ON cqs_leased (tenant, urn);

-- The lane of the operation that took the failure over; NULL: nobody did. The row stays: it did fail here.
ALTER TABLE cqs_dead ADD COLUMN retried_by bigint;
-- Failures of an operation are kept as long as the operation, others for a time of their own.
ALTER TABLE cqs_dead ADD COLUMN of_operation boolean NOT NULL DEFAULT false;
UPDATE cqs_dead d SET of_operation = true
WHERE EXISTS (SELECT 1 FROM cqs_operation o WHERE o.tenant = d.tenant AND o.lane = d.lane);
-- Listed and retried by lane, queue and age; with one cause by that, too.
CREATE INDEX cqs_dead_list ON cqs_dead (tenant, lane, queue, id);
DROP INDEX cqs_dead_cause;
CREATE INDEX cqs_dead_cause ON cqs_dead (tenant, lane, queue, cause, id);
CREATE INDEX cqs_dead_at ON cqs_dead (at) WHERE NOT of_operation;

-- Which failure left the mark; NULL where something else did.
ALTER TABLE cqs_undelivered ADD COLUMN dead bigint;
UPDATE cqs_undelivered u SET dead = last.id
FROM (SELECT tenant, queue, urn, dto_type, max(id) AS id FROM cqs_dead WHERE NOT is_parent
    GROUP BY tenant, queue, urn, dto_type) AS last
WHERE last.tenant = u.tenant AND last.queue = u.queue AND last.urn = u.urn AND last.dto_type = u.dto_type;

-- Failures of an operation by cause, counted as they come, so that reading an operation costs the same whatever failed.
CREATE TABLE cqs_dead_group (
    tenant     text COLLATE "C" NOT NULL,
    lane       bigint  NOT NULL,
    queue      integer NOT NULL,
    cause      text COLLATE "C" NOT NULL,
    failed     bigint  NOT NULL CHECK (failed > 0),
    retried    bigint  NOT NULL CHECK (retried BETWEEN 0 AND failed),
    sample_urn text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, lane, queue, cause)
) WITH (fillfactor = 70);
INSERT INTO cqs_dead_group (tenant, lane, queue, cause, failed, retried, sample_urn)
SELECT tenant, lane, queue, cause, count(*), 0, min(urn) FROM cqs_dead WHERE of_operation
GROUP BY tenant, lane, queue, cause;

-- "Move the failures of parent_lane in this queue, with this cause, up to this one, into lane": written when a retry is
-- accepted, one row per queue whatever their number, and carried out in bounded rounds.
CREATE TABLE cqs_retry (
    tenant             text COLLATE "C" NOT NULL,
    lane               bigint  NOT NULL,          -- the retry's
    queue              integer NOT NULL,
    parent_lane        bigint  NOT NULL,
    tracking_id        text    NOT NULL,          -- the retry's
    parent_tracking_id text    NOT NULL,
    cause              text COLLATE "C",          -- NULL: any
    up_to              bigint  NOT NULL,          -- last cqs_dead.id it covers
    position           bigint  NOT NULL,          -- last cqs_dead.id looked at
    labels             bigint  NOT NULL CHECK (labels >= 0),   -- moved so far
    parents            bigint  NOT NULL CHECK (parents >= 0),
    done               boolean NOT NULL,
    PRIMARY KEY (tenant, lane, queue)
);
CREATE INDEX cqs_retry_parent ON cqs_retry (tenant, parent_lane);
CREATE INDEX cqs_retry_pending ON cqs_retry (lane, queue) WHERE NOT done;

-- Retention.
CREATE INDEX cqs_operation_finished ON cqs_operation (finished_at) WHERE finished_at IS NOT NULL;

-- The audit chain. Entries from before it have no hash of their own; 'genesis' holds theirs together.
ALTER TABLE cqs_audit ADD COLUMN hash text NOT NULL DEFAULT '';
CREATE TABLE cqs_audit_anchor (
    kind text   PRIMARY KEY CHECK (kind IN ('genesis', 'cut')),
    id   bigint NOT NULL,                         -- of the last entry it stands for
    hash text   NOT NULL                          -- of the chain up to there
);
CREATE INDEX cqs_audit_actor ON cqs_audit (tenant, operator_subject, id);
CREATE INDEX cqs_audit_action ON cqs_audit (tenant, action, id);
-- Retention may delete what a cut stands for, and nothing else may be deleted.
CREATE FUNCTION cqs_audit_kept() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF NOT EXISTS (SELECT 1 FROM cqs_audit_anchor WHERE kind = 'cut' AND OLD.id <= id) THEN
        RAISE EXCEPTION 'cqs_audit is append-only';
    END IF;
    RETURN OLD;
END $$;
DROP TRIGGER cqs_audit_append_only ON cqs_audit;
CREATE TRIGGER cqs_audit_append_only BEFORE UPDATE ON cqs_audit FOR EACH ROW EXECUTE FUNCTION cqs_append_only();
CREATE TRIGGER cqs_audit_no_delete BEFORE DELETE ON cqs_audit FOR EACH ROW EXECUTE FUNCTION cqs_audit_kept();
