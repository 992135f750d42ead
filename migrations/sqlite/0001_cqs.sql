-- CQS: queues, lanes and their heads, waiting and leased rows, the operation ledger, the dead letter, the audit log.
-- Times are milliseconds since 1970 UTC. '' stands for "none" in keys, which NULL would keep from being unique.
-- A row's tenant is its lane's (and the first segments of its URN), so no statement on rows needs it apart.

CREATE TABLE cqs_queue (
    queue              INTEGER PRIMARY KEY AUTOINCREMENT,
    name               TEXT    NOT NULL UNIQUE,
    subscriptions      TEXT    NOT NULL,          -- JSON array of DTO types
    shapes             TEXT    NOT NULL,          -- JSON array of [DTO type, alias name or '']
    exclusive_by_store INTEGER NOT NULL CHECK (exclusive_by_store IN (0, 1))
);

CREATE TABLE cqs_lane (
    lane           INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant         TEXT    NOT NULL,
    kind           TEXT    NOT NULL CHECK (kind IN ('ordinary', 'operation', 'split')),
    tracking_id    TEXT    NOT NULL,              -- '' in ordinary lanes
    created_at     INTEGER NOT NULL,
    paused_at      INTEGER,                       -- the three of the operations issue; NULL: not so
    throttle_per_s INTEGER CHECK (throttle_per_s > 0),
    cancelled_at   INTEGER
);
CREATE UNIQUE INDEX cqs_lane_ordinary ON cqs_lane (tenant) WHERE kind = 'ordinary';
CREATE INDEX cqs_lane_split ON cqs_lane (created_at) WHERE kind = 'split';

-- What is claimable first in one lane of one queue (of one store, where the queue is exclusive by store). A Dequeue
-- chooses among these and never meets a lane with nothing to claim. Rows at zero are removed.
CREATE TABLE cqs_head (
    queue          INTEGER NOT NULL,
    lane           INTEGER NOT NULL,
    store          TEXT    NOT NULL,              -- '' where the queue is not exclusive by store, or the row lies in none
    bulk           INTEGER NOT NULL CHECK (bulk IN (0, 1)),   -- an operation's or a split's lane
    ready_labels   INTEGER NOT NULL DEFAULT 0 CHECK (ready_labels >= 0),
    ready_parents  INTEGER NOT NULL DEFAULT 0 CHECK (ready_parents >= 0),
    delayed        INTEGER NOT NULL DEFAULT 0 CHECK (delayed >= 0),
    leased_parents INTEGER NOT NULL DEFAULT 0 CHECK (leased_parents >= 0),
    label_sla      INTEGER,                       -- of the first ready label
    parent_sla     INTEGER,                       -- of the first ready parent
    open           INTEGER NOT NULL DEFAULT 1 CHECK (open IN (0, 1)),  -- whether a parent of the lane may be claimed
    held           INTEGER NOT NULL DEFAULT 0 CHECK (held IN (0, 1)),  -- whether a lease holds the store
    claim_sla      INTEGER GENERATED ALWAYS AS (
        CASE
            WHEN held = 1 THEN NULL
            WHEN open = 0 OR parent_sla IS NULL THEN label_sla
            WHEN label_sla IS NULL THEN parent_sla
            ELSE min(label_sla, parent_sla)
        END
    ) VIRTUAL,
    PRIMARY KEY (queue, lane, store)
) WITHOUT ROWID;
CREATE INDEX cqs_head_first ON cqs_head (queue, bulk, claim_sla, lane, store) WHERE claim_sla IS NOT NULL;
CREATE INDEX cqs_head_turn ON cqs_head (queue, lane, claim_sla, store) WHERE bulk = 1 AND claim_sla IS NOT NULL;
CREATE INDEX cqs_head_store ON cqs_head (queue, store) WHERE store <> '';
CREATE INDEX cqs_head_lane ON cqs_head (lane);

