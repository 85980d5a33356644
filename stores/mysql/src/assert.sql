-- The fence: a term asserted inside the application's own transaction. Procedures, because servers
-- with a binary log let only few users make functions.

-- Where the record of a name is. Bytes other than letters, digits, `_`, `-` and `/` are written as
-- `=` and two digits; a key past 200 bytes keeps its beginning and ends in a hash.
CREATE PROCEDURE IF NOT EXISTS {key}(
    IN kind VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    IN name LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    OUT place VARBINARY(255))
SQL SECURITY DEFINER NO SQL
BEGIN
    DECLARE raw LONGBLOB DEFAULT CAST(name AS BINARY);
    DECLARE whole LONGBLOB DEFAULT CAST(kind AS BINARY);
    DECLARE position INT DEFAULT 1;
    DECLARE code INT;
    IF name NOT REGEXP '[^A-Za-z0-9_/-]' THEN
        SET whole = CONCAT(whole, raw);
    ELSE
        WHILE position <= LENGTH(raw) AND LENGTH(whole) <= 200 DO
            SET code = ASCII(SUBSTRING(raw, position, 1));
            IF code BETWEEN 97 AND 122 OR code BETWEEN 65 AND 90 OR code BETWEEN 47 AND 57
                OR code IN (45, 95) THEN
                SET whole = CONCAT(whole, SUBSTRING(raw, position, 1));
            ELSE
                SET whole = CONCAT(whole, '=', HEX(SUBSTRING(raw, position, 1)));
            END IF;
            SET position = position + 1;
        END WHILE;
    END IF;
    IF LENGTH(whole) > 200 THEN
        -- No byte is cut in the middle of its digits.
        SET position = CASE WHEN SUBSTRING(whole, 166, 1) = '=' THEN 165
                            WHEN SUBSTRING(whole, 165, 1) = '=' THEN 164 ELSE 166 END;
        SET whole = CONCAT(LEFT(whole, position), '=h', LEFT(SHA2(raw, 256), 32));
    END IF;
    SET place = whole;
END;

-- Call it once in the open transaction that does leader-only work, below no savepoint: the term
-- stands until that transaction ends, or this fails with SQLSTATE IN001. Then roll back: the server
-- doesn't.
--
-- A take-over changes the lease's row, so that it waits for the lock taken here. Nothing is locked
-- for a term that is over or whose member's record is closed. What is read before the lock decides
-- nothing else; under SERIALIZABLE it would lock the member's record and hold up its beats, so that
-- the record isn't looked at there.
--
-- XA PREPARE drops shared locks, and a restart of the server those of rows that were only read, so that
-- nothing is asserted in an XA transaction (SQLSTATE IN002). Nothing tells whether there is one but the
-- error for ending another one: 1397 inside of one, 1399 outside. MariaDB alone reads that part.
CREATE PROCEDURE IF NOT EXISTS {assert}(
    IN asked_cluster LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    IN asked_lease LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    IN asked_term BIGINT)
SQL SECURITY DEFINER READS SQL DATA COMMENT 'version {assert_version}'
BEGIN
    DECLARE rows_of VARBINARY(255);
    DECLARE place VARBINARY(255);
    DECLARE document LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
    DECLARE found_term BIGINT;
    DECLARE holder TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
    DECLARE member_place VARBINARY(255);
    DECLARE member_state VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT 'alive';
    DECLARE letters INT DEFAULT 181;
    DECLARE held BOOLEAN DEFAULT FALSE;
    DECLARE said TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
    DECLARE in_xa BOOLEAN DEFAULT FALSE;
    IF LENGTH(asked_cluster) > 255
        OR LOCATE(CONCAT(_utf8mb4 x'E280A6', 'sha256:'), asked_cluster) > 0 THEN
        WHILE LENGTH(LEFT(asked_cluster, letters)) > 181 DO
            SET letters = letters - 1;
        END WHILE;
        SET rows_of = CAST(CONCAT(LEFT(asked_cluster, letters), _utf8mb4 x'E280A6', 'sha256:',
                                  SHA2(CAST(asked_cluster AS BINARY), 256)) AS BINARY);
    ELSE
        SET rows_of = CAST(asked_cluster AS BINARY);
    END IF;
    CALL {key}('lease/', asked_lease, place);
    SELECT value INTO document FROM {records} WHERE cluster = rows_of AND `key` = place;
    SET found_term = CAST(JSON_UNQUOTE(JSON_EXTRACT(document, '$.term')) AS SIGNED);
    SET holder = JSON_UNQUOTE(JSON_EXTRACT(document, '$.holder.member'));
    IF holder IS NOT NULL AND found_term = asked_term THEN
        IF /*M!100000 @@tx_isolation */ /*!80000 @@transaction_isolation */ <> 'SERIALIZABLE' THEN
            SET member_state = 'gone';
            CALL {key}('member/', holder, member_place);
            SELECT JSON_UNQUOTE(JSON_EXTRACT(value, '$.state')) INTO member_state FROM {records}
            WHERE cluster = rows_of AND `key` = member_place;
        END IF;
        IF member_state = 'alive' THEN
            /*M!100000 BEGIN
                DECLARE CONTINUE HANDLER FOR 1397 SET in_xa = TRUE;
                DECLARE CONTINUE HANDLER FOR 1399 SET in_xa = FALSE;
                XA END 'incumbent', 'of nobody', 528244081;
            END; */
            IF in_xa THEN
                SIGNAL SQLSTATE 'IN002' SET MESSAGE_TEXT =
                    'incumbent: no term can be asserted in an XA transaction: its locks don''t last';
            END IF;
            -- A SELECT that finds no row leaves a variable as it is.
            SET document = NULL;
            SELECT value INTO document FROM {records} WHERE cluster = rows_of AND `key` = place
            LOCK IN SHARE MODE;
            SET found_term = CAST(JSON_UNQUOTE(JSON_EXTRACT(document, '$.term')) AS SIGNED);
            SET held = found_term = asked_term
                AND holder = JSON_UNQUOTE(JSON_EXTRACT(document, '$.holder.member'));
        END IF;
    END IF;
    IF held IS NOT TRUE THEN
        -- MySQL takes 128 characters.
        SET said = CONCAT('incumbent: term ', IFNULL(asked_term, 'NULL'), ' of lease "',
            LEFT(IFNULL(asked_lease, 'NULL'), 30), '" is over: found ',
            CASE WHEN found_term IS NULL THEN 'no such lease'
                 WHEN JSON_EXTRACT(document, '$.holder.member') IS NULL
                 THEN CONCAT('term ', found_term, ', held by nobody')
                 ELSE CONCAT('term ', found_term, ', held by "',
                     LEFT(JSON_UNQUOTE(JSON_EXTRACT(document, '$.holder.node')), 30), '"',
                     IF(member_state <> 'alive', ', whose membership is over', '')) END);
        SET said = LEFT(said, 128);
        SIGNAL SQLSTATE 'IN001' SET MESSAGE_TEXT = said;
    END IF;
END;
