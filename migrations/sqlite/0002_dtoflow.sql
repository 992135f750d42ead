-- DTOflow: records, their alias index, and its counts. Keys lead with the tenant; times are milliseconds since 1970 UTC.

-- One row per record ever written. A deleted record keeps its row (payload NULL), so that versions never go back.
-- A rowid table: payloads reach 320 KiB and would thin out a clustered key.
CREATE TABLE dto (
    tenant      TEXT    NOT NULL,
    dto_type    TEXT    NOT NULL,
    store       TEXT    NOT NULL,              -- '' for a tenant-scoped record
    id          TEXT    NOT NULL,
    version     INTEGER NOT NULL CHECK (version >= 1),
    updated_at  INTEGER NOT NULL,              -- when this version was written or last touched
    written_by  TEXT    NOT NULL,              -- 'svc:…', of this version
    tracking_id TEXT,                          -- of this version's write
    aliases     TEXT    NOT NULL,              -- what dto_alias holds for it: JSON array of [alias, base]
    payload     BLOB,                          -- NULL: deleted
    PRIMARY KEY (tenant, dto_type, store, id)
);

-- The alias index: a record found under a parent. The parent t/T/s/S/eccmodels/M has base 'eccmodels/M' and store S,
-- t/T/s/S has base ''. Tenant-scoped records have store ''.
CREATE TABLE dto_alias (
    tenant   TEXT NOT NULL,
    dto_type TEXT NOT NULL,
    alias    TEXT NOT NULL,
    base     TEXT NOT NULL,
    store    TEXT NOT NULL,
    id       TEXT NOT NULL,
    PRIMARY KEY (tenant, dto_type, alias, base, store, id)
) WITHOUT ROWID;

-- How many entries dto_alias has per parent, kept in the transaction of each write. Rows at zero are removed.
CREATE TABLE dto_alias_count (
    tenant   TEXT    NOT NULL,
    dto_type TEXT    NOT NULL,
    alias    TEXT    NOT NULL,
    base     TEXT    NOT NULL,
    store    TEXT    NOT NULL,
    entries  INTEGER NOT NULL CHECK (entries >= 0),
    PRIMARY KEY (tenant, dto_type, alias, base, store)
) WITHOUT ROWID;

-- Which alias rules the index follows, and how far a re-index under newer ones has come (rowid of dto done last).
CREATE TABLE dto_alias_rules (
    one     INTEGER PRIMARY KEY CHECK (one = 1),
    version INTEGER NOT NULL,
    target  INTEGER NOT NULL,
    done    INTEGER NOT NULL
);
