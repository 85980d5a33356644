//! A path to a server that counts, can be long, can break, and can lose what it carries.

mod path;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::runtime::{Builder, Handle, Runtime};

use path::Shared;
pub use wire::Wire;

/// A path to a port of the loopback interface. It lasts as long as the runtime that it was made
/// on.
#[derive(Clone)]
pub struct Proxy {
    port: u16,
    /// What names the server, if a URL did, with this path in place of it.
    url: String,
    shared: Arc<Shared>,
    _runtime: Option<Arc<Runtime>>,
}

/// What went over a path so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// How many connections there have been.
    pub connections: u64,
    /// How many requests began, by the rules of the [`Wire`].
    pub requests: u64,
    /// From the client to the server.
    pub bytes_up: u64,
    /// From the server to the client.
    pub bytes_down: u64,
}

impl Traffic {
    /// What came after `before`.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            connections: self.connections - before.connections,
            requests: self.requests - before.requests,
            bytes_up: self.bytes_up - before.bytes_up,
            bytes_down: self.bytes_down - before.bytes_down,
        }
    }
}

/// What a path does with what it is given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mood {
    /// It carries everything.
    #[default]
    Fine,
    /// Requests arrive, and instead of its answer the connection ends.
    LoseAnswers,
    /// Nothing arrives in either direction, and nothing breaks. What was sent arrives later.
    Silent,
    /// All connections are broken, and no other is let in.
    Closed,
}

impl Proxy {
    /// A path to this port, which counts a request whenever the client speaks after the server.
    ///
    /// # Panics
    ///
    /// If no port is free.
    pub async fn to(target: u16) -> Self {
        Self::over(Wire::TURNS, target).await
    }

    /// A path to this port that knows what goes over it.
    ///
    /// # Panics
    ///
    /// If no port is free.
    pub async fn over(wire: Wire, target: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let shared = Arc::new(Shared::new(wire, target));
        let accepting = Arc::clone(&shared);
        Handle::current().spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                accepting.carry(client);
            }
        });
        Self { port, url: String::new(), shared, _runtime: None }
    }

    /// A path to the server that a URL names.
    ///
    /// # Panics
    ///
    /// If it names none on the loopback interface, or no port is free.
    pub async fn before(url: &str) -> Self {
        let there = server(url).expect("a host and a port in the URL");
        let target = there.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
        let mut proxy = Self::over(Wire::of(url), target.expect("a port in the URL")).await;
        proxy.url = url.replacen(there, &format!("127.0.0.1:{}", proxy.port), 1);
        proxy
    }

    /// The same for who has no runtime.
    ///
    /// # Panics
    ///
    /// As [`Self::before`] does.
    #[must_use]
    pub fn blocking_before(url: &str) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let mut proxy = runtime.block_on(Self::before(url));
        proxy._runtime = Some(Arc::new(runtime));
        proxy
    }

    /// Where it begins.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The URL that named the server, with this path in its place.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// From now on a question and its answer take at least so long.
    pub fn set_round_trip(&self, span: Duration) {
        self.shared.change(|settings| settings.delay = span / 2);
    }

    /// From now on it does this with what it is given.
    pub fn set(&self, mood: Mood) {
        self.shared.change(|settings| settings.mood = mood);
        if mood == Mood::Closed {
            self.cut();
        }
    }

    /// Carries nothing more over the connections that are open now and says nothing about it, as a
    /// network does that forgot them. New ones work.
    pub fn forget_connections(&self) {
        let connections = self.traffic().connections;
        self.shared.change(|settings| settings.forgotten = connections);
    }

    /// Breaks all connections that are open now.
    pub fn cut(&self) {
        while self.cut_oldest() {}
    }

    /// Breaks the connection that has been open longest, if there is one.
    pub fn cut_oldest(&self) -> bool {
        self.shared.cut_oldest()
    }

    /// What went over it so far.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        self.shared.traffic()
    }

    /// How often this word, which its [`Wire`] looks for, was sent to the server.
    #[must_use]
    pub fn sent(&self, word: &str) -> u64 {
        self.shared.sent(word)
    }

    /// Waits until nothing more goes over it.
    pub async fn quiet(&self) -> Traffic {
        loop {
            let before = self.traffic();
            tokio::time::sleep(Duration::from_millis(150)).await;
            if self.traffic() == before {
                return before;
            }
        }
    }
}

/// Host and port of the server: of the last URL within the URL, for a bucket's `endpoint`.
fn server(url: &str) -> Option<&str> {
    let (_, rest) = url.rsplit_once("://")?;
    let end = rest.find(['/', '?', '&']).unwrap_or(rest.len());
    let authority = rest.get(..end)?;
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    host.contains(':').then_some(host)
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

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
            assert_eq!(server(url), there, "{url}");
        }
    }

    /// A client and a server with a path between them.
    async fn path() -> (Proxy, TcpStream, TcpStream) {
        let server = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = server.local_addr().expect("an address");
        let proxy = Proxy::before(&format!("echo://{address}")).await;
        let client = TcpStream::connect(("127.0.0.1", proxy.port())).await.expect("a path");
        let (served, _) = server.accept().await.expect("a client");
        (proxy, client, served)
    }

    async fn takes(from: &mut TcpStream, wanted: &[u8]) {
        let mut buffer = vec![0; wanted.len()];
        from.read_exact(&mut buffer).await.expect("it arrives");
        assert_eq!(buffer, wanted);
    }

    #[tokio::test]
    async fn what_is_carried_is_counted() {
        let (proxy, mut client, mut served) = path().await;
        for _ in 0..3 {
            client.write_all(b"question").await.expect("a path");
            takes(&mut served, b"question").await;
            served.write_all(b"answer").await.expect("a path");
            takes(&mut client, b"answer").await;
        }
        let wanted = Traffic { connections: 1, requests: 3, bytes_up: 24, bytes_down: 18 };
        assert_eq!(proxy.traffic(), wanted);
    }

    #[tokio::test]
    async fn answers_can_be_lost_and_silence_ends() {
        let (proxy, mut client, mut served) = path().await;
        proxy.set(Mood::Silent);
        client.write_all(b"question").await.expect("a path");
        let mut buffer = [0; 8];
        let silence = tokio::time::timeout(Duration::from_millis(200), served.read(&mut buffer));
        assert!(silence.await.is_err(), "nothing arrives");
        proxy.set(Mood::LoseAnswers);
        takes(&mut served, b"question").await;
        served.write_all(b"answer").await.expect("a path");
        assert_eq!(client.read(&mut buffer).await.expect("an orderly end"), 0);
    }

    #[tokio::test]
    async fn connections_can_be_forgotten_and_cut() {
        let (proxy, mut client, mut served) = path().await;
        proxy.forget_connections();
        client.write_all(b"question").await.expect("a path");
        let mut buffer = [0; 8];
        let silence = tokio::time::timeout(Duration::from_millis(200), served.read(&mut buffer));
        assert!(silence.await.is_err(), "nothing arrives");
        proxy.cut();
        assert_eq!(served.read(&mut buffer).await.unwrap_or(0), 0);
    }
}
