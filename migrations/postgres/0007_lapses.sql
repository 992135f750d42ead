-- Which rows a lapsed lease had: where its holder turns out to live, the lapse is not held against them. Pruned.
CREATE TABLE cqs_lapse (
    tenant     text COLLATE "C" NOT NULL,
    generation bigint   NOT NULL,
    lane       bigint   NOT NULL,
    ids        bigint[] NOT NULL,
    at         bigint   NOT NULL,
    PRIMARY KEY (tenant, generation)
);
CREATE INDEX cqs_lapse_at ON cqs_lapse (at);

-- Whether something of a lane waits delayed is asked from the far end, where what waits lies: what came due lies before,
-- and its entries stay while somebody holds an old snapshot.
CREATE INDEX cqs_waiting_delayed_until ON cqs_waiting (tenant, lane, due_at) WHERE due_at IS NOT NULL;
DROP INDEX cqs_waiting_delayed;
