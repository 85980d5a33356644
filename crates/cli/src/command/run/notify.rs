//! Telling a service manager how things stand, if one wants to know.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Tells the service manager. Whether it hears is its own business.
pub(crate) fn notify(state: &str) {
    let Ok(socket) = std::env::var("NOTIFY_SOCKET") else { return };
    let address = match socket.strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(&socket),
    };
    if let (Ok(address), Ok(sender)) = (address, UnixDatagram::unbound()) {
        let _ = sender.send_to_addr(state.as_bytes(), &address);
    }
}
