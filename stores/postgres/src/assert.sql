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

-- Whatever changes or deletes a lease's row, by whichever program or hand, waits here until the
-- transactions that have asserted its term are over. Taken after the change and held until it is
-- committed: who gets the shared lock later sees it.
CREATE OR REPLACE FUNCTION {turn}() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(
        hashtextextended(OLD.cluster || '/' || OLD.key, TG_RELID::bigint));
    RETURN NULL;
END
$$;

-- The trigger of a former version stays as it is: to replace it, one would have to wait for every
-- transaction that has looked at the table, and everybody would wait behind. Always enabled, it is
-- run for changes that are replicated too.
DO $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM pg_catalog.pg_trigger
                   WHERE tgrelid = '{records}'::regclass AND tgname = 'incumbent_turn') THEN
        CREATE TRIGGER incumbent_turn AFTER UPDATE OR DELETE ON {records} FOR EACH ROW
        WHEN (OLD.key >= 'lease/' AND OLD.key < 'lease0') EXECUTE FUNCTION {turn}();
        ALTER TABLE {records} ENABLE ALWAYS TRIGGER incumbent_turn;
    END IF;
END
$$;

-- Whether that trigger is there and enabled, by a snapshot of its own: one that was taken before may
-- be older than a change of the trigger.
CREATE OR REPLACE FUNCTION {turns}() RETURNS boolean
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN EXISTS (SELECT 1 FROM pg_trigger WHERE tgrelid = '{records}'::regclass
                   AND tgname = 'incumbent_turn' AND tgenabled = 'A');
END
$$;

-- The same, asked when a plan is made and not at each execution: that is what IMMUTABLE is for here.
-- It holds because the server makes every plan that reads the table anew once a trigger of the table
-- was dropped, enabled or disabled.
CREATE OR REPLACE FUNCTION {turns_planned}() RETURNS boolean
LANGUAGE plpgsql IMMUTABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN {turns}();
END
$$;

-- Every case that the quick way below leaves to it, and the refusals. Where a transaction keeps one
-- snapshot, which may be older than the lock, or where the trigger is missing, the row itself is
-- locked: that fails if the row has changed since the snapshot, and a take-over has to change it.
-- Rows are looked up by their keys, also by a plan that was made when the table was small.
CREATE OR REPLACE FUNCTION {examine}(cluster text, lease text, term bigint) RETURNS bigint
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
#variable_conflict use_variable
DECLARE
    rows_of text := cluster;
    -- No name is that long, and to write out its key would take a while.
    place text := CASE WHEN octet_length(lease) <= 65536 THEN {key}('lease/', lease) END;
    fresh boolean;
    found record;
    locked jsonb;
    allowed text;
BEGIN
    -- A standby gives such locks too, and nobody there waits for them.
    IF pg_is_in_recovery() THEN
        RAISE EXCEPTION USING ERRCODE = 'read_only_sql_transaction',
            MESSAGE = 'incumbent: a term can''t be asserted on a standby: ask the primary';
    END IF;
    IF octet_length(cluster) > 512 OR strpos(cluster, chr(8230) || 'sha256:') > 0 THEN
        SELECT left(cluster, max(letters)) || chr(8230) || 'sha256:'
               || encode(sha256(convert_to(cluster, 'UTF8')), 'hex')
        INTO rows_of
        FROM generate_series(0, 412) letters WHERE octet_length(left(cluster, letters)) <= 412;
    END IF;
    IF current_setting('transaction_isolation') LIKE 'read %' THEN
        fresh := pg_advisory_xact_lock_shared(hashtextextended(
            (rows_of || '/' || place) COLLATE "C", '{records}'::regclass::oid::bigint)) IS NOT NULL;
    END IF;
    -- A statement of its own, which sees what is committed by now.
    SELECT (l.record ->> 'term')::bigint AS term, l.record -> 'holder' ->> 'member' AS holder,
           l.record -> 'holder' ->> 'node' AS node, m.record ->> 'state' AS state,
           (m.record ->> 'ttl_ms')::bigint AS ttl
    INTO found
    FROM (SELECT r.value::jsonb AS record FROM {records} r
          WHERE r.cluster = rows_of AND r.key = place OFFSET 0) l
    LEFT JOIN LATERAL (
        SELECT r.value::jsonb AS record FROM {records} r WHERE r.cluster = rows_of
        AND r.key = {key}('member/', l.record -> 'holder' ->> 'member') OFFSET 0) m ON true;
    IF found.term = term AND found.state = 'alive' AND (fresh AND {turns}()) IS NOT TRUE THEN
        SELECT r.value::jsonb INTO locked FROM {records} r
        WHERE r.cluster = rows_of AND r.key = place FOR SHARE;
        found.state := CASE WHEN locked -> 'holder' ->> 'member' = found.holder THEN 'alive' END;
        found.term := (locked ->> 'term')::bigint;
        found.holder := locked -> 'holder' ->> 'member';
        found.node := locked -> 'holder' ->> 'node';
    END IF;
    IF found.term = term AND found.state = 'alive' THEN
        IF current_setting('incumbent.idle_timeout', true) IS DISTINCT FROM 'off' THEN
            allowed := current_setting('idle_in_transaction_session_timeout');
            IF allowed = '0' OR extract(epoch FROM allowed::interval) * 1000 > found.ttl THEN
                allowed := set_config('idle_in_transaction_session_timeout',
                                      least(found.ttl, 2147483647)::text, true);
            END IF;
        END IF;
        RETURN term;
    END IF;
    RAISE EXCEPTION USING
        ERRCODE = 'IN001',
        MESSAGE = format('incumbent: term %s of lease "%s" is over: found %s',
            coalesce(term::text, 'NULL'), coalesce(left(lease, 200), 'NULL'),
            CASE WHEN found.term IS NULL THEN 'no such lease'
                 WHEN found.holder IS NULL THEN format('term %s, held by nobody', found.term)
                 ELSE format('term %s, held by "%s"%s', found.term, found.node,
                     CASE WHEN found.term = term THEN ', whose membership is over' END) END),
        DETAIL = format('Cluster "%s".', coalesce(left(cluster, 200), 'NULL')),
        HINT = 'Roll back, and stop: somebody else may be doing this work.';
