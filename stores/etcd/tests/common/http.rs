//! The little HTTP that tests need to look at a server from outside.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// The body of an answer, or nothing if none came.
pub fn get(port: u16, path: &str) -> Option<String> {
    ask(port, &format!("GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n"))
}

/// Sends JSON to etcd's gateway, which must take it.
pub fn post(port: u16, path: &str, json: &str) -> String {
    post_as(port, path, json, None)
}

/// The same with a token.
pub fn post_as(port: u16, path: &str, json: &str, token: Option<&str>) -> String {
    let token = token.map(|token| format!("Authorization: {token}\r\n")).unwrap_or_default();
    let head = format!("POST {path} HTTP/1.0\r\nHost: localhost\r\n{token}");
    let request = format!("{head}Content-Length: {}\r\n\r\n{json}", json.len());
    let body = ask(port, &request).unwrap_or_else(|| panic!("no answer from {path}"));
    assert!(!body.contains("\"error\""), "{path} {json}: {body}");
    body
}

/// The value of a counter in what Prometheus would scrape.
pub fn metric(port: u16, name: &str) -> u64 {
    let text = get(port, "/metrics").expect("metrics");
    let line = text.lines().find(|line| line.starts_with(name));
    let value = line.and_then(|line| line.rsplit(' ').next()).unwrap_or("0");
    value.parse::<f64>().expect("a number") as u64
}

fn ask(port: u16, request: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned())
}
