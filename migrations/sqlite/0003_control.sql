-- Control of operations: pause, cancel, limits, hold, approval, the brake; and what the choice of a lane needs for them.

-- What the choice and the arrival of rows need of an operation's controls, beside the three columns that 0001 foresaw.
ALTER TABLE cqs_lane ADD COLUMN closed INTEGER NOT NULL DEFAULT 0 CHECK (closed IN (0, 1));   -- nothing is leased
ALTER TABLE cqs_lane ADD COLUMN max_in_flight INTEGER CHECK (max_in_flight > 0);
ALTER TABLE cqs_lane ADD COLUMN stops INTEGER NOT NULL DEFAULT 0 CHECK (stops IN (0, 1));     -- has a failure budget
ALTER TABLE cqs_lane ADD COLUMN clearing INTEGER NOT NULL DEFAULT 0 CHECK (clearing IN (0, 1)); -- cancelled, rows left
CREATE INDEX cqs_lane_clearing ON cqs_lane (lane) WHERE clearing = 1;

-- A lane in a queue. The choice goes over these and never meets one that is closed, throttled for now or full: first_sla
-- is NULL then. A row is removed when nothing of the lane waits or is leased there and no throttle keeps it.
CREATE TABLE cqs_place (
    queue         INTEGER NOT NULL,
    lane          INTEGER NOT NULL,
    kind          TEXT    NOT NULL CHECK (kind IN ('ordinary', 'operation', 'split')),
    leased_labels INTEGER NOT NULL DEFAULT 0 CHECK (leased_labels >= 0),
    closed_until  INTEGER,                        -- a throttled lane leases nothing here until then
    waiting_since INTEGER,                        -- since when something has waited here without a break
    first_sla     INTEGER,                        -- of the earliest claimable head; NULL: nothing is to be leased now
    PRIMARY KEY (queue, lane)
) WITHOUT ROWID;
CREATE INDEX cqs_place_first ON cqs_place (queue, kind, first_sla, lane) WHERE first_sla IS NOT NULL;
CREATE INDEX cqs_place_turn ON cqs_place (queue, kind, lane) WHERE first_sla IS NOT NULL;
CREATE INDEX cqs_place_lane ON cqs_place (lane);
CREATE INDEX cqs_place_opens ON cqs_place (queue, closed_until) WHERE closed_until IS NOT NULL;

-- Heads are looked up in their places now.
DROP INDEX cqs_head_first;
DROP INDEX cqs_head_turn;
CREATE INDEX cqs_head_claim ON cqs_head (queue, lane, claim_sla, store) WHERE claim_sla IS NOT NULL;

INSERT INTO cqs_place (queue, lane, kind, leased_labels, first_sla)
SELECT p.queue, p.lane, l.kind,
    (SELECT count(*) FROM cqs_lease s JOIN cqs_leased r ON r.lease = s.generation
        WHERE s.queue = p.queue AND s.lane = p.lane AND r.is_parent = 0),
    (SELECT min(claim_sla) FROM cqs_head h WHERE h.queue = p.queue AND h.lane = p.lane)
FROM (SELECT queue, lane FROM cqs_head UNION SELECT queue, lane FROM cqs_lease) p
JOIN cqs_lane l ON l.lane = p.lane;

-- Deferred and backing-off rows of one lane: what a cancelled one leaves behind, and when the next comes due.
CREATE INDEX cqs_waiting_delayed_lane ON cqs_waiting (lane, queue, due_at) WHERE due_at IS NOT NULL;

-- The controls of an operation: one row per operation, for people and for the steps; cqs_lane has what follows from it.
CREATE TABLE cqs_control (
    lane                INTEGER PRIMARY KEY,
    revision            INTEGER NOT NULL,         -- grows with every change of this row
    -- As the request asked; part of its identity.
    asked_throttle      INTEGER CHECK (asked_throttle > 0),
    asked_in_flight     INTEGER CHECK (asked_in_flight > 0),
    stop_percent        INTEGER CHECK (stop_percent BETWEEN 0 AND 99),
    stop_sample         INTEGER CHECK (stop_sample > 0),
    plan_id             TEXT    NOT NULL,         -- '' without a plan
    -- A person's pause.
    paused_at           INTEGER,
    paused_by           TEXT    NOT NULL DEFAULT '',
    pause_reason        TEXT    NOT NULL DEFAULT '',
    paused_until        INTEGER,
    -- The system's own.
    held_at             INTEGER,
    held_cause          TEXT    NOT NULL DEFAULT '',
    -- Counts per queue from which the failure budget is measured (JSON [[queue, handled, failed], …]); set by a resume.
    stop_from           TEXT    NOT NULL DEFAULT '[]',
    cancelled_at        INTEGER,
    cancelled_by        TEXT    NOT NULL DEFAULT '',   -- '': the system
    cancel_reason       TEXT    NOT NULL DEFAULT '',
    -- Limits as they hold.
    throttle_per_s      INTEGER CHECK (throttle_per_s > 0),
    max_in_flight       INTEGER CHECK (max_in_flight > 0),
    limited_at          INTEGER,                       -- NULL: as the request asked
    limited_by          TEXT    NOT NULL DEFAULT '',
    limit_reason        TEXT    NOT NULL DEFAULT '',
    limited_until       INTEGER,
    approval            TEXT    NOT NULL DEFAULT 'none'
        CHECK (approval IN ('none', 'awaiting', 'approved', 'declined', 'expired')),
    approval_labels     INTEGER NOT NULL DEFAULT 0,
    approval_expires_at INTEGER,
    decided_at          INTEGER,
    decided_by          TEXT    NOT NULL DEFAULT '',
    decide_reason       TEXT    NOT NULL DEFAULT '',
    -- The earliest of its ends that come by themselves: of a pause, of limits, of the wait for approval.
    ends_at             INTEGER
);
CREATE INDEX cqs_control_ends ON cqs_control (ends_at) WHERE ends_at IS NOT NULL;
INSERT INTO cqs_control (lane, revision, plan_id) SELECT lane, 0, '' FROM cqs_operation;

-- The one brake: while a row is here, nothing of any operation is leased.
CREATE TABLE cqs_brake (
    one    INTEGER PRIMARY KEY CHECK (one = 1),
    at     INTEGER NOT NULL,
    by     TEXT    NOT NULL,
    reason TEXT    NOT NULL
);

-- How many changes were folded into a row: with the deltas not folded yet, the number of changes of these counts ever.
ALTER TABLE cqs_ledger ADD COLUMN changes INTEGER NOT NULL DEFAULT 0;

-- When a worker of the queue asked for work last; written at most every few seconds.
ALTER TABLE cqs_queue ADD COLUMN polled_at INTEGER;

-- Counts of running operations at moments of the last minutes, for rates.
CREATE TABLE cqs_pace (
    lane  INTEGER NOT NULL,
    queue INTEGER NOT NULL,
    at    INTEGER NOT NULL,
    gone  INTEGER NOT NULL,                       -- labels handled or failed by then
    PRIMARY KEY (lane, queue, at)
) WITHOUT ROWID;
CREATE INDEX cqs_pace_at ON cqs_pace (at);
CREATE INDEX cqs_operation_running ON cqs_operation (lane) WHERE finished_at IS NULL;
