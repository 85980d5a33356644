-- The tables of incumbent, for MySQL 8 and MariaDB 10.6 and later.

-- One row a record. `stamp` is its version, `written` (UTC) is for people alone. Names are compared
-- byte by byte: no collation may take two of them for the same.
CREATE TABLE IF NOT EXISTS {records} (
    cluster VARBINARY(255) NOT NULL,
    `key`   VARBINARY(255) NOT NULL,
    value   LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    stamp   VARBINARY(64) NOT NULL,
    written DATETIME(6) NOT NULL,
    PRIMARY KEY (cluster, `key`)
) ENGINE = InnoDB;

-- Says which format these tables have, so that an older program can tell that it is too old.
CREATE TABLE IF NOT EXISTS {meta} (
    name  VARBINARY(32) NOT NULL PRIMARY KEY,
    value INT NOT NULL
) ENGINE = InnoDB;

INSERT IGNORE INTO {meta} (name, value) VALUES ('format', {format});

-- For people. A record that is no JSON shows its key and nothing else.
CREATE OR REPLACE SQL SECURITY INVOKER VIEW {leases} AS
SELECT CONVERT(cluster USING utf8mb4) AS cluster,
       COALESCE(IF(JSON_VALID(value), NULLIF(JSON_UNQUOTE(JSON_EXTRACT(value, '$.name')), 'null'), NULL),
                CONVERT(SUBSTR(`key`, 7) USING utf8mb4)) AS name,
       IF(JSON_VALID(value), CAST(JSON_UNQUOTE(JSON_EXTRACT(value, '$.term')) AS UNSIGNED), NULL) AS term,
       IF(JSON_VALID(value), NULLIF(JSON_UNQUOTE(JSON_EXTRACT(value, '$.holder.node')), 'null'), NULL) AS holder,
       IF(JSON_VALID(value), NULLIF(JSON_UNQUOTE(JSON_EXTRACT(value, '$.holder.member')), 'null'), NULL) AS member,
       IF(JSON_VALID(value), NULLIF(JSON_UNQUOTE(JSON_EXTRACT(value, '$.holder.address')), 'null'), NULL) AS address,
       written AS changed_utc,
       CONVERT(`key` USING utf8mb4) AS `key`,
       CONVERT(stamp USING utf8mb4) AS stamp
FROM {records}
WHERE `key` >= 'lease/' AND `key` < 'lease0';

CREATE OR REPLACE SQL SECURITY INVOKER VIEW {members} AS
SELECT CONVERT(cluster USING utf8mb4) AS cluster,
       CONVERT(SUBSTR(`key`, 8) USING utf8mb4) AS id,
       IF(JSON_VALID(value), NULLIF(JSON_UNQUOTE(JSON_EXTRACT(value, '$.state')), 'null'), NULL) AS state,
       IF(JSON_VALID(value), CAST(JSON_UNQUOTE(JSON_EXTRACT(value, '$.beat')) AS UNSIGNED), NULL) AS beat,
       IF(JSON_VALID(value), CAST(JSON_UNQUOTE(JSON_EXTRACT(value, '$.ttl_ms')) AS UNSIGNED), NULL) AS ttl_ms,
       IF(JSON_VALID(value), CAST(JSON_UNQUOTE(JSON_EXTRACT(value, '$.due_ms')) AS UNSIGNED), NULL) AS due_ms,
       written AS seen_utc,
       CONVERT(stamp USING utf8mb4) AS stamp
FROM {records}
WHERE `key` >= 'member/' AND `key` < 'member0';
