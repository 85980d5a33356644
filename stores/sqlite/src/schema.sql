-- The tables of incumbent.

-- One row a record. `stamp` is its version, `written_ms` is for people alone.
CREATE TABLE IF NOT EXISTS {prefix}records (
    cluster    TEXT NOT NULL,
    key        TEXT NOT NULL,
    value      BLOB NOT NULL,
    stamp      TEXT NOT NULL,
    written_ms INTEGER NOT NULL,
    PRIMARY KEY (cluster, key)
) WITHOUT ROWID;

-- Counts the changes that others should be told of. Beats don't move it.
CREATE TABLE IF NOT EXISTS {prefix}hints (
    cluster TEXT NOT NULL PRIMARY KEY,
    counter INTEGER NOT NULL
) WITHOUT ROWID;

-- Says which format these tables have, so that an older program can tell that it is too old.
CREATE TABLE IF NOT EXISTS {prefix}meta (
    name  TEXT NOT NULL PRIMARY KEY,
    value INTEGER NOT NULL
) WITHOUT ROWID;

INSERT INTO {prefix}meta (name, value) VALUES ('format', {format}) ON CONFLICT DO NOTHING;

-- For people. A record that is no JSON shows its key and nothing else.
CREATE VIEW IF NOT EXISTS {prefix}leases AS
SELECT cluster,
       coalesce(json ->> '$.name', substr(key, 7)) AS name,
       json ->> '$.term' AS term,
       json ->> '$.holder.node' AS holder,
       json ->> '$.holder.member' AS member,
       json ->> '$.holder.address' AS address,
       datetime(written_ms / 1000, 'unixepoch') AS changed_utc,
       stamp
FROM (SELECT *, CASE WHEN json_valid(value) THEN value END AS json FROM {prefix}records)
WHERE key >= 'lease/' AND key < 'lease0';

CREATE VIEW IF NOT EXISTS {prefix}members AS
SELECT cluster,
       substr(key, 8) AS id,
       json ->> '$.state' AS state,
       json ->> '$.beat' AS beat,
       json ->> '$.ttl_ms' AS ttl_ms,
       json ->> '$.due_ms' AS due_ms,
       datetime(written_ms / 1000, 'unixepoch') AS seen_utc,
       stamp
FROM (SELECT *, CASE WHEN json_valid(value) THEN value END AS json FROM {prefix}records)
WHERE key >= 'member/' AND key < 'member0';
