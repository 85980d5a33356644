//! What is set for a session, and what the server says about itself.

use std::time::Duration;

use crate::connection::{Row, text};

/// What matters about a server's settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    /// Whether an acknowledged commit survives the loss of power.
    pub(crate) durable: bool,
    pub(crate) read_only: bool,
    /// The largest packet that the server takes.
    pub(crate) packet: usize,
    /// Whether several servers take writes and agree on them when they commit.
    pub(crate) galera: bool,
}

/// All that is asked for.
const NAMES: [&str; 6] = [
    "innodb_flush_log_at_trx_commit",
    "log_bin",
    "max_allowed_packet",
    "read_only",
    "sync_binlog",
    "wsrep_on",
];

/// True where the server takes writes, even for users whom `read_only` doesn't bind (F20).
pub(crate) const WRITABLE: &str = "CONCAT(@@global.read_only) IN ('0', 'OFF')";

impl Settings {
    /// Let reads and writes of a Galera node wait for what others have committed already.
    pub(crate) const GALERA: &'static str = "SET SESSION wsrep_sync_wait = 7";

    /// The statements that make a session independent of the server's defaults.
    pub(crate) fn statements(timeout: Duration) -> Vec<String> {
        // What nobody waits for any more should end at the server too (F18). MySQL has this for
        // reads alone, under another name.
        let seconds = timeout.as_secs_f64();
        vec![
            "SET NAMES utf8mb4".to_owned(),
            // `wait_timeout` frees the connections of clients that vanished.
            format!(
                "SET SESSION autocommit = 1, innodb_lock_wait_timeout = 1, lock_wait_timeout = 1, \
                 wait_timeout = 600, \
                 sql_mode = 'STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION' \
                 /*M!100106 , max_statement_time = {seconds} */"
            ),
            "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED".to_owned(),
            "SET SESSION TRANSACTION READ WRITE".to_owned(),
        ]
    }

    /// The statement that asks for what [`Settings::read`] reads.
    pub(crate) fn question() -> String {
        format!("SHOW GLOBAL VARIABLES WHERE Variable_name IN ('{}')", NAMES.join("', '"))
    }

    /// What the server answered. A setting that it doesn't have isn't among the rows.
    pub(crate) fn read(rows: &[Row]) -> Self {
        let value = |name: &str| {
            let row = rows.iter().find(|row| text(row, 0).is_some_and(|is| is == name));
            row.and_then(|row| text(row, 1))
        };
        // A binary log is what decides after a crash which transactions are kept.
        let logged = value("log_bin").is_none_or(|log| !is_on(log))
            || value("sync_binlog").is_some_and(|sync| sync == "1");
        Self {
            durable: value("innodb_flush_log_at_trx_commit").is_some_and(|flush| flush == "1")
                && logged,
            read_only: value("read_only").is_some_and(is_on),
            packet: value("max_allowed_packet").and_then(|size| size.parse().ok()).unwrap_or(0),
            galera: value("wsrep_on").is_some_and(is_on),
        }
    }
}

/// Newer servers have more values than these two; anything but "off" is a restriction.
pub(crate) fn is_on(value: &str) -> bool {
    !matches!(value, "OFF" | "0")
}

#[cfg(test)]
mod tests {
    use super::*;
    use mysql_async::Value;

    fn settings(pairs: &[(&str, &str)]) -> Settings {
        let value = |text: &str| Value::Bytes(text.as_bytes().to_vec());
        let rows: Vec<Row> = pairs.iter().map(|(name, is)| vec![value(name), value(is)]).collect();
        Settings::read(&rows)
    }

    #[test]
    fn durable_is_what_survives_the_loss_of_power() {
        let flush = ("innodb_flush_log_at_trx_commit", "1");
        assert!(settings(&[flush, ("log_bin", "OFF"), ("sync_binlog", "0")]).durable);
        assert!(settings(&[flush, ("log_bin", "ON"), ("sync_binlog", "1")]).durable);
        assert!(!settings(&[flush, ("log_bin", "ON"), ("sync_binlog", "0")]).durable);
        let lazy = ("innodb_flush_log_at_trx_commit", "2");
        assert!(!settings(&[lazy, ("log_bin", "OFF")]).durable);
        assert!(!settings(&[]).durable);
    }

    #[test]
    fn every_kind_of_read_only_counts() {
        for (value, read_only) in [("OFF", false), ("0", false), ("ON", true), ("NO_LOCK", true)] {
            assert_eq!(settings(&[("read_only", value)]).read_only, read_only, "{value}");
        }
        assert!(!settings(&[("wsrep_on", "OFF")]).galera);
        assert_eq!(settings(&[("max_allowed_packet", "16777216")]).packet, 1 << 24);
    }
}
