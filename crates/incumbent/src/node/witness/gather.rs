//! Describing processes so that no others can be taken for them.

use std::io;

use incumbent_core::records::{Evidence, Mark, ProcessEvidence};

/// The kernel tells times in hundredths of a second, whatever its own clock does.
const TICKS: u64 = 100;

/// Describes the processes whose death proves that nothing of a member runs any more. With a
/// mark, the last of them must also have left this file.
///
/// The list has to be complete: whatever works for the member must have ended before the last of
/// these processes ends. To be handed to [`Builder::evidence`](crate::Builder::evidence).
///
/// # Errors
/// If one of them is gone, or the system doesn't tell what is needed. Then there is no evidence,
/// and others wait the ttl.
pub fn evidence(pids: &[u32], mark: Option<Mark>) -> io::Result<Evidence> {
    if std::fs::read_link("/proc/self")?.to_str() != Some(&std::process::id().to_string()) {
        return Err(io::Error::other("/proc belongs to another PID namespace"));
    }
    let processes = pids.iter().map(|pid| process(*pid)).collect::<io::Result<Vec<_>>>()?;
    let (pid_namespace, time_namespace) = namespaces()?;
    let cards = Some(cards()?);
    Ok(Evidence { pid_namespace, time_namespace, cards, processes, mark })
}

/// The inodes of the namespaces of process ids and of time.
#[cfg(unix)]
pub(super) fn namespaces() -> io::Result<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    let pid = std::fs::metadata("/proc/self/ns/pid")?.ino();
    let time = match std::fs::metadata("/proc/self/ns/time") {
        Ok(metadata) => metadata.ino(),
        // Kernels before 5.6 have one time for all.
        Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
        Err(error) => return Err(error),
    };
    Ok((pid, time))
}

#[cfg(not(unix))]
fn namespaces() -> io::Result<(u64, u64)> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The addresses of the machine's network cards, in order. What programs make up, such as the
/// bridges of containers, isn't among them: these come and go.
pub(super) fn cards() -> io::Result<Vec<String>> {
    let mut cards = Vec::new();
    for interface in std::fs::read_dir("/sys/class/net")? {
        let interface = interface?.path();
        if interface.join("device").exists() {
            cards.push(std::fs::read_to_string(interface.join("address"))?.trim().to_owned());
        }
    }
    cards.sort();
    Ok(cards)
}

/// How long this machine has been up, in the unit of [`start`].
pub(super) fn uptime() -> io::Result<u64> {
    let uptime = std::fs::read_to_string("/proc/uptime")?;
    let seconds = uptime.split(['.', ' ']).next().and_then(|seconds| seconds.parse::<u64>().ok());
    let ticks = seconds.map(|seconds| seconds.saturating_mul(TICKS));
    ticks.ok_or_else(|| io::Error::other("/proc/uptime makes no sense"))
}

#[cfg(target_os = "linux")]
fn process(pid: u32) -> io::Result<ProcessEvidence> {
    let pidfd = super::proof::open(pid)?;
    let inode = rustix::fs::fstat(&pidfd)?.st_ino;
    Ok(ProcessEvidence { pid, start: start(pid)?, inode })
}

#[cfg(not(target_os = "linux"))]
fn process(_: u32) -> io::Result<ProcessEvidence> {
    Err(io::ErrorKind::Unsupported.into())
}

/// When a process started, in ticks since boot.
pub(super) fn start(pid: u32) -> io::Result<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name stands in parentheses and may hold anything; what counts comes after the last.
    let fields = stat.rsplit_once(')').map(|(_, fields)| fields.split_ascii_whitespace());
    let start = fields.and_then(|mut fields| fields.nth(19)).and_then(|start| start.parse().ok());
    start.ok_or_else(|| io::Error::other(format!("/proc/{pid}/stat has no start time")))
}
