//! A hint from somebody who takes none: an operator's program, which has written what it wants.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use super::control::HintTarget;
use super::datagram::{self, Saying};
use super::key::HintKey;
use crate::driver::clock;

/// Tells a node that something may have changed. It doesn't wait, and whether it arrives is never known.
pub(crate) fn call(target: HintTarget, key: Option<&HintKey>) -> io::Result<()> {
    let bytes = datagram::write(target.door, Saying::Changed, key, clock::wall_ms());
    let any: IpAddr = match target.at.ip() {
        IpAddr::V4(ip) if ip.is_loopback() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind(SocketAddr::new(any, 0))?;
    socket.set_nonblocking(true)?;
    socket.send_to(&bytes, target.at).map(drop)
}