-- Rows that wait: ready (due_at NULL), deferred or backing off. A rowid table, because leasing moves rows away by id and
-- the coalescing index then carries a short row id instead of a long key.
CREATE TABLE cqs_waiting (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    queue        INTEGER NOT NULL,
    lane         INTEGER NOT NULL,
    store        TEXT    NOT NULL,
    is_parent    INTEGER NOT NULL CHECK (is_parent IN (0, 1)),
    dto_type     TEXT    NOT NULL,
    urn          TEXT    NOT NULL,
    alias        TEXT    NOT NULL,                -- '' for records, and where the parent itself says it
    sla          INTEGER NOT NULL,
    tracking_id  TEXT    NOT NULL,
    attempts     INTEGER NOT NULL CHECK (attempts >= 0),
    due_at       INTEGER,
    alone        INTEGER NOT NULL CHECK (alone IN (0, 1)),
    lapses_alone INTEGER NOT NULL CHECK (lapses_alone >= 0),   -- not alone and 1: a restart ended its last lease
    cursor       TEXT    NOT NULL
);
-- The order of claiming; the row id stands last in it by itself.
CREATE INDEX cqs_waiting_ready ON cqs_waiting (queue, lane, store, is_parent, sla) WHERE due_at IS NULL;
CREATE INDEX cqs_waiting_delayed ON cqs_waiting (queue, due_at) WHERE due_at IS NOT NULL;
-- What coalesces; led by the URN, so that it also finds a record's rows in other lanes.
CREATE UNIQUE INDEX cqs_waiting_same ON cqs_waiting (urn, queue, lane, dto_type, alias);

CREATE TABLE cqs_lease (
    generation INTEGER PRIMARY KEY AUTOINCREMENT,
    queue      INTEGER NOT NULL,
    lane       INTEGER NOT NULL,
    store      TEXT    NOT NULL,
    owner      TEXT    NOT NULL,                  -- service name
    worker_id  TEXT    NOT NULL,
    expires_at INTEGER NOT NULL
);
CREATE INDEX cqs_lease_lapse ON cqs_lease (queue, expires_at);
CREATE INDEX cqs_lease_lane ON cqs_lease (lane);
CREATE UNIQUE INDEX cqs_lease_store ON cqs_lease (queue, store) WHERE store <> '';

-- Leased rows; queue, lane and store are the lease's.
CREATE TABLE cqs_leased (
    lease        INTEGER NOT NULL,
    id           INTEGER NOT NULL,
    is_parent    INTEGER NOT NULL,
    dto_type     TEXT    NOT NULL,
    urn          TEXT    NOT NULL,
    alias        TEXT    NOT NULL,
    sla          INTEGER NOT NULL,
    tracking_id  TEXT    NOT NULL,
    attempts     INTEGER NOT NULL,
    alone        INTEGER NOT NULL,
    lapses_alone INTEGER NOT NULL,
    cursor       TEXT    NOT NULL,
    PRIMARY KEY (lease, id)
) WITHOUT ROWID;

-- What ReEnqueue calls did, so that a repeated one does nothing. Pruned.
CREATE TABLE cqs_split (
    queue      INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    id         INTEGER NOT NULL,
    enqueued   INTEGER NOT NULL,
    coalesced  INTEGER NOT NULL,
    at         INTEGER NOT NULL,
    PRIMARY KEY (queue, generation, id)
) WITHOUT ROWID;
CREATE INDEX cqs_split_at ON cqs_split (at);

CREATE TABLE cqs_operation (
    id               INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant           TEXT    NOT NULL,
    tracking_id      TEXT    NOT NULL,
    lane             INTEGER NOT NULL UNIQUE,
    queue            TEXT    NOT NULL,            -- name of the queue it started in
    trigger_name     TEXT    NOT NULL,
    scope            TEXT    NOT NULL,            -- a URN, or ''
    reason           TEXT    NOT NULL,
    operator_subject TEXT    NOT NULL,
    accepted_at      INTEGER NOT NULL,
    sla              INTEGER NOT NULL,
    sla_chosen       INTEGER,                     -- NULL: a default
    items_digest     TEXT    NOT NULL,
    items_enqueued   INTEGER NOT NULL,
    finished_at      INTEGER,                     -- NULL: running
    UNIQUE (tenant, tracking_id)
);
CREATE INDEX cqs_operation_list ON cqs_operation (tenant, id);

