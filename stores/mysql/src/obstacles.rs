//! Who holds the lock that a write of ours waits for.

use std::time::Duration;

use incumbent_core::store::Obstacle;
use incumbent_store_common::Connect;

use crate::connection::{Row, text};
use crate::options::MysqlOptions;
use crate::session::MysqlConnect;

/// How long all of it may take.
const LONGEST: Duration = Duration::from_secs(5);

/// What is told of whoever is in front. Of a statement only its first word is taken, because the
/// rest may hold anything.
const HOLDER: &str = "t.trx_mysql_thread_id, p.user, p.host, p.command, \
     TIMESTAMPDIFF(SECOND, t.trx_started, NOW()), \
     UPPER(REGEXP_SUBSTR(t.trx_query, '^[A-Za-z]+'))";

/// In MariaDB a transaction that has only read has the number 0, as others may that have locked
/// nothing.
fn in_mariadb(options: &MysqlOptions) -> String {
    format!(
        "SELECT DISTINCT l.lock_data, {HOLDER} FROM information_schema.innodb_lock_waits w \
         JOIN information_schema.innodb_locks l ON l.lock_id = w.requested_lock_id \
         JOIN information_schema.innodb_trx t ON t.trx_id = w.blocking_trx_id \
         AND t.trx_rows_locked > 0 AND t.trx_state <> 'LOCK WAIT' \
         LEFT JOIN information_schema.processlist p ON p.id = t.trx_mysql_thread_id \
         WHERE l.lock_table = CONCAT('`', DATABASE(), '`.{}') LIMIT 16",
        options.names.records
    )
}

fn in_mysql(options: &MysqlOptions) -> String {
    format!(
        "SELECT DISTINCT l.lock_data, {HOLDER} FROM performance_schema.data_lock_waits w \
         JOIN performance_schema.data_locks l ON l.engine_lock_id = w.requesting_engine_lock_id \
         JOIN information_schema.innodb_trx t ON t.trx_id = w.blocking_engine_transaction_id \
         AND t.trx_state <> 'LOCK WAIT' \
         LEFT JOIN information_schema.processlist p ON p.id = t.trx_mysql_thread_id \
         WHERE l.object_schema = DATABASE() AND l.object_name = '{}records' LIMIT 16",
        options.names.prefix()
    )
}

/// Asks on a connection of its own, which is closed afterwards. A user without the right
/// `PROCESS` is told nothing.
pub(crate) async fn find(connect: &MysqlConnect) -> Vec<Obstacle> {
    let finding = async {
        let session = connect.connect().await.ok()?;
        let options = &connect.options;
        for question in [in_mariadb(options), in_mysql(options)] {
            if let Ok(rows) = session.run(&question).await {
                return Some(rows.iter().filter_map(obstacle).collect());
            }
        }
        None
    };
    tokio::time::timeout(LONGEST, finding).await.ok().flatten().unwrap_or_default()
}

fn obstacle(row: &Row) -> Option<Obstacle> {
    let mut holder = format!("connection {}", text(row, 1)?);
    if let Some(user) = text(row, 2) {
        holder += &format!(" (user {user} from {})", text(row, 3).unwrap_or("somewhere"));
    }
    // The server calls a session that is between two statements so.
    match text(row, 4) {
        Some("Sleep") => holder += ", idle in its transaction",
        Some(command) => holder += &format!(", state {command}"),
        None => {}
    }
    if let Some(seconds) = text(row, 5) {
        holder += &format!(", whose transaction has been open for {seconds} s");
    }
    if let Some(word) = text(row, 6).filter(|word| !word.is_empty()) {
        holder += &format!(", command {word}");
    }
    Some(Obstacle::new(text(row, 0).and_then(record), holder))
}

/// The cluster and the key in the server's words: `0x63, 0x6C656173652F78`.
fn record(data: &str) -> Option<(String, String)> {
    let (cluster, key) = data.split_once(", ")?;
    Some((decoded(cluster)?, decoded(key.split(", ").next()?)?))
}

fn decoded(field: &str) -> Option<String> {
    let digits = field.strip_prefix("0x")?.as_bytes();
    let bytes = digits.chunks(2).map(|pair| {
        let pair = std::str::from_utf8(pair).ok()?;
        u8::from_str_radix(pair, 16).ok()
    });
    String::from_utf8(bytes.collect::<Option<Vec<u8>>>()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_found_by_what_the_server_says_of_its_key() {
        let scheduler = "0x63, 0x6C656173652F7363686564756C6572";
        let expected = ("c".to_owned(), "lease/scheduler".to_owned());
        assert_eq!(record(scheduler), Some(expected));
        for nonsense in ["", "0x", "supremum pseudo-record", "0x6, 0xé", "0xff, 0x63", ", "] {
            assert_eq!(record(nonsense), None, "{nonsense}");
        }
    }
}
