//! A path to the server that counts, can be cut, and can lose what it carries.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::watch;

/// How the path behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    Fine,
    /// What the server answers to a write is thrown away, and the connection closed.
    LoseAnswers,
    /// Nothing is carried, and nothing said about it.
    Silent,
}

/// What went over the path so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    pub connections: u64,
    /// Messages to keys of the bucket: writes.
    pub writes: u64,
    /// Messages of any sort to the server.
    pub messages: u64,
    pub bytes_up: u64,
    pub bytes_down: u64,
}

#[derive(Default)]
struct Counters {
    connections: AtomicU64,
    writes: AtomicU64,
    messages: AtomicU64,
    up: AtomicU64,
    down: AtomicU64,
}

pub struct Proxy {
    pub port: u16,
    counters: Arc<Counters>,
    cuts: watch::Sender<u64>,
    mood: watch::Sender<Mood>,
}

impl Proxy {
    pub async fn to(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let own = listener.local_addr().expect("an address").port();
        let counters = Arc::new(Counters::default());
        let (cuts, mood) = (watch::Sender::new(0), watch::Sender::new(Mood::Fine));
        let (counting, cutting, moody) = (Arc::clone(&counters), cuts.clone(), mood.clone());
        Handle::current().spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                counting.connections.fetch_add(1, Ordering::SeqCst);
                let path = Path {
                    counters: Arc::clone(&counting),
                    cut: cutting.subscribe(),
                    mood: moody.subscribe(),
                };
                Handle::current().spawn(path.carry(client, port));
            }
        });
        Self { port: own, counters, cuts, mood }
    }

    pub fn url(&self, bucket: &str) -> String {
        format!("nats://127.0.0.1:{}?bucket={bucket}", self.port)
    }

    pub fn traffic(&self) -> Traffic {
        let read = |counter: &AtomicU64| counter.load(Ordering::SeqCst);
        Traffic {
            connections: read(&self.counters.connections),
            writes: read(&self.counters.writes),
            messages: read(&self.counters.messages),
            bytes_up: read(&self.counters.up),
            bytes_down: read(&self.counters.down),
        }
    }

    /// Closes all connections that are open now.
    pub fn cut(&self) {
        self.cuts.send_modify(|cuts| *cuts += 1);
    }

    pub fn set(&self, mood: Mood) {
        self.mood.send_replace(mood);
    }
}

struct Path {
    counters: Arc<Counters>,
    cut: watch::Receiver<u64>,
    mood: watch::Receiver<Mood>,
}

impl Path {
    async fn carry(mut self, mut client: TcpStream, port: u16) {
        let Ok(mut server) = TcpStream::connect(("127.0.0.1", port)).await else { return };
        let _ = client.set_nodelay(true);
        let _ = server.set_nodelay(true);
        let (mut up, mut down) = (vec![0; 65_536], vec![0; 65_536]);
        let mut asked = false;
        loop {
            if *self.mood.borrow_and_update() == Mood::Silent {
                tokio::select! {
                    _ = self.cut.changed() => return,
                    _ = self.mood.changed() => continue,
                }
            }
            tokio::select! {
                biased;
                _ = self.cut.changed() => return,
                _ = self.mood.changed() => {}
                read = server.read(&mut down) => {
                    let Ok(count @ 1..) = read else { return };
                    if std::mem::take(&mut asked) && *self.mood.borrow() == Mood::LoseAnswers {
                        return;
                    }
                    self.counters.down.fetch_add(count as u64, Ordering::SeqCst);
                    if client.write_all(&down[..count]).await.is_err() { return }
                }
                read = client.read(&mut up) => {
                    let Ok(count @ 1..) = read else { return };
                    asked |= self.count(&up[..count]);
                    if server.write_all(&up[..count]).await.is_err() { return }
                }
            }
        }
    }

    /// Whether any of this is a write. A word that two reads share isn't counted; the tests send
    /// few words at a time.
    fn count(&self, bytes: &[u8]) -> bool {
        let times = |word: &[u8]| bytes.windows(word.len()).filter(|part| *part == word).count();
        let add =
            |counter: &AtomicU64, count: usize| counter.fetch_add(count as u64, Ordering::SeqCst);
        let writes = times(b"HPUB $KV.");
        add(&self.counters.writes, writes);
        add(&self.counters.messages, times(b"PUB $") + times(b"PUB incumbent."));
        add(&self.counters.up, bytes.len());
        writes > 0
    }
}
