-- What is kept of a label's past: which picture it was to show, and how deliveries ended. Written with the records that tell
-- it; cut to a number of entries per label, and forgotten after a time, oldest first.
CREATE TABLE dto_history (
    position     INTEGER PRIMARY KEY,             -- only grows: the order of time
    tenant       TEXT    NOT NULL,
    store        TEXT    NOT NULL,
    label        TEXT    NOT NULL,
    at           INTEGER NOT NULL,                -- milliseconds since 1970 UTC
    event        TEXT    NOT NULL CHECK (event IN ('picture', 'removed', 'confirmed', 'failed', 'lost')),
    of_operation INTEGER NOT NULL CHECK (of_operation IN (0, 1)),   -- tracking_id is an operation's
    written_by   TEXT    NOT NULL,                -- 'svc:…'
    tracking_id  TEXT,                            -- of the write
    old_digest   BLOB    CHECK (length(old_digest) = 32),   -- NULL: none
    new_digest   BLOB    CHECK (length(new_digest) = 32),   -- NULL: none
    evidence     INTEGER NOT NULL                 -- as in records.v1.Evidence
);
-- A label's entries; the row id stands last in an index by itself.
CREATE INDEX dto_history_label ON dto_history (tenant, store, label);
