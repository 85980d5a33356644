//! A path to the server that counts requests, can be cut, and can swallow everything.

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
    /// How many requests the client began.
    pub requests: u64,
    pub bytes_up: u64,
    pub bytes_down: u64,
    pub connections: u64,
}

pub struct Proxy {
    pub port: u16,
    inner: Arc<Inner>,
}

struct Inner {
    target: u16,
    requests: AtomicU64,
    up: AtomicU64,
    down: AtomicU64,
    connections: AtomicU64,
    cuts: watch::Sender<u64>,
    frozen: watch::Sender<bool>,
    /// Answers are thrown away, and the connection is cut instead.
    mute: AtomicBool,
}

impl Proxy {
    pub async fn to(target: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let inner = Arc::new(Inner {
            target,
            requests: AtomicU64::new(0),
            up: AtomicU64::new(0),
            down: AtomicU64::new(0),
            connections: AtomicU64::new(0),
            cuts: watch::Sender::new(0),
            frozen: watch::Sender::new(false),
            mute: AtomicBool::new(false),
        });
        let carrying = Arc::clone(&inner);
        Handle::current().spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                carrying.connections.fetch_add(1, Ordering::SeqCst);
                Handle::current().spawn(carry(client, Arc::clone(&carrying)));
            }
        });
        Self { port, inner }
    }

    /// The URL of a prefix behind this path.
    pub fn url(&self, prefix: &str) -> String {
        format!("etcd://127.0.0.1:{}{prefix}", self.port)
    }

    pub fn traffic(&self) -> Traffic {
        let read = |counter: &AtomicU64| counter.load(Ordering::SeqCst);
        Traffic {
            requests: read(&self.inner.requests),
            bytes_up: read(&self.inner.up),
            bytes_down: read(&self.inner.down),
            connections: read(&self.inner.connections),
        }
    }

    /// Waits until nothing more goes over the path.
    pub async fn quiet(&self) -> Traffic {
        loop {
            let before = self.traffic();
            tokio::time::sleep(Duration::from_millis(150)).await;
            if self.traffic() == before {
                return before;
            }
        }
    }

    /// Closes all connections that are open now.
    pub fn cut(&self) {
        self.inner.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// Carries nothing more, as a network does that drops everything.
    pub fn freeze(&self, freeze: bool) {
        self.inner.frozen.send_replace(freeze);
    }

    /// Carries requests, but cuts the connection instead of carrying an answer.
    pub fn mute(&self, mute: bool) {
        self.inner.mute.store(mute, Ordering::SeqCst);
    }
}

async fn carry(mut client: TcpStream, inner: Arc<Inner>) {
    let (mut cut, mut frozen) = (inner.cuts.subscribe(), inner.frozen.subscribe());
    cut.mark_unchanged();
    let Ok(mut server) = TcpStream::connect(("127.0.0.1", inner.target)).await else { return };
    let _ = client.set_nodelay(true);
    let _ = server.set_nodelay(true);
    let (mut up, mut down) = (vec![0; 65_536], vec![0; 65_536]);
    let mut frames = Frames::default();
    loop {
        if frozen.wait_for(|frozen| !frozen).await.is_err() {
            return;
        }
        tokio::select! {
            biased;
            _ = cut.changed() => return,
            _ = frozen.changed() => {}
            read = server.read(&mut down) => {
                let Ok(count @ 1..) = read else { return };
                let answers = frames.answers(&down[..count]);
                if answers > 0 && inner.mute.load(Ordering::SeqCst) { return }
                inner.down.fetch_add(count as u64, Ordering::SeqCst);
                if client.write_all(&down[..count]).await.is_err() { return }
            }
            read = client.read(&mut up) => {
                let Ok(count @ 1..) = read else { return };
                inner.up.fetch_add(count as u64, Ordering::SeqCst);
                inner.requests.fetch_add(frames.requests(&up[..count]), Ordering::SeqCst);
                if server.write_all(&up[..count]).await.is_err() { return }
            }
        }
    }
}

/// Finds the frames of HTTP/2 that begin a message: each way one for each request.
#[derive(Default)]
struct Frames {
    up: Way,
    down: Way,
    greeted: usize,
}

impl Frames {
    fn requests(&mut self, bytes: &[u8]) -> u64 {
        // A client begins with 24 bytes that are no frame.
        let greeting = bytes.len().min(24 - self.greeted);
        self.greeted += greeting;
        self.up.headers(&bytes[greeting..])
    }

    fn answers(&mut self, bytes: &[u8]) -> u64 {
        self.down.headers(bytes)
    }
}

#[derive(Default)]
struct Way {
    head: Vec<u8>,
    payload: usize,
}

impl Way {
    fn headers(&mut self, bytes: &[u8]) -> u64 {
        let mut count = 0;
        for &byte in bytes {
            if self.payload > 0 {
                self.payload -= 1;
                continue;
            }
            self.head.push(byte);
            if let [a, b, c, kind, _, _, _, _, _] = self.head[..] {
                self.payload = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
                count += u64::from(kind == 1);
                self.head.clear();
            }
        }
        count
    }
}
