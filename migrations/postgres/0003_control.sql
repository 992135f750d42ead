-- Control of operations: pause, cancel, limits, hold, approval, the brake; and what the choice of a lane needs for them.

-- What the choice and the arrival of rows need of an operation's controls, beside the three columns that 0001 foresaw.
ALTER TABLE cqs_lane ADD COLUMN closed boolean NOT NULL DEFAULT false;      -- nothing is leased
ALTER TABLE cqs_lane ALTER COLUMN throttle_per_s TYPE bigint;
ALTER TABLE cqs_lane ADD COLUMN max_in_flight bigint CHECK (max_in_flight > 0);
ALTER TABLE cqs_lane ADD COLUMN stops boolean NOT NULL DEFAULT false;       -- has a failure budget
ALTER TABLE cqs_lane ADD COLUMN clearing boolean NOT NULL DEFAULT false;    -- cancelled, rows left
CREATE INDEX cqs_lane_clearing ON cqs_lane (lane) WHERE clearing;

-- A lane in a queue: what the choice goes over. Like a head, with a mark below which nothing is ready.
CREATE TABLE cqs_place (
    tenant        text COLLATE "C" NOT NULL,
    lane          bigint  NOT NULL,
    queue         integer NOT NULL,
    kind          text    NOT NULL CHECK (kind IN ('ordinary', 'operation', 'split')),
    first_sla     bigint,                         -- NULL: nothing is ready under any of its heads
    closed        boolean NOT NULL,               -- as the lane
    closed_until  bigint,                         -- a throttled lane leases nothing here until then
    waiting_since bigint,                         -- of an operation: since when something has waited here without a break
    PRIMARY KEY (tenant, lane, queue)
) WITH (fillfactor = 50);
CREATE INDEX cqs_place_first ON cqs_place (queue, kind, first_sla, lane)
    WHERE first_sla IS NOT NULL AND NOT closed AND closed_until IS NULL;
CREATE INDEX cqs_place_turn ON cqs_place (queue, kind, lane)
    WHERE first_sla IS NOT NULL AND NOT closed AND closed_until IS NULL;
CREATE INDEX cqs_place_opens ON cqs_place (queue, closed_until) WHERE closed_until IS NOT NULL;
ALTER TABLE cqs_place SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);

-- Heads are looked up in their places now.
DROP INDEX cqs_head_first;
DROP INDEX cqs_head_turn;
CREATE INDEX cqs_head_claim ON cqs_head (tenant, lane, queue, claim_sla, store) WHERE claim_sla IS NOT NULL;

INSERT INTO cqs_place (tenant, lane, queue, kind, first_sla, closed)
SELECT h.tenant, h.lane, h.queue, l.kind, min(h.claim_sla), false
FROM cqs_head h JOIN cqs_lane l ON l.tenant = h.tenant AND l.lane = h.lane
GROUP BY h.tenant, h.lane, h.queue, l.kind;

-- The controls of an operation: one row per operation, for people and for the steps; cqs_lane has what follows from it.
CREATE TABLE cqs_control (
    tenant              text COLLATE "C" NOT NULL,
    lane                bigint  NOT NULL,
    revision            bigint  NOT NULL,         -- grows with every change of this row
    -- As the request asked; part of its identity.
    asked_throttle      bigint CHECK (asked_throttle > 0),
    asked_in_flight     bigint CHECK (asked_in_flight > 0),
    stop_percent        bigint CHECK (stop_percent BETWEEN 0 AND 99),
    stop_sample         bigint CHECK (stop_sample > 0),
    plan_id             text    NOT NULL,         -- '' without a plan
    -- A person's pause.
    paused_at           bigint,
    paused_by           text    NOT NULL DEFAULT '',
    pause_reason        text    NOT NULL DEFAULT '',
    paused_until        bigint,
    -- The system's own.
    held_at             bigint,
    held_cause          text    NOT NULL DEFAULT '',
    -- Counts per queue from which the failure budget is measured (JSON [[queue, handled, failed], …]); set by a resume.
    stop_from           text    NOT NULL DEFAULT '[]',
    cancelled_at        bigint,
    cancelled_by        text    NOT NULL DEFAULT '',   -- '': the system
    cancel_reason       text    NOT NULL DEFAULT '',
    -- Limits as they hold.
    throttle_per_s      bigint CHECK (throttle_per_s > 0),
    max_in_flight       bigint CHECK (max_in_flight > 0),
    limited_at          bigint,                        -- NULL: as the request asked
    limited_by          text    NOT NULL DEFAULT '',
    limit_reason        text    NOT NULL DEFAULT '',
    limited_until       bigint,
    approval            text    NOT NULL DEFAULT 'none'
        CHECK (approval IN ('none', 'awaiting', 'approved', 'declined', 'expired')),
    approval_labels     bigint  NOT NULL DEFAULT 0,
    approval_expires_at bigint,
    decided_at          bigint,
    decided_by          text    NOT NULL DEFAULT '',
    decide_reason       text    NOT NULL DEFAULT '',
    -- The earliest of its ends that come by themselves: of a pause, of limits, of the wait for approval.
    ends_at             bigint,
    PRIMARY KEY (tenant, lane)
);
CREATE INDEX cqs_control_ends ON cqs_control (ends_at) WHERE ends_at IS NOT NULL;
INSERT INTO cqs_control (tenant, lane, revision, plan_id) SELECT tenant, lane, 0, '' FROM cqs_operation;

-- The one brake: while a row is here, nothing of any operation is leased.
CREATE TABLE cqs_brake (
    one    integer PRIMARY KEY CHECK (one = 1),
    at     bigint NOT NULL,
    by     text   NOT NULL,
    reason text   NOT NULL
);

-- How many changes were folded into a row: with the deltas not folded yet, the number of changes of these counts ever.
ALTER TABLE cqs_ledger ADD COLUMN changes bigint NOT NULL DEFAULT 0;

-- When a worker of the queue asked for work last; written at most every few seconds.
ALTER TABLE cqs_queue ADD COLUMN polled_at bigint;

-- Counts of running operations at moments of the last minutes, for rates.
CREATE TABLE cqs_pace (
    tenant text COLLATE "C" NOT NULL,
    lane   bigint  NOT NULL,
    queue  integer NOT NULL,
    at     bigint  NOT NULL,
    gone   bigint  NOT NULL,                      -- labels handled or failed by then
    PRIMARY KEY (tenant, lane, queue, at)
);
CREATE INDEX cqs_pace_at ON cqs_pace (at);
CREATE INDEX cqs_operation_running ON cqs_operation (lane) WHERE finished_at IS NULL;