-- Changes of an operation's counts, appended with what they count and folded into cqs_ledger by upkeep; a reading adds
-- both. Every single change keeps the equation.
CREATE TABLE cqs_ledger_delta (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    lane      INTEGER NOT NULL,
    queue     INTEGER NOT NULL,
    is_parent INTEGER NOT NULL,
    enqueued  INTEGER NOT NULL,
    done      INTEGER NOT NULL,
    unchanged INTEGER NOT NULL,
    failed    INTEGER NOT NULL,
    coalesced INTEGER NOT NULL,
    cancelled INTEGER NOT NULL,
    waiting   INTEGER NOT NULL,
    leased    INTEGER NOT NULL,
    CHECK (enqueued = done + failed + coalesced + cancelled + waiting + leased)
);
CREATE INDEX cqs_ledger_delta_lane ON cqs_ledger_delta (lane);
CREATE TRIGGER cqs_ledger_delta_append_only BEFORE UPDATE ON cqs_ledger_delta
BEGIN SELECT RAISE(ABORT, 'cqs_ledger_delta is append-only'); END;

CREATE TABLE cqs_ledger (
    lane      INTEGER NOT NULL,
    queue     INTEGER NOT NULL,
    is_parent INTEGER NOT NULL,
    enqueued  INTEGER NOT NULL,
    done      INTEGER NOT NULL,
    unchanged INTEGER NOT NULL,
    failed    INTEGER NOT NULL,
    coalesced INTEGER NOT NULL,
    cancelled INTEGER NOT NULL,
    waiting   INTEGER NOT NULL,
    leased    INTEGER NOT NULL,
    PRIMARY KEY (lane, queue, is_parent),
    CHECK (enqueued = done + failed + coalesced + cancelled + waiting + leased)
) WITHOUT ROWID;

-- Rows that will not be tried again.
CREATE TABLE cqs_dead (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    row_id      INTEGER NOT NULL,
    queue       INTEGER NOT NULL,
    lane        INTEGER NOT NULL,
    is_parent   INTEGER NOT NULL,
    dto_type    TEXT    NOT NULL,
    urn         TEXT    NOT NULL,
    alias       TEXT    NOT NULL,
    sla         INTEGER NOT NULL,
    tracking_id TEXT    NOT NULL,
    attempts    INTEGER NOT NULL,
    cursor      TEXT    NOT NULL,
    cause       TEXT    NOT NULL,
    at          INTEGER NOT NULL
);
CREATE INDEX cqs_dead_cause ON cqs_dead (lane, queue, cause);

-- Records whose last notification in a queue was not delivered. Cleared when a later one is.
CREATE TABLE cqs_undelivered (
    queue    INTEGER NOT NULL,
    urn      TEXT    NOT NULL,
    dto_type TEXT    NOT NULL,
    PRIMARY KEY (queue, urn, dto_type)
) WITHOUT ROWID;

CREATE TABLE cqs_audit (
    id               INTEGER PRIMARY KEY AUTOINCREMENT,
    at               INTEGER NOT NULL,
    service          TEXT    NOT NULL,            -- service name
    operator_subject TEXT    NOT NULL,
    tenant           TEXT    NOT NULL,            -- '' where none is known
    action           TEXT    NOT NULL,
    tracking_id      TEXT    NOT NULL,
    reason           TEXT    NOT NULL,
    request_digest   TEXT    NOT NULL,
    outcome          TEXT    NOT NULL CHECK (outcome IN ('accepted', 'replayed', 'refused')),
    error_code       TEXT    NOT NULL,
    detail           TEXT    NOT NULL
);
CREATE INDEX cqs_audit_list ON cqs_audit (tenant, id);
CREATE INDEX cqs_audit_tracking ON cqs_audit (tenant, tracking_id, id);
CREATE TRIGGER cqs_audit_no_update BEFORE UPDATE ON cqs_audit
BEGIN SELECT RAISE(ABORT, 'cqs_audit is append-only'); END;
CREATE TRIGGER cqs_audit_no_delete BEFORE DELETE ON cqs_audit
BEGIN SELECT RAISE(ABORT, 'cqs_audit is append-only'); END;
