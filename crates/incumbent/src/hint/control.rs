//! Which address means which node, and for whom.

use std::net::SocketAddr;

use incumbent_core::records::{Control, Profile};

use super::datagram::HintAddress;
use crate::node::host;

/// Where a node is told something, once it is clear that it can be told from here.
pub(crate) type HintTarget = HintAddress;

/// Where this process is: on which boot of which machine, and in which network namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HintSite {
    boot: Option<String>,
    network: Option<u64>,
}

impl HintSite {
    /// As the system tells. Where it doesn't, nobody is known to be in the same place.
    pub(crate) fn here() -> Self {
        Self { boot: host::boot(), network: network() }
    }

    /// What a profile says about a socket at this address.
    pub(crate) fn control(&self, own: HintAddress) -> Control {
        Control {
            at: own.at.to_string(),
            door: format!("{:016x}", own.door),
            network: self.network.filter(|_| own.at.ip().is_loopback()),
        }
    }

    /// Whether somebody can be told something on the loopback interface.
    pub(crate) fn is_known(&self) -> bool {
        self.boot.is_some() && self.network.is_some()
    }

    /// Where to tell the node something that says this about itself. A loopback address counts only on
    /// the same boot and in the same network namespace, for it means somebody else everywhere else; any
    /// other only with a key, for its owner takes nothing without.
    pub(crate) fn target(&self, profile: &Profile, keyed: bool) -> Option<HintTarget> {
        let control = profile.control.as_ref()?;
        let at: SocketAddr = control.at.parse().ok()?;
        let door = u64::from_str_radix(&control.door, 16).ok()?;
        let reached = if at.ip().is_loopback() {
            let boot = profile.host.as_ref().map(|host| &host.boot);
            self.is_known() && boot == self.boot.as_ref() && control.network == self.network
        } else {
            keyed && !at.ip().is_unspecified() && !at.ip().is_multicast()
        };
        (reached && at.port() != 0).then_some(HintAddress { at, door })
    }
}

/// The inode of the network namespace, where the system has such.
#[cfg(target_os = "linux")]
fn network() -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    Some(std::fs::metadata("/proc/self/ns/net").ok()?.ino())
}

#[cfg(not(target_os = "linux"))]
fn network() -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use incumbent_core::records::HostIdentity;

    use super::*;

    fn place(boot: &str, network: u64) -> HintSite {
        HintSite { boot: Some(boot.to_owned()), network: Some(network) }
    }

    fn profile(of: &HintSite, at: &str) -> Profile {
        let own = HintAddress { at: at.parse().unwrap(), door: 0xfeed_0000_0000_0007 };
        let boot = of.boot.clone().unwrap();
        let host = HostIdentity { host: "vm".to_owned(), boot, pid: 1, evidence: None };
        let control = Some(of.control(own));
        Profile { host: Some(host), control, ..Profile::named("a") }
    }

    #[test]
    fn loopback_means_this_host_and_this_network_alone() {
        let here = place("boot", 1);
        let near = profile(&here, "127.0.0.1:4711");
        let target = here.target(&near, false).unwrap();
        assert_eq!(
            (target.at.to_string().as_str(), target.door),
            ("127.0.0.1:4711", 0xfeed_0000_0000_0007)
        );
        for elsewhere in [place("another boot", 1), place("boot", 2)] {
            assert_eq!(elsewhere.target(&near, true), None);
            assert_eq!(here.target(&profile(&elsewhere, "127.0.0.1:4711"), true), None);
        }
        let nowhere = HintSite { boot: None, network: None };
        assert_eq!(nowhere.target(&near, true), None);
    }

    #[test]
    fn other_addresses_need_a_key() {
        let (here, there) = (place("boot", 1), place("another boot", 2));
        let far = profile(&there, "10.0.0.7:4711");
        assert!(here.target(&far, true).is_some());
        assert_eq!(here.target(&far, false), None);
    }

    #[test]
    fn nonsense_is_nowhere() {
        let here = place("boot", 1);
        for (at, door) in [
            ("127.0.0.1:4711", "no number"),
            ("127.0.0.1:4711", "112233445566778899"),
            ("127.0.0.1", "7"),
            ("127.0.0.1:0", "7"),
            ("0.0.0.0:7", "7"),
            ("224.0.0.1:7", "7"),
            ("example.com:7", "7"),
        ] {
            let mut profile = profile(&here, "127.0.0.1:1");
            let control = Control { at: at.to_owned(), door: door.to_owned(), network: Some(1) };
            profile.control = Some(control);
            assert_eq!(here.target(&profile, true), None, "{at} {door}");
        }
    }
}
