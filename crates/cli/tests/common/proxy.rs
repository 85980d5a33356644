//! A way to a server that can be slow, and can carry nothing at all.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of it")]
#![allow(clippy::expect_used, reason = "this is test code, although no test")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use incumbent::{Moment, clock};

/// The way. It lasts as long as the test.
pub struct Proxy {
    /// The server's URL, with this way in place of the server.
    pub url: String,
    shut: Arc<AtomicBool>,
}

impl Proxy {
    /// A way to the server of a URL that delays everything by so much in each direction.
    pub fn to(url: &str, delay: Duration) -> Self {
        let (_, rest) = url.split_once("://").expect("a server");
        let authority = rest.split(['/', '?']).next().unwrap_or(rest);
        let target = authority.rsplit_once('@').map_or(authority, |(_, host)| host).to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let here = listener.local_addr().expect("an address").to_string();
        let shut = Arc::new(AtomicBool::new(false));
        let proxy = Self { url: url.replacen(&target, &here, 1), shut: Arc::clone(&shut) };
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(&target) else { continue };
                carry(&client, &server, delay, &shut);
                carry(&server, &client, delay, &shut);
            }
        });
        proxy
    }

    /// Carries nothing more, and says nothing about it.
    pub fn shut(&self) {
        self.shut.store(true, Ordering::SeqCst);
    }
}

/// Carries one direction: one thread reads, another writes when it is time.
fn carry(from: &TcpStream, to: &TcpStream, delay: Duration, shut: &Arc<AtomicBool>) {
    let _ = to.set_nodelay(true);
    let (mut from, mut to) = (from.try_clone().expect("a copy"), to.try_clone().expect("a copy"));
    let (sender, receiver) = mpsc::channel::<(Moment, Vec<u8>)>();
    let shut = Arc::clone(shut);
    thread::spawn(move || {
        let mut buffer = vec![0; 65_536];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            let bytes = buffer.get(..count).unwrap_or_default().to_vec();
            if !shut.load(Ordering::SeqCst) && sender.send((clock::now() + delay, bytes)).is_err() {
                return;
            }
        }
    });
    thread::spawn(move || {
        for (due, bytes) in receiver {
            #[allow(clippy::disallowed_methods, reason = "a test may wait like this")]
            thread::sleep(due.since(clock::now()));
            if to.write_all(&bytes).is_err() {
                return;
            }
        }
        let _ = to.shutdown(std::net::Shutdown::Both);
    });
}
