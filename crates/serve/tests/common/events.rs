//! A reader of `GET /v1/events`.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use serde_json::Value;

use super::Server;

/// Server-sent events: name, id and data of each.
pub struct Events(BufReader<TcpStream>);

impl Events {
    pub fn open(server: &Server, last: Option<&str>) -> Self {
        Self::open_at(server, "/v1/events", last)
    }

    /// Those of another path: one that names a cluster.
    pub fn open_at(server: &Server, path: &str, last: Option<&str>) -> Self {
        let mut stream = TcpStream::connect(server.tcp).unwrap();
        let last = last.map(|id| format!("last-event-id: {id}\r\n")).unwrap_or_default();
        write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\n{last}\r\n").unwrap();
        Self(BufReader::new(stream))
    }

    /// The next one but for beats.
    pub fn next(&mut self) -> (String, String, Value) {
        let (mut id, mut name) = (String::new(), String::new());
        loop {
            let mut line = String::new();
            assert!(self.0.read_line(&mut line).unwrap() > 0, "the stream ended");
            let line = line.trim_end();
            if let Some(given) = line.strip_prefix("id: ") {
                id = given.to_owned();
            } else if let Some(given) = line.strip_prefix("event: ") {
                name = given.to_owned();
            } else if let Some(data) = line.strip_prefix("data: ")
                && name != "beat"
            {
                return (name, id, serde_json::from_str(data).unwrap());
            }
        }
    }

    pub fn until(&mut self, wanted: &str) -> (String, Value) {
        loop {
            let (name, id, data) = self.next();
            if name == wanted {
                return (id, data);
            }
        }
    }
}
