//! Files that change while the server runs.

use std::io::{BufRead, BufReader, Read, Write};
use std::time::Duration;

use incumbent_proving::Authority;

use crate::common::{pass, wait_until};
use crate::stage::{Stage, Stream, Wants, closed};

/// The certificate that the server shows.
fn shown(stage: &Stage) -> Vec<u8> {
    let mut stream = stage.connect(Some(&stage.identity("looking")));
    stream.conn.complete_io(&mut stream.sock).unwrap();
    stream.conn.peer_certificates().unwrap()[0].to_vec()
}

/// Long enough to be seen.
const SEEN: Duration = Duration::from_secs(3);

#[test]
fn a_renewed_certificate_is_shown_without_a_restart_and_a_broken_one_is_not() {
    let stage = Stage::new();
    let (first, mut news) = (shown(&stage), stage.tls.news());
    // One of the two files is there before the other.
    let renewed = stage.authority.issue("localhost", stage.directory.path(), "renewed");
    std::fs::copy(&renewed.0, stage.path("server.crt")).unwrap();
    wait_until("that they don't fit is said", || news.borrow_and_update().contains("server.key"));
    assert_eq!(shown(&stage), first);
    std::fs::copy(&closed(renewed).1, stage.path("server.key")).unwrap();
    wait_until("the renewed one is shown", || shown(&stage) != first);
    let second = shown(&stage);
    let coded = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    for (broken, why) in [("garbage", "no certificate in it"), (coded, "is not the key of")] {
        std::fs::write(stage.path("server.crt"), broken).unwrap();
        wait_until("it is said", || news.borrow_and_update().contains(why));
        let said = news.borrow().clone();
        assert!(
            said.contains("server.crt") && said.contains("the previous file stays in use"),
            "{said}"
        );
        assert_eq!(shown(&stage), second, "{broken}");
    }
    std::fs::remove_file(stage.path("server.crt")).unwrap();
    wait_until("it is said", || news.borrow_and_update().contains("No such file"));
    assert_eq!(shown(&stage), second);
}

#[test]
fn who_vouches_for_clients_can_change() {
    let stage = Stage::new();
    let (old, successor) = (stage.identity("old"), Authority::new());
    let new = successor.issue("new", stage.directory.path(), "new");
    assert!(stage.is_let_in(Some(&old)));
    let mut open = stage.connect(Some(&old));
    assert_eq!(status(&mut open, "/v1/leases"), 200);
    stage.keep_trusting();
    let both = [stage.path("kept.crt"), successor.save(stage.directory.path(), "new.ca")]
        .map(|path| std::fs::read_to_string(path).unwrap());
    std::fs::write(stage.path("ca.crt"), both.concat()).unwrap();
    wait_until("the new one gets in", || stage.is_let_in(Some(&new)));
    assert!(stage.is_let_in(Some(&old)));
    successor.save(stage.directory.path(), "ca.crt");
    wait_until("the old one doesn't", || !stage.is_let_in(Some(&old)));
    assert!(stage.is_let_in(Some(&new)));
    // As documented: who was let in stays.
    assert_eq!(status(&mut open, "/v1/leases"), 200);
    std::fs::write(stage.path("ca.crt"), "garbage").unwrap();
    pass(SEEN);
    assert!(stage.is_let_in(Some(&new)) && !stage.is_let_in(Some(&old)));
}

#[test]
fn a_role_that_is_taken_away_is_gone_on_open_connections_too() {
    let roles = "operator cn:alice\nread-only cn:bob\n";
    let stage = Stage::wanting(&Wants { roles: Some(roles), ..Wants::default() });
    let mut alice = stage.connect(Some(&stage.identity("alice")));
    assert_eq!(status(&mut alice, "/v1/leases"), 200);
    let mut events = stage.connect(Some(&stage.identity("alice")));
    write!(events, "GET /v1/events HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    // Another file that is broken doesn't keep it from being seen.
    std::fs::write(stage.path("server.crt"), "garbage").unwrap();
    std::fs::write(stage.path("roles"), "read-only cn:bob\n").unwrap();
    wait_until("she may nothing", || status(&mut alice, "/v1/leases") == 403);
    // A broken file takes nothing away and gives nothing.
    std::fs::write(stage.path("roles"), "operator alice\n").unwrap();
    pass(SEEN);
    assert_eq!(status(&mut alice, "/v1/leases"), 403);
    assert_eq!(stage.get(&stage.identity("bob"), "/v1/leases").status, 200);
    // O58: what was streaming has ended too, with the last chunk.
    let mut told = Vec::new();
    let mut bytes = [0; 4096];
    while !told.ends_with(b"0\r\n\r\n") {
        let read = events.read(&mut bytes).unwrap();
        assert!(read > 0, "{}", String::from_utf8_lossy(&told));
        told.extend_from_slice(&bytes[..read]);
    }
}

/// Asks on a connection that stays open.
fn status(stream: &mut Stream, path: &str) -> u16 {
    write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    let mut reader = BufReader::with_capacity(1, stream);
    let (mut status, mut length) = (0, 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        match line.trim_end().split_once(' ') {
            None => break,
            Some((name, value)) if name.eq_ignore_ascii_case("content-length:") => {
                length = value.parse().unwrap();
            }
            Some(("HTTP/1.1", value)) => status = value[..3].parse().unwrap(),
            Some(_) => {}
        }
    }
    reader.read_exact(&mut vec![0; length]).unwrap();
    status
}
