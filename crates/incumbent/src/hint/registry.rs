//! The sockets of this process. Nodes with the same settings share one.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::key::HintKey;
use super::socket::Socket;

/// Of which process, where and for whom a socket is: a forked child has its parent's memory, and none of
/// the tasks that read its sockets.
type SocketPlace = (u32, SocketAddr, Option<HintKey>);

static SOCKETS: Mutex<BTreeMap<SocketPlace, Weak<Socket>>> = Mutex::new(BTreeMap::new());

/// The socket of this process for this address and key, which is opened if need be.
pub(crate) fn socket(address: SocketAddr, key: Option<&HintKey>) -> io::Result<Arc<Socket>> {
    let mut sockets = SOCKETS.lock().unwrap_or_else(PoisonError::into_inner);
    sockets.retain(|_, socket| socket.strong_count() > 0);
    let place = (std::process::id(), address, key.cloned());
    if let Some(socket) = sockets.get(&place).and_then(Weak::upgrade) {
        return Ok(socket);
    }
    let socket = Socket::open(address, key.cloned())?;
    sockets.insert(place, Arc::downgrade(&socket));
    Ok(socket)
}