END
$$;

-- Run it once in the open transaction that does leader-only work, below no savepoint: the term
-- stands until that transaction ends, or this raises SQLSTATE IN001.
--
-- The shared lock is what a take-over waits for, and what is read after it is what stands: under
-- READ COMMITTED each statement below sees all that was committed before it.
--
-- A member's record that is closed asserts nothing more: otherwise many connections could keep a
-- successor out. A leader that hangs inside its transaction shall keep its successor out no longer
-- than its own silence would, hence the setting.
--
-- This is the quick way, for what programs write and for names without rare letters. Statements and
-- the functions in them are few, because each costs in each transaction: no JSON is parsed, and no
-- letter of a name is looked at. Instead it guesses where the record is and how its text begins. A
-- key has no quotation marks, so what is found there can't be mistaken for another name or term;
-- whatever differs is left to the long way, which also says what is wrong. The stored name of a
-- cluster that was cut has at least 74 bytes.
CREATE OR REPLACE FUNCTION {assert}(cluster text, lease text, term bigint) RETURNS bigint
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
#variable_conflict use_variable
DECLARE
    place text := 'lease/' || replace(replace(lease, '.', '=2E'), ':', '=3A');
    ttl text;
BEGIN
    IF (CASE WHEN starts_with(current_setting('transaction_isolation'), 'read ')
             AND octet_length(cluster) < 74 AND NOT pg_is_in_recovery()
        THEN pg_advisory_xact_lock_shared(hashtextextended(
            (cluster || '/' || place) COLLATE "C", '{records}'::regclass::oid::bigint))
            IS NOT NULL END) THEN
        SELECT rtrim(split_part(split_part(m.value, '"ttl_ms":', 2), ',', 1), '}') INTO ttl
        FROM {records} r, {records} m
        WHERE r.cluster = cluster AND r.key = place AND starts_with(r.value,
            '{"format":1,"name":"' || lease || '","term":' || term || ',"holder":{"member":"')
        AND m.cluster = cluster AND m.key = 'member/' || split_part(r.value, '"', 14)
        AND starts_with(m.value, '{"format":1,"id":"' || split_part(r.value, '"', 14)
            || '","state":"alive","beat":') AND {turns_planned}();
        IF ttl IS NOT NULL THEN
            IF current_setting('idle_in_transaction_session_timeout') = '0'
                AND current_setting('incumbent.idle_timeout', true) IS DISTINCT FROM 'off' THEN
                ttl := set_config('idle_in_transaction_session_timeout', ttl, true);
            ELSIF current_setting('incumbent.idle_timeout', true) IS DISTINCT FROM 'off'
                AND extract(epoch FROM current_setting(
                    'idle_in_transaction_session_timeout')::interval) * 1000 > ttl::bigint THEN
                ttl := set_config('idle_in_transaction_session_timeout', ttl, true);
            END IF;
            RETURN term;
        END IF;
    END IF;
    RETURN {examine}(cluster, lease, term);
END
$$;

REVOKE ALL ON FUNCTION {examine}(text, text, bigint) FROM PUBLIC;
REVOKE ALL ON FUNCTION {assert}(text, text, bigint) FROM PUBLIC;

-- It has the rights of the tables' owner and never more, whoever makes it: otherwise that owner could
-- borrow a superuser's by putting something else in the tables' place. The others are the owner's
-- too, so that a later version can replace them.
DO $$
DECLARE
    owner name := (SELECT pg_get_userbyid(relowner) FROM pg_class
                   WHERE oid = '{records}'::regclass);
BEGIN
    EXECUTE format('ALTER FUNCTION {assert}(text, text, bigint) OWNER TO %I', owner);
    EXECUTE format('ALTER FUNCTION {key}(text, text) OWNER TO %I', owner);
    EXECUTE format('ALTER FUNCTION {turn}() OWNER TO %I', owner);
    EXECUTE format('ALTER FUNCTION {turns}() OWNER TO %I', owner);
    EXECUTE format('ALTER FUNCTION {turns_planned}() OWNER TO %I', owner);
    EXECUTE format('ALTER FUNCTION {examine}(text, text, bigint) OWNER TO %I', owner);
END
$$;

INSERT INTO {meta} (name, value) VALUES ('assert', {assert_version})
ON CONFLICT (name) DO UPDATE SET value = EXCLUDED.value;
