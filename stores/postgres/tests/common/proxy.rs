//! A path to the server that counts, can be cut, and can swallow everything.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
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
}

pub struct Proxy {
    pub port: u16,
    counters: Arc<Counters>,
    cuts: watch::Sender<u64>,
    /// Connections up to this number carry nothing.
    frozen: Arc<watch::Sender<u64>>,
}

#[derive(Default)]
struct Counters {
    trips: AtomicU64,
    up: AtomicU64,
    down: AtomicU64,
    connections: AtomicU64,
}

impl Proxy {
    pub async fn to(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let own = listener.local_addr().expect("an address").port();
        let counters = Arc::new(Counters::default());
        let cuts = watch::Sender::new(0);
        let frozen = Arc::new(watch::Sender::new(0));
        let (counting, cutting, freezing) =
            (Arc::clone(&counters), cuts.clone(), Arc::clone(&frozen));
        Handle::current().spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (counters, cut) = (Arc::clone(&counting), cutting.subscribe());
                let frozen = freezing.subscribe();
                let number = counters.connections.fetch_add(1, Ordering::SeqCst) + 1;
                Handle::current().spawn(carry(client, port, number, counters, cut, frozen));
            }
        });
        Self { port: own, counters, cuts, frozen }
    }

    /// The URL of a database behind this path.
    pub fn url(&self, schema: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres?schema={schema}", self.port)
    }

    pub fn traffic(&self) -> Traffic {
        let read = |counter: &AtomicU64| counter.load(Ordering::SeqCst);
        Traffic {
            trips: read(&self.counters.trips),
            bytes_up: read(&self.counters.up),
            bytes_down: read(&self.counters.down),
            connections: read(&self.counters.connections),
        }
    }

    /// Closes all connections that are open now.
    pub fn cut(&self) {
        self.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// Carries nothing more over the connections that are open now and says nothing about it, as
    /// a network does that forgot them. New ones work.
    pub fn freeze(&self) {
        self.frozen.send_replace(self.traffic().connections);
    }

    /// Carries nothing at all, over no connection, or everything again.
    pub fn shut(&self, shut: bool) {
        self.frozen.send_replace(if shut { u64::MAX } else { 0 });
    }
}

async fn carry(
    mut client: TcpStream,
    port: u16,
    number: u64,
    counters: Arc<Counters>,
    mut cut: watch::Receiver<u64>,
    mut frozen: watch::Receiver<u64>,
) {
    cut.mark_unchanged();
    let Ok(mut server) = TcpStream::connect(("127.0.0.1", port)).await else { return };
    let _ = client.set_nodelay(true);
    let _ = server.set_nodelay(true);
    let server_spoke = AtomicBool::new(true);
    let (mut up, mut down) = (vec![0; 65_536], vec![0; 65_536]);
    loop {
        if frozen.wait_for(|frozen| *frozen < number).await.is_err() {
            return;
        }
        tokio::select! {
            biased;
            _ = cut.changed() => return,
            _ = frozen.changed() => {}
            read = server.read(&mut down) => {
                let Ok(count @ 1..) = read else { return };
                server_spoke.store(true, Ordering::SeqCst);
                counters.down.fetch_add(count as u64, Ordering::SeqCst);
                if client.write_all(&down[..count]).await.is_err() { return }
            }
            read = client.read(&mut up) => {
                let Ok(count @ 1..) = read else { return };
                if server_spoke.swap(false, Ordering::SeqCst) {
                    counters.trips.fetch_add(1, Ordering::SeqCst);
                }
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
