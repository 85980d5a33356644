//! Clusters of three servers that are parted from each other, and who stands for a lease on them.

pub(crate) mod contender;
pub(crate) mod net;
pub(crate) mod servers;

use std::process::Command;

/// The variable that tells a process what it has to do once it is in namespaces of its own.
const ROLE: &str = "INCUMBENT_FAULTS_ROLE";

/// Runs the test `child_process` of this file again in network and process namespaces of its own:
/// no other test is disturbed, and nothing that it started outlives it.
pub(crate) fn run_apart(role: &str) {
    let mut command = Command::new("unshare");
    if !rustix::process::geteuid().is_root() {
        command.arg("--map-root-user");
    }
    let status = command
        .args(["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "child_process", "--ignored", "--nocapture"])
        .env(ROLE, role)
        .status()
        .unwrap();
    assert!(
        status.success(),
        "{role}: {status}, see above. This test makes namespaces: run it as root, or where user \
         namespaces are allowed, with util-linux and iproute2 installed"
    );
}

/// What this process has to do.
pub(crate) fn role() -> String {
    std::env::var(ROLE).expect("to be run by another test")
}
