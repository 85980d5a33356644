-- The fence: a term asserted inside the application's own transaction.
--   INSERT INTO {prefix}assert (cluster, lease, term) VALUES ('billing', 'scheduler', 7)
-- fails unless that term is held. It writes nothing but takes the file's only write lock, so that a
-- take-over waits until the transaction ends. Then roll back: SQLite doesn't. Those of a former version
-- are replaced; this has to be run in one transaction.
DROP TRIGGER IF EXISTS {prefix}assert_insert;
DROP VIEW IF EXISTS {prefix}assert;
CREATE VIEW {prefix}assert AS
SELECT cluster, name AS lease, term FROM {prefix}leases WHERE holder IS NOT NULL;

-- The message is a literal, for libraries before 3.47 read no other. A name without
-- rare letters is looked up by its key. SQLite can't write the keys of others, nor the hashes in long
-- ones: there the letters before the first odd one lead to some keys, and the record's own name
-- decides.
CREATE TRIGGER {prefix}assert_insert INSTEAD OF INSERT ON {prefix}assert
BEGIN
    SELECT RAISE(ABORT, 'incumbent: the term is over')
    WHERE NOT EXISTS (
        SELECT 1 FROM {prefix}records r
        WHERE r.cluster = NEW.cluster
          AND r.key = 'lease/' || {escaped}
          AND {held}
    ) AND NOT EXISTS (
        SELECT 1 FROM {prefix}records r
        WHERE (NEW.lease GLOB '*[^-A-Za-z0-9_/{odd}]*' OR length(NEW.lease) > 60)
          AND r.cluster = NEW.cluster
          AND r.key >= 'lease/' || {lead}
          AND r.key < 'lease/' || {lead} || '~'
          AND {held}
    );
END;

INSERT INTO {prefix}meta (name, value) VALUES ('assert', {assert_version})
ON CONFLICT (name) DO UPDATE SET value = excluded.value;
