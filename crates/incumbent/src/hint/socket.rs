//! A socket for datagrams, and the nodes behind it.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use tokio::task::AbortHandle;

use super::datagram::{self, HintAddress, LONGEST, Saying};
use super::inbox::Inbox;
use super::key::HintKey;
use crate::driver::{clock, seed, thread};

/// So many datagrams are read in a turn, and if there are more, the next turn comes after a rest. What the
/// system can't keep for so long is lost: beats run on the same thread.
const TURN: usize = 64;
const REST: Duration = Duration::from_millis(5);

/// A socket for datagrams, and the nodes behind it.
#[derive(Debug)]
pub(crate) struct Socket {
    socket: UdpSocket,
    address: SocketAddr,
    key: Option<HintKey>,
    doors: Mutex<BTreeMap<u64, Arc<Inbox>>>,
    /// What was no hint for anybody here.
    dropped: AtomicU64,
    reader: OnceLock<AbortHandle>,
}

impl Socket {
    /// Binds it, and reads it on the thread that beats for as long as there is a node behind it.
    pub(crate) fn open(address: SocketAddr, key: Option<HintKey>) -> io::Result<Arc<Self>> {
        let socket = UdpSocket::bind(address)?;
        socket.set_nonblocking(true)?;
        let reading = socket.try_clone()?;
        let address = socket.local_addr()?;
        let opened = Arc::new(Self {
            socket,
            address,
            key,
            doors: Mutex::default(),
            dropped: AtomicU64::new(0),
            reader: OnceLock::new(),
        });
        let reader = thread::spawn(read(reading, Arc::downgrade(&opened)))?;
        let _ = opened.reader.set(reader.abort_handle());
        Ok(opened)
    }

    /// Lets a node be told things here.
    pub(crate) fn add(&self, inbox: &Arc<Inbox>) -> HintAddress {
        let door = seed::draw();
        self.doors().insert(door, Arc::clone(inbox));
        HintAddress { at: self.address, door }
    }

    pub(crate) fn remove(&self, own: HintAddress) {
        self.doors().remove(&own.door);
    }

    pub(crate) fn is_keyed(&self) -> bool {
        self.key.is_some()
    }

    /// How much came that was no hint for anybody here.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Sends without waiting. What can't be sent is lost, as any datagram may be.
    pub(crate) fn send(&self, to: HintAddress, saying: Saying) {
        let bytes = datagram::write(to.door, saying, self.key.as_ref(), clock::wall_ms());
        let _ = self.socket.send_to(&bytes, to.at);
    }

    fn receive(&self, bytes: &[u8]) {
        let read = datagram::read(bytes, self.key.as_ref(), clock::wall_ms());
        // Without a key nobody is made to send anything off this host.
        let near = |saying: &Saying| match saying {
            Saying::Waits(waiter) => self.is_keyed() || waiter.at.ip().is_loopback(),
            Saying::Changed => true,
        };
        let said = read.filter(|(_, saying)| near(saying));
        let inbox =
            said.and_then(|(door, saying)| Some((self.doors().get(&door).cloned()?, saying)));
        match inbox {
            Some((inbox, saying)) => inbox.put(saying),
            None => drop(self.dropped.fetch_add(1, Ordering::Relaxed)),
        }
    }

    fn doors(&self) -> std::sync::MutexGuard<'_, BTreeMap<u64, Arc<Inbox>>> {
        self.doors.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if let Some(reader) = self.reader.get() {
            reader.abort();
        }
    }
}

async fn read(socket: UdpSocket, nodes: Weak<Socket>) {
    let socket = match tokio::net::UdpSocket::from_std(socket) {
        Ok(socket) => socket,
        Err(error) => {
            tracing::warn!(action = "hints", %error, "no hints are taken from other nodes");
            return;
        }
    };
    // One byte more than the longest, so that what is too long isn't taken for what it begins with.
    let mut bytes = [0_u8; LONGEST + 1];
    while socket.readable().await.is_ok() {
        let Some(nodes) = nodes.upgrade() else { return };
        let mut left = TURN;
        while left > 0 {
            match socket.try_recv_from(&mut bytes) {
                Ok((length, _)) => nodes.receive(bytes.get(..length).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // Something that was sent came back: its receiver is gone, and that is all.
                Err(_) => {}
            }
            left -= 1;
        }
        drop(nodes);
        if left == 0 {
            tokio::time::sleep(REST).await;
        }
    }
}
