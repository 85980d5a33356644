//! A PID namespace for the command.

use std::io;

use nix::sched::{CloneFlags, setns, unshare};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::process::{getegid, geteuid};
use rustix::thread::{
    CapabilitySet, capabilities, clear_ambient_capability_set, configure_capability_in_ambient_set,
    set_capabilities,
};

/// Lets the children of this process be in a PID namespace of their own. Without privileges that
/// takes a user namespace around it. To be called once, in a process without threads.
pub(crate) fn enter() -> io::Result<()> {
    if geteuid().is_root() && unshare(CloneFlags::CLONE_NEWPID).is_ok() {
        return Ok(());
    }
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWPID)?;
    // Everybody stays who they are; groups can only be mapped by who has given up changing them.
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    std::fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
    keep_capability_over_start()
}

/// The init has to mount, and starting a program takes all capabilities from an ordinary user
/// but the ambient ones.
fn keep_capability_over_start() -> io::Result<()> {
    let mut sets = capabilities(None)?;
    sets.inheritable |= CapabilitySet::SYS_ADMIN;
    set_capabilities(None, sets)?;
    configure_capability_in_ambient_set(CapabilitySet::SYS_ADMIN, true)?;
    Ok(())
}

/// Lets what this process starts from now on be in its own namespace again.
pub(crate) fn leave() -> io::Result<()> {
    let own = std::fs::File::open("/proc/self/ns/pid")?;
    Ok(setns(own, CloneFlags::CLONE_NEWPID)?)
}

/// Gives the new namespace its own view of processes. To be called by its init.
pub(crate) fn furnish() -> io::Result<()> {
    unshare(CloneFlags::CLONE_NEWNS)?;
    // Only this one mount is kept to ourselves: whatever else the command mounts is seen outside
    // as it would be without us, where it is allowed to.
    mount_change("/proc", MountPropagationFlags::PRIVATE)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("proc", "/proc", "proc", flags, None)?;
    // The command gets none of what this took.
    clear_ambient_capability_set()?;
    if !geteuid().is_root() {
        let mut sets = capabilities(None)?;
        sets.inheritable = CapabilitySet::empty();
        set_capabilities(None, sets)?;
    }
    Ok(())
}
