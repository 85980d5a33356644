//! Whether and where a node takes hints from other nodes.

use std::net::{IpAddr, SocketAddr};

use super::key::HintKey;

/// Whether and where a node takes hints from other nodes, and the key by which they know each other's.
/// Only where the store pushes none: elsewhere nothing is opened and nothing sent.
///
/// By default a node takes hints on the loopback interface, from nodes of the same host and the same
/// network namespace. For others it needs an address and a key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HintSettings {
    pub(crate) place: HintPlace,
    pub(crate) key: Option<HintKey>,
}

/// Where hints are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum HintPlace {
    /// On the loopback interface, for nodes of the same host and network namespace.
    #[default]
    Loopback,
    /// Here, by who knows the key.
    At(SocketAddr),
    /// Nowhere, and none are sent.
    Nowhere,
}

/// Why settings for hints can't be used. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HintSettingsError {
    /// It is no address.
    #[error(
        "hints={0:?} is not understood: use auto, off, or an address of this machine and a port, such as \
         10.0.0.7:7946, or 10.0.0.7:0 for any port"
    )]
    Unread(String),
    /// The address names no machine.
    #[error(
        "hints={0} names no machine, and others couldn't send anything there: use the address by which \
         other nodes reach this one"
    )]
    Unspecific(SocketAddr),
    /// There is no key.
    #[error(
        "hints={0} needs a key that all nodes of the cluster share, so that nobody else sends hints: name \
         a file with INCUMBENT_HINT_KEY_FILE"
    )]
    Keyless(SocketAddr),
}

impl HintSettings {
    /// No hints: this node waits as the store makes it wait.
    #[must_use]
    pub fn off() -> Self {
        Self { place: HintPlace::Nowhere, key: None }
    }

    /// With a key: hints count only from those who know it, on the loopback interface too.
    #[must_use]
    pub fn with_key(mut self, key: HintKey) -> Self {
        self.key = Some(key);
        self
    }

    /// Hints are taken at this address of this machine, from those who know the key. Port 0 stands for any
    /// that is free. It has to be an address by which other nodes reach this machine: behind a
    /// translation of addresses there is none.
    ///
    /// # Errors
    /// If the address names no machine, as 0.0.0.0 doesn't.
    pub fn at(address: SocketAddr, key: HintKey) -> Result<Self, HintSettingsError> {
        Self { place: HintPlace::At(address), key: Some(key) }.checked()
    }

    /// As a setting says it: `auto`, `off`, or an address with its port.
    ///
    /// # Errors
    /// If it is none of these, names no machine, or needs a key.
    pub fn parse(place: &str, key: Option<HintKey>) -> Result<Self, HintSettingsError> {
        let place = match place.trim() {
            "auto" => HintPlace::Loopback,
            "off" => HintPlace::Nowhere,
            address => match address.parse() {
                Ok(address) => HintPlace::At(address),
                Err(_) => return Err(HintSettingsError::Unread(place.to_owned())),
            },
        };
        Self { place, key }.checked()
    }

    /// Whether there are any at all.
    pub(crate) fn is_on(&self) -> bool {
        self.place != HintPlace::Nowhere
    }

    fn checked(self) -> Result<Self, HintSettingsError> {
        match self.place {
            HintPlace::At(address) if !is_of_one(address.ip()) => {
                Err(HintSettingsError::Unspecific(address))
            }
            HintPlace::At(address) if self.key.is_none() => {
                Err(HintSettingsError::Keyless(address))
            }
            HintPlace::At(_) | HintPlace::Loopback | HintPlace::Nowhere => Ok(self),
        }
    }
}

/// Whether it is the address of one machine, to which alone something is sent.
fn is_of_one(ip: IpAddr) -> bool {
    let broadcast = matches!(ip, IpAddr::V4(ip) if ip.is_broadcast());
    !(ip.is_unspecified() || ip.is_multicast() || broadcast)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_not_be_used_is_told_with_the_next_step() {
        let key = || HintKey::new(b"0123456789abcdef").ok();
        for (text, key, parts) in [
            ("everywhere", key(), &["everywhere", "auto, off"][..]),
            ("10.0.0.7", key(), &["10.0.0.7:7946"]),
            ("0.0.0.0:7946", key(), &["0.0.0.0:7946", "names no machine"]),
            ("[::]:7946", key(), &["names no machine"]),
            ("224.0.0.1:7946", key(), &["names no machine"]),
            ("255.255.255.255:7946", key(), &["names no machine"]),
            ("10.0.0.7:7946", None, &["10.0.0.7:7946", "INCUMBENT_HINT_KEY_FILE"]),
        ] {
            let said = HintSettings::parse(text, key).unwrap_err().to_string();
            assert!(parts.iter().all(|part| said.contains(part)), "{said}");
        }
        assert_eq!(HintSettings::parse("auto", None), Ok(HintSettings::default()));
        assert_eq!(HintSettings::parse(" off ", None), Ok(HintSettings::off()));
        assert!(HintSettings::parse("10.0.0.7:0", key()).is_ok());
    }
}
