//! A path to the server that counts, can be cut, and can swallow what comes back.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::watch;

/// What went over the path so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// How often the client spoke after the server had.
    pub trips: u64,
    pub bytes_up: u64,
    pub bytes_down: u64,
    pub connections: u64,
    /// How many calls of the script came from the client, by hash or by text.
    pub scripts: u64,
}

/// What a path does with what it is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    Fine,
    /// Whatever the server answers is lost, and then the connection breaks.
    LoseAnswers,
    /// Nothing arrives in either direction, and nothing breaks.
    Silent,
}

pub struct Proxy {
    pub port: u16,
    counters: Arc<Counters>,
    cuts: watch::Sender<u64>,
    mood: watch::Sender<Mood>,
}

#[derive(Default)]
struct Counters {
    trips: AtomicU64,
    up: AtomicU64,
    down: AtomicU64,
    connections: AtomicU64,
    scripts: AtomicU64,
}

impl Proxy {
    pub async fn to(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let own = listener.local_addr().expect("an address").port();
        let counters = Arc::new(Counters::default());
        let (cuts, mood) = (watch::Sender::new(0), watch::Sender::new(Mood::Fine));
        let (counting, cutting, changing) = (Arc::clone(&counters), cuts.clone(), mood.clone());
        Handle::current().spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (counters, cut) = (Arc::clone(&counting), cutting.subscribe());
                counters.connections.fetch_add(1, Ordering::SeqCst);
                Handle::current().spawn(carry(client, port, counters, cut, changing.subscribe()));
            }
        });
        Self { port: own, counters, cuts, mood }
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub fn traffic(&self) -> Traffic {
        let read = |counter: &AtomicU64| counter.load(Ordering::SeqCst);
        Traffic {
            trips: read(&self.counters.trips),
            bytes_up: read(&self.counters.up),
            bytes_down: read(&self.counters.down),
            connections: read(&self.counters.connections),
            scripts: read(&self.counters.scripts),
        }
    }

    /// Closes all connections that are open now.
    pub fn cut(&self) {
        self.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// Changes what becomes of what is on the way, on all connections.
    pub fn become_(&self, mood: Mood) {
        self.mood.send_replace(mood);
    }
}

async fn carry(
    mut client: TcpStream,
    port: u16,
    counters: Arc<Counters>,
    mut cut: watch::Receiver<u64>,
    mut mood: watch::Receiver<Mood>,
) {
    cut.mark_unchanged();
    let Ok(mut server) = TcpStream::connect(("127.0.0.1", port)).await else { return };
    let _ = client.set_nodelay(true);
    let _ = server.set_nodelay(true);
    let mut server_spoke = true;
    let (mut up, mut down) = (vec![0; 65_536], vec![0; 65_536]);
    loop {
        if *mood.borrow_and_update() == Mood::Silent {
            tokio::select! {
                _ = cut.changed() => return,
                _ = mood.changed() => continue,
            }
        }
        tokio::select! {
            biased;
            _ = cut.changed() => return,
            _ = mood.changed() => {}
            read = server.read(&mut down) => {
                let Ok(count @ 1..) = read else { return };
                if *mood.borrow() == Mood::LoseAnswers { return }
                server_spoke = true;
                counters.down.fetch_add(count as u64, Ordering::SeqCst);
                if client.write_all(&down[..count]).await.is_err() { return }
            }
            read = client.read(&mut up) => {
                let Ok(count @ 1..) = read else { return };
                if std::mem::replace(&mut server_spoke, false) {
                    counters.trips.fetch_add(1, Ordering::SeqCst);
                }
                let scripts = up[..count].windows(4).filter(|word| word == b"EVAL").count();
                counters.scripts.fetch_add(scripts as u64, Ordering::SeqCst);
                counters.up.fetch_add(count as u64, Ordering::SeqCst);
                if server.write_all(&up[..count]).await.is_err() { return }
            }
        }
    }
}

/// Waits until nothing more goes over the path.
pub async fn quiet(proxy: &Proxy) -> Traffic {
    loop {
        let before = proxy.traffic();
        tokio::time::sleep(Duration::from_millis(150)).await;
        if proxy.traffic() == before {
            return before;
        }
    }
}
