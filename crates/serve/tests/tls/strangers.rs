//! Who doesn't speak as one should: it is bounded what they cost, and others are answered meanwhile.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};

use crate::common::PATIENCE;
use crate::stage::Stage;

fn connect(stage: &Stage) -> TcpStream {
    let stream = TcpStream::connect(stage.server.tcp).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

#[test]
fn a_handshake_that_stalls_holds_up_nobody_and_is_given_up() {
    let stage = Stage::new();
    let known = stage.identity("known");
    let beginnings: [&[u8]; 3] = [b"", &[22], &[22, 3, 1, 0, 200, 1, 0, 0, 196, 3, 3]];
    let mut stalled: Vec<_> = (0..60)
        .map(|number| {
            let mut stream = connect(&stage);
            stream.write_all(beginnings[number % 3]).unwrap();
            stream
        })
        .collect();
    assert_eq!(stage.get(&known, "/v1/leases").status, 200);
    for stream in &mut stalled {
        let mut rest = Vec::new();
        let ended = stream.read_to_end(&mut rest).map_err(|error| error.kind());
        assert_ne!(ended, Err(ErrorKind::WouldBlock), "it is still open");
    }
    assert_eq!(stage.get(&known, "/v1/leases").status, 200);
}

#[test]
fn who_forgets_to_encrypt_is_told_so() {
    let stage = Stage::new();
    let mut stream = connect(&stage);
    stream.write_all(b"GET /v1/leases HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("https://"), "{answer}");
}

#[test]
fn garbage_ends_its_own_connection_alone() {
    let stage = Stage::new();
    let mut byte = noise();
    for length in [1, 5, 6, 100, 5_000, 100_000] {
        for first in [0, 22, 23, b'G', 255] {
            let mut bytes: Vec<u8> = (0..length).map(|_| byte()).collect();
            bytes[0] = first;
            let mut stream = connect(&stage);
            // It may be closed before it has taken all of it.
            let _ = stream.write_all(&bytes);
            let _ = stream.shutdown(Shutdown::Write);
            let mut rest = Vec::new();
            let ended = stream.read_to_end(&mut rest).map_err(|error| error.kind());
            assert_ne!(ended, Err(ErrorKind::WouldBlock), "{length} from {first}");
        }
    }
    assert_eq!(stage.get(&stage.identity("known"), "/v1/leases").status, 200);
}

/// Bytes that look like nothing, the same in each run.
fn noise() -> impl FnMut() -> u8 {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    }
}
