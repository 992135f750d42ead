-- Which rows a lapsed lease had: where its holder turns out to live, the lapse is not held against them. Pruned.
CREATE TABLE cqs_lapse (
    generation INTEGER PRIMARY KEY,
    lane       INTEGER NOT NULL,
    ids        TEXT    NOT NULL,                  -- JSON array
    at         INTEGER NOT NULL
);
CREATE INDEX cqs_lapse_at ON cqs_lapse (at);
