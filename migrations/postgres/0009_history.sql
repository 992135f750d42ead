-- What is kept of a label's past: which picture it was to show, and how deliveries ended. Written with the records that tell
-- it; cut to a number of entries per label, and forgotten after a time, oldest first.
CREATE SEQUENCE dto_history_position;

CREATE TABLE dto_history (
    tenant       text COLLATE "C" NOT NULL,
    store        text COLLATE "C" NOT NULL,
    label        text COLLATE "C" NOT NULL,
    position     bigint  NOT NULL DEFAULT nextval('dto_history_position'),   -- only grows: the order of time
    at           bigint  NOT NULL,                -- milliseconds since 1970 UTC
    event        text    NOT NULL CHECK (event IN ('picture', 'removed', 'confirmed', 'failed', 'lost')),
    of_operation boolean NOT NULL,                -- tracking_id is an operation's
    written_by   text    NOT NULL,                -- 'svc:…'
    tracking_id  text,                            -- of the write
    old_digest   bytea   CHECK (length(old_digest) = 32),   -- NULL: none
    new_digest   bytea   CHECK (length(new_digest) = 32),   -- NULL: none
    evidence     integer NOT NULL,                -- as in records.v1.Evidence
    PRIMARY KEY (tenant, store, label, position)
);
-- The oldest.
CREATE INDEX dto_history_walk ON dto_history (position);
