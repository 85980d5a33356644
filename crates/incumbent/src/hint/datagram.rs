//! What a datagram says, and what of it is believed.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use super::key::{CODE, HintKey};

/// How every datagram of ours begins; the last is the format.
const MARK: [u8; 4] = *b"inc\x01";

const CHANGED: u8 = 1;
const WAITS: u8 = 2;

/// The longest one: everything else is none of ours.
pub(crate) const LONGEST: usize = 13 + WAITER + SEAL;
/// A door, an address and a port.
const WAITER: usize = 8 + 16 + 2;
/// The time and the code.
const SEAL: usize = 8 + CODE;

/// What is older than this, or further ahead, is a repetition, or comes from a machine whose clock is wrong.
const FRESH: Duration = Duration::from_secs(60);

/// What is said to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Saying {
    /// Something may have changed in the store.
    Changed,
    /// Somebody waits for what you hold: tell it when something changes.
    Waits(HintAddress),
}

/// Where a node is told something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct HintAddress {
    pub(crate) at: SocketAddr,
    pub(crate) door: u64,
}

/// Writes it down for the node behind a door, with a code if there is a key.
pub(crate) fn write(door: u64, saying: Saying, key: Option<&HintKey>, wall_ms: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(LONGEST);
    bytes.extend(MARK);
    bytes.push(match saying {
        Saying::Changed => CHANGED,
        Saying::Waits(_) => WAITS,
    });
    bytes.extend(door.to_be_bytes());
    if let Saying::Waits(waiter) = saying {
        bytes.extend(waiter.door.to_be_bytes());
        let ip = match waiter.at.ip() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            IpAddr::V6(ip) => ip,
        };
        bytes.extend(ip.octets());
        bytes.extend(waiter.at.port().to_be_bytes());
    }
    if let Some(key) = key {
        bytes.extend(wall_ms.to_be_bytes());
        bytes.extend(key.code(&bytes).unwrap_or_default());
    }
    bytes
}

/// Reads it: for which door it is, and what it says. Nothing if it isn't one, or isn't authentic or fresh
/// where there is a key.
pub(crate) fn read(bytes: &[u8], key: Option<&HintKey>, wall_ms: u64) -> Option<(u64, Saying)> {
    let body = match key {
        Some(key) => unsealed(bytes, key, wall_ms)?,
        None => bytes,
    };
    let (mark, rest) = body.split_first_chunk::<4>()?;
    let (kind, rest) = rest.split_first()?;
    let (door, rest) = rest.split_first_chunk::<8>()?;
    if *mark != MARK {
        return None;
    }
    let saying = match (*kind, rest) {
        (CHANGED, []) => Saying::Changed,
        (WAITS, waiter) => Saying::Waits(read_waiter(waiter)?),
        _ => return None,
    };
    Some((u64::from_be_bytes(*door), saying))
}

fn unsealed<'a>(bytes: &'a [u8], key: &HintKey, wall_ms: u64) -> Option<&'a [u8]> {
    let (message, code) = bytes.split_last_chunk::<CODE>()?;
    let (body, at) = message.split_last_chunk::<8>()?;
    let off = Duration::from_millis(u64::from_be_bytes(*at).abs_diff(wall_ms));
    (off <= FRESH && key.is_code(message, code)).then_some(body)
}

fn read_waiter(bytes: &[u8]) -> Option<HintAddress> {
    let (door, rest) = bytes.split_first_chunk::<8>()?;
    let (ip, rest) = rest.split_first_chunk::<16>()?;
    let (port, rest) = rest.split_first_chunk::<2>()?;
    let ip = Ipv6Addr::from(*ip);
    let ip = ip.to_ipv4_mapped().map_or(IpAddr::V6(ip), |ip: Ipv4Addr| IpAddr::V4(ip));
    let at = SocketAddr::new(ip, u16::from_be_bytes(*port));
    let sensible = rest.is_empty() && at.port() != 0 && !ip.is_unspecified() && !ip.is_multicast();
    sensible.then_some(HintAddress { at, door: u64::from_be_bytes(*door) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> HintKey {
        HintKey::new(text).unwrap()
    }

    fn sayings() -> [Saying; 3] {
        let at = |at: &str| HintAddress { at: at.parse().unwrap(), door: 99 };
        [Saying::Changed, Saying::Waits(at("10.0.0.7:7946")), Saying::Waits(at("[fd00::7]:1"))]
    }

    #[test]
    fn what_is_written_is_read() {
        let key = key("0123456789abcdef");
        for saying in sayings() {
            for key in [None, Some(&key)] {
                let bytes = write(7, saying, key, 1_000_000);
                assert!(bytes.len() <= LONGEST);
                assert_eq!(read(&bytes, key, 1_000_000), Some((7, saying)));
            }
        }
    }

    #[test]
    fn what_was_cut_changed_or_lengthened_is_nothing() {
        let key = key("0123456789abcdef");
        for saying in sayings() {
            let bytes = write(7, saying, Some(&key), 1_000_000);
            for length in 0..bytes.len() {
                assert_eq!(read(&bytes[..length], Some(&key), 1_000_000), None);
            }
            for place in 0..bytes.len() {
                let mut changed = bytes.clone();
                changed[place] ^= 1;
                assert_eq!(read(&changed, Some(&key), 1_000_000), None, "byte {place}");
            }
            let plain = write(7, saying, None, 0);
            assert_eq!(read(&[&plain[..], &[0]].concat(), None, 0), None);
            for length in 0..plain.len() {
                assert_eq!(read(&plain[..length], None, 0), None);
            }
        }
    }

    #[test]
    fn another_key_no_key_and_old_ones_are_refused() {
        let own = key("0123456789abcdef");
        let theirs = write(7, Saying::Changed, Some(&key("another key of them")), 1_000_000);
        assert_eq!(read(&theirs, Some(&own), 1_000_000), None);
        assert_eq!(read(&write(7, Saying::Changed, None, 0), Some(&own), 0), None);
        let bytes = write(7, Saying::Changed, Some(&own), 1_000_000);
        assert_eq!(read(&bytes, None, 1_000_000), None, "who has no key takes none with one");
        assert!(read(&bytes, Some(&own), 1_059_000).is_some(), "a repetition is only a repetition");
        assert!(read(&bytes, Some(&own), 1_061_000).is_none());
        assert!(read(&bytes, Some(&own), 900_000).is_none());
    }

    #[test]
    fn nobody_is_sent_to_nowhere_or_to_everybody() {
        for at in ["0.0.0.0:7", "224.0.0.1:7", "10.0.0.7:0", "[::]:7", "[ff02::1]:7"] {
            let waiter = HintAddress { at: at.parse().unwrap(), door: 1 };
            assert_eq!(read(&write(7, Saying::Waits(waiter), None, 0), None, 0), None, "{at}");
        }
    }
}
