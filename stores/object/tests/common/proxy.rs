//! A path to a server that can be cut, and that counts what goes over it.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinHandle};

#[derive(Clone)]
pub struct Proxy {
    pub port: u16,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    target: u16,
    /// Requests that passed, by what they start with.
    puts: AtomicUsize,
    gets: AtomicUsize,
    connections: AtomicUsize,
    /// Requests go through, and the connection ends instead of the answer.
    mute: AtomicBool,
    /// Nobody is let in.
    closed: AtomicBool,
    running: Mutex<Vec<AbortHandle>>,
    accepting: Mutex<Option<JoinHandle<()>>>,
}

impl Proxy {
    /// Starts one in front of a port of the loopback interface.
    pub async fn start(target: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let shared = Arc::new(Shared { target, ..Shared::default() });
        let accepting = tokio::runtime::Handle::current().spawn({
            let shared = Arc::clone(&shared);
            async move {
                while let Ok((client, _)) = listener.accept().await {
                    if shared.closed.load(Ordering::SeqCst) {
                        continue;
                    }
                    shared.connections.fetch_add(1, Ordering::SeqCst);
                    let task =
                        tokio::runtime::Handle::current().spawn(serve(client, shared.clone()));
                    let mut running = shared.running.lock().unwrap_or_else(PoisonError::into_inner);
                    running.retain(|task| !task.is_finished());
                    running.push(task.abort_handle());
                }
            }
        });
        *shared.accepting.lock().unwrap_or_else(PoisonError::into_inner) = Some(accepting);
        Self { port, shared }
    }

    /// Breaks all connections of this moment.
    pub fn cut(&self) {
        let running = std::mem::take(
            &mut *self.shared.running.lock().unwrap_or_else(PoisonError::into_inner),
        );
        for task in running {
            task.abort();
        }
    }

    pub fn close(&self, closed: bool) {
        self.shared.closed.store(closed, Ordering::SeqCst);
        if closed {
            self.cut();
        }
    }

    pub fn mute(&self, mute: bool) {
        self.shared.mute.store(mute, Ordering::SeqCst);
    }

    pub fn puts(&self) -> usize {
        self.shared.puts.load(Ordering::SeqCst)
    }

    pub fn gets(&self) -> usize {
        self.shared.gets.load(Ordering::SeqCst)
    }

    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }
}

async fn serve(mut client: TcpStream, shared: Arc<Shared>) {
    let Ok(mut server) = TcpStream::connect((Ipv4Addr::LOCALHOST, shared.target)).await else {
        return;
    };
    let (mut from_client, mut from_server) = ([0_u8; 16_384], [0_u8; 16_384]);
    loop {
        tokio::select! {
            asked = client.read(&mut from_client) => {
                let Some(asked) = some(asked, &from_client) else { return };
                shared.puts.fetch_add(count(asked, b"PUT /"), Ordering::SeqCst);
                shared.gets.fetch_add(count(asked, b"GET /"), Ordering::SeqCst);
                if server.write_all(asked).await.is_err() {
                    return;
                }
            }
            answered = server.read(&mut from_server) => {
                let Some(answered) = some(answered, &from_server) else { return };
                if shared.mute.load(Ordering::SeqCst) || client.write_all(answered).await.is_err() {
                    return;
                }
            }
        }
    }
}

fn some(count: std::io::Result<usize>, buffer: &[u8]) -> Option<&[u8]> {
    match count {
        Ok(0) | Err(_) => None,
        Ok(count) => buffer.get(..count),
    }
}

fn count(bytes: &[u8], what: &[u8]) -> usize {
    bytes.windows(what.len()).filter(|part| *part == what).count()
}
