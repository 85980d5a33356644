-- The fence: a term asserted inside the application's own transaction.

-- Where the record of a name is. Bytes other than letters, digits, `_`, `-` and `/` are written as
-- `=` and two digits; a key past 200 bytes keeps its beginning and ends in a hash.
CREATE OR REPLACE FUNCTION {key}(kind text, name text) RETURNS text
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    bytes bytea := convert_to(name, 'UTF8');
    whole text := kind || name;
BEGIN
    IF name COLLATE "C" ~ '[^A-Za-z0-9_/-]' THEN
        SELECT kind || string_agg(
                   CASE WHEN chr(byte) COLLATE "C" ~ '[A-Za-z0-9_/-]' THEN chr(byte)
                        ELSE '=' || upper(lpad(to_hex(byte), 2, '0')) END, '' ORDER BY place)
        INTO whole
        FROM (SELECT place, get_byte(bytes, place) AS byte
              FROM generate_series(0, length(bytes) - 1) place) letters;
    END IF;
    IF length(whole) <= 200 THEN
        RETURN whole;
    END IF;
    -- No byte is cut in the middle of its digits.
    RETURN regexp_replace(left(whole, 166), '=.?$', '') || '=h'
        || left(encode(sha256(bytes), 'hex'), 32);
END
$$;

-- Run it once in the open transaction that does leader-only work, below no savepoint: the term
-- stands until that transaction ends, or this raises SQLSTATE IN001.
--
-- A take-over changes the lease's row, so that it waits for the lock taken here. Nothing is locked
-- for a term that is over or whose member's record is closed: otherwise many connections could keep
-- a successor out by asking without pause. What is read before the lock decides nothing else. Rows
-- are looked up by their keys, also by a plan that was made when the table was small.
CREATE OR REPLACE FUNCTION {assert}(cluster text, lease text, term bigint) RETURNS bigint
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
#variable_conflict use_variable
DECLARE
    rows_of text := cluster;
    place text := 'lease/' || lease;
    document json;
    found_term bigint;
    holder text;
    node text;
    locked_holder text;
    locked_term bigint;
    state text;
    ttl bigint;
    allowed text;
BEGIN
    IF octet_length(cluster) > 512 OR strpos(cluster, chr(8230) || 'sha256:') > 0 THEN
        SELECT left(cluster, max(letters)) || chr(8230) || 'sha256:'
               || encode(sha256(convert_to(cluster, 'UTF8')), 'hex')
        INTO rows_of
        FROM generate_series(0, 412) letters WHERE octet_length(left(cluster, letters)) <= 412;
    END IF;
    -- Most names need no more.
    IF octet_length(lease) > 194 OR lease COLLATE "C" ~ '[^A-Za-z0-9_/-]' THEN
        place := {key}('lease/', lease);
    END IF;
    SELECT r.value::json INTO document FROM {records} r WHERE r.cluster = rows_of AND r.key = place;
    found_term := (document ->> 'term')::bigint;
    holder := document -> 'holder' ->> 'member';
    node := document -> 'holder' ->> 'node';
    IF holder IS NOT NULL AND found_term = term THEN
        SELECT r.value::json INTO document FROM {records} r
        WHERE r.cluster = rows_of AND r.key = {key}('member/', holder);
        state := document ->> 'state';
        ttl := (document ->> 'ttl_ms')::bigint;
        IF state = 'alive' THEN
            SELECT r.value::json INTO document FROM {records} r
            WHERE r.cluster = rows_of AND r.key = place FOR SHARE;
            locked_term := (document ->> 'term')::bigint;
            locked_holder := document -> 'holder' ->> 'member';
            IF locked_term = term AND locked_holder = holder THEN
                -- A leader that hangs inside its transaction shall keep its successor out no longer
                -- than its own silence would.
                IF current_setting('incumbent.idle_timeout', true) IS DISTINCT FROM 'off' THEN
                    allowed := current_setting('idle_in_transaction_session_timeout');
                    IF allowed = '0' OR extract(epoch FROM allowed::interval) * 1000 > ttl THEN
                        PERFORM set_config('idle_in_transaction_session_timeout',
                                           least(ttl, 2147483647)::text, true);
                    END IF;
                END IF;
                RETURN term;
            END IF;
            found_term := locked_term;
            holder := locked_holder;
            node := document -> 'holder' ->> 'node';
            state := NULL;
        END IF;
    END IF;
    RAISE EXCEPTION USING
        ERRCODE = 'IN001',
        MESSAGE = format('incumbent: term %s of lease "%s" is over: found %s',
            coalesce(term::text, 'NULL'), coalesce(left(lease, 200), 'NULL'),
            CASE WHEN found_term IS NULL THEN 'no such lease'
                 WHEN holder IS NULL THEN format('term %s, held by nobody', found_term)
                 WHEN found_term = term
                 THEN format('term %s, held by "%s", whose membership is over', found_term, node)
                 ELSE format('term %s, held by "%s"', found_term, node) END),
        DETAIL = format('Cluster "%s".', coalesce(left(cluster, 200), 'NULL')),
        HINT = 'Roll back, and stop: somebody else may be doing this work.';
END
$$;

REVOKE ALL ON FUNCTION {assert}(text, text, bigint) FROM PUBLIC;

-- It has the rights of the tables' owner and never more, whoever makes it: otherwise that owner could
-- borrow a superuser's by putting something else in the tables' place.
DO $$
BEGIN
    EXECUTE format('ALTER FUNCTION {assert}(text, text, bigint) OWNER TO %I',
        (SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = '{records}'::regclass));
END
$$;

INSERT INTO {meta} (name, value) VALUES ('assert', {assert_version})
ON CONFLICT (name) DO UPDATE SET value = EXCLUDED.value;
