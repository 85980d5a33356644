//! A private Redis server, or the one that the environment names.

use std::time::Duration;

use incumbent_proving::server::{redis as private, with_parameter};
use redis::Value;

/// A prefix that no other test uses, on the server that the environment names or a shared one.
pub fn shared() -> String {
    with_parameter(&private::shared(), "prefix", &super::fresh())
}

incumbent_proving::own_server!();

impl Server {
    /// Starts one with these settings, as on its command line.
    pub fn start(settings: &[&str]) -> Self {
        Self(private::start(settings))
    }

    /// One that has every write on its disk before it answers.
    pub fn durable() -> Self {
        Self::start(&["--appendfsync", "always"])
    }

    pub fn url(&self) -> String {
        private::url(self)
    }

    /// Runs a command as an operator would.
    pub fn command(&self, words: &[&str]) -> Value {
        operator(&self.url(), words).expect("an answer")
    }

    /// Breaks all connections but the operator's.
    pub fn cut(&self) {
        for kind in ["normal", "pubsub"] {
            self.command(&["CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes"]);
        }
    }

    /// A number in the server's statistics.
    pub fn statistic(&self, section: &str, name: &str) -> u64 {
        let reply = self.command(&["INFO", section]);
        let text = match reply {
            Value::BulkString(bytes) => String::from_utf8(bytes).expect("text"),
            other => panic!("unexpected {other:?}"),
        };
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let digits = |text: &str| text.chars().take_while(char::is_ascii_digit).collect::<String>();
        let number = line.map(|line| digits(line.strip_prefix("calls=").unwrap_or(line)));
        number.and_then(|digits| digits.parse().ok()).unwrap_or(0)
    }
}

/// Runs a command on a connection of its own.
pub fn operator(url: &str, words: &[&str]) -> redis::RedisResult<Value> {
    let client = redis::Client::open(url)?;
    let mut connection = client.get_connection_with_timeout(Duration::from_secs(60))?;
    let (first, rest) = words.split_first().expect("a command");
    let command = redis::cmd(first).arg(rest).get_packed_command();
    redis::ConnectionLike::req_packed_command(&mut connection, &command)
}
