//! A path to a server that counts what goes over it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;

use super::requests::Requests;

/// What went over a path so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Traffic {
    pub(super) requests: u64,
    pub(super) up: u64,
    pub(super) down: u64,
}

impl Traffic {
    pub(super) fn since(self, before: Self) -> Self {
        Self {
            requests: self.requests - before.requests,
            up: self.up - before.up,
            down: self.down - before.down,
        }
    }
}

#[derive(Default)]
struct Counters {
    requests: AtomicU64,
    up: AtomicU64,
    down: AtomicU64,
}

pub(super) struct Proxy {
    /// The server's URL, with this path in place of the server.
    pub(super) url: String,
    counters: Arc<Counters>,
}

impl Proxy {
    /// A path to the server that a URL names.
    pub(super) async fn to(url: &str) -> Result<Self> {
        let target = authority(url).context("no host and port in the URL")?.to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let here = listener.local_addr()?.to_string();
        let counters = Arc::new(Counters::default());
        let proxy = Self { url: url.replacen(&target, &here, 1), counters: Arc::clone(&counters) };
        let url = url.to_owned();
        Handle::current().spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if let Ok(server) = TcpStream::connect(&target).await {
                    carry(client, server, Requests::of(&url), &counters);
                }
            }
        });
        Ok(proxy)
    }

    pub(super) fn traffic(&self) -> Traffic {
        let read = |counter: &AtomicU64| counter.load(Ordering::SeqCst);
        let Counters { requests, up, down } = &*self.counters;
        Traffic { requests: read(requests), up: read(up), down: read(down) }
    }
}

/// Host and port of the server: of the last URL within the URL, for a bucket's `endpoint`.
fn authority(url: &str) -> Option<&str> {
    let (_, rest) = url.rsplit_once("://")?;
    let end = rest.find(['/', '?', '&']).unwrap_or(rest.len());
    let authority = rest.get(..end)?;
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    host.contains(':').then_some(host)
}

fn carry(client: TcpStream, server: TcpStream, requests: Requests, counters: &Arc<Counters>) {
    let _ = client.set_nodelay(true);
    let _ = server.set_nodelay(true);
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let requests = Arc::new(Mutex::new(requests));
    let (asking, answering) = (Arc::clone(&requests), requests);
    let counting = Arc::clone(counters);
    Handle::current().spawn(copy(from_client, to_server, move |bytes| {
        counting.up.fetch_add(bytes.len() as u64, Ordering::SeqCst);
        let begun = asking.lock().unwrap_or_else(PoisonError::into_inner).sent(bytes);
        counting.requests.fetch_add(begun, Ordering::SeqCst);
    }));
    let counting = Arc::clone(counters);
    Handle::current().spawn(copy(from_server, to_client, move |bytes| {
        counting.down.fetch_add(bytes.len() as u64, Ordering::SeqCst);
        answering.lock().unwrap_or_else(PoisonError::into_inner).answered();
    }));
}

async fn copy(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    count: impl Fn(&[u8]),
) {
    let mut buffer = vec![0; 65_536];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        let Some(bytes) = buffer.get(..read) else { return };
        count(bytes);
        if to.write_all(bytes).await.is_err() {
            return;
        }
    }
    let _ = to.shutdown().await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_is_found_in_every_url() {
        for (url, there) in [
            ("postgres://postgres@127.0.0.1:5432/postgres?x=y", Some("127.0.0.1:5432")),
            ("redis://127.0.0.1:6379", Some("127.0.0.1:6379")),
            ("az://box?endpoint=http://127.0.0.1:10000&create=yes", Some("127.0.0.1:10000")),
            ("s3://bucket/prefix", None),
            ("sqlite:app.db", None),
        ] {
            assert_eq!(authority(url), there, "{url}");
        }
    }

    #[test]
    fn what_is_carried_is_counted() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let url = format!("echo://{}", server.local_addr().unwrap());
            let proxy = Proxy::to(&url).await.unwrap();
            let mut client = TcpStream::connect(authority(&proxy.url).unwrap()).await.unwrap();
            let (mut served, _) = server.accept().await.unwrap();
            let mut buffer = [0; 8];
            for _ in 0..3 {
                client.write_all(b"question").await.unwrap();
                served.read_exact(&mut buffer).await.unwrap();
                served.write_all(b"answer").await.unwrap();
                client.read_exact(&mut buffer[..6]).await.unwrap();
            }
            assert_eq!(proxy.traffic(), Traffic { requests: 3, up: 24, down: 18 });
        });
    }
}
