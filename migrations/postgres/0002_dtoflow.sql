-- DTOflow: records, their alias index, and its counts. Keys lead with the tenant; times are milliseconds since 1970 UTC.

CREATE SEQUENCE dto_position;

-- One row per record ever written. A deleted record keeps its row (payload NULL), so that versions never go back.
CREATE TABLE dto (
    tenant      text COLLATE "C" NOT NULL,
    dto_type    text COLLATE "C" NOT NULL,
    store       text COLLATE "C" NOT NULL,         -- '' for a tenant-scoped record
    id          text COLLATE "C" NOT NULL,
    version     bigint  NOT NULL CHECK (version >= 1),
    updated_at  bigint  NOT NULL,                  -- when this version was written or last touched
    written_by  text    NOT NULL,                  -- 'svc:…', of this version
    tracking_id text,                              -- of this version's write
    aliases     text    NOT NULL,                  -- what dto_alias holds for it: JSON array of [alias, base]
    payload     bytea,                             -- NULL: deleted
    position    bigint  NOT NULL DEFAULT nextval('dto_position'),   -- the order in which a re-index walks
    PRIMARY KEY (tenant, dto_type, store, id)
);
CREATE INDEX dto_walk ON dto (position);
-- Pictures are compressed already.
ALTER TABLE dto ALTER COLUMN payload SET STORAGE EXTERNAL;

-- The alias index: a record found under a parent. The parent t/T/s/S/eccmodels/M has base 'eccmodels/M' and store S,
-- t/T/s/S has base ''. Tenant-scoped records have store ''.
CREATE TABLE dto_alias (
    tenant   text COLLATE "C" NOT NULL,
    dto_type text COLLATE "C" NOT NULL,
    alias    text COLLATE "C" NOT NULL,
    base     text COLLATE "C" NOT NULL,
    store    text COLLATE "C" NOT NULL,
    id       text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, dto_type, alias, base, store, id)
);

-- How many entries dto_alias has per parent, kept in the transaction of each write that changes an alias (a new record, a
-- deleted one, another model). Rows at zero are removed.
CREATE TABLE dto_alias_count (
    tenant   text COLLATE "C" NOT NULL,
    dto_type text COLLATE "C" NOT NULL,
    alias    text COLLATE "C" NOT NULL,
    base     text COLLATE "C" NOT NULL,
    store    text COLLATE "C" NOT NULL,
    entries  bigint NOT NULL CHECK (entries >= 0),
    PRIMARY KEY (tenant, dto_type, alias, base, store)
) WITH (fillfactor = 70);

-- Which alias rules the index follows, and how far a re-index under newer ones has come (position of dto done last).
CREATE TABLE dto_alias_rules (
    one     integer PRIMARY KEY CHECK (one = 1),
    version bigint NOT NULL,
    target  bigint NOT NULL,
    done    bigint NOT NULL
);
