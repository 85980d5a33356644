-- The tables of incumbent, for PostgreSQL 13 and later.

-- Two processes that make them at once take turns.
SELECT pg_advisory_xact_lock(5282440815046917);

CREATE SCHEMA IF NOT EXISTS {schema};

-- One row a record. `stamp` is its version, `written` is for people alone. Beats change a row in
-- place as long as its page has room, so half of each page is left free.
CREATE TABLE IF NOT EXISTS {records} (
    cluster text COLLATE "C" NOT NULL,
    key     text COLLATE "C" NOT NULL,
    value   text COLLATE "C" NOT NULL,
    stamp   text COLLATE "C" NOT NULL,
    written timestamptz NOT NULL,
    PRIMARY KEY (cluster, key)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 500);

-- Says which format these tables have, so that an older program can tell that it is too old.
CREATE TABLE IF NOT EXISTS {meta} (
    name  text COLLATE "C" NOT NULL PRIMARY KEY,
    value integer NOT NULL
);

INSERT INTO {meta} (name, value) VALUES ('format', {format}) ON CONFLICT DO NOTHING;

-- For people. A record that is no JSON shows its key and nothing else.
CREATE OR REPLACE FUNCTION {json}(value text) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog AS $$
BEGIN
    RETURN value::jsonb;
EXCEPTION WHEN OTHERS THEN
    RETURN NULL;
END
$$;

CREATE OR REPLACE VIEW {leases} AS
SELECT cluster,
       coalesce(json ->> 'name', substr(key, 7)) AS name,
       CASE jsonb_typeof(json -> 'term') WHEN 'number' THEN (json -> 'term')::numeric END AS term,
       json -> 'holder' ->> 'node' AS holder,
       json -> 'holder' ->> 'member' AS member,
       json -> 'holder' ->> 'address' AS address,
       written AS changed,
       key,
       stamp
FROM (SELECT r.*, {json}(r.value) AS json FROM {records} r) record
WHERE key >= 'lease/' AND key < 'lease0';

CREATE OR REPLACE VIEW {members} AS
SELECT cluster,
       substr(key, 8) AS id,
       json ->> 'state' AS state,
       json ->> 'beat' AS beat,
       json ->> 'ttl_ms' AS ttl_ms,
       json ->> 'due_ms' AS due_ms,
       written AS seen,
       stamp
FROM (SELECT r.*, {json}(r.value) AS json FROM {records} r) record
WHERE key >= 'member/' AND key < 'member0';
