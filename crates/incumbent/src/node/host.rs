//! Which machine this is.

use incumbent_core::records::HostIdentity;

/// The machine's name, or `localhost` where it has none.
#[must_use]
pub fn name() -> String {
    let name = system_name();
    if name.is_empty() { "localhost".to_owned() } else { name }
}

/// Which process on which boot of which machine, where the system tells.
pub(crate) fn identity() -> Option<HostIdentity> {
    Some(HostIdentity { host: name(), boot: boot()?, pid: std::process::id(), evidence: None })
}

/// The kernel's id for this boot, where the system tells.
pub(crate) fn boot() -> Option<String> {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(boot.trim().to_owned())
}

#[cfg(unix)]
fn system_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(not(unix))]
fn system_name() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_default()
}
