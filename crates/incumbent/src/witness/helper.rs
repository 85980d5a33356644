//! A process beside the program that sees its end, and closes its members.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::getppid;

use super::closing::{Ward, close};
use super::proof;

/// Tells the helper whose helper it is.
const PARENT: &str = "INCUMBENT_WITNESS_OF";

/// The way to the helper of this process, if it has one.
static HELPER: Mutex<Option<Helper>> = Mutex::new(None);

struct Helper {
    /// A forked copy of this process is somebody else, and has no helper.
    owner: u32,
    channel: UnixStream,
}

/// Starts a witness for this process: a helper process that waits for its death and then closes
/// its members in the store, so that nobody waits for their ttl, on whatever machine. To be
/// called first in `main`, for the helper is this very program, started again: there, this call
/// never returns.
///
/// From now on all nodes that join a store opened by its URL are looked after, and nodes on the
/// same machine are given evidence.
///
/// The proof is the death of this process with all its threads, told by the kernel. Processes
/// that the work has started may outlive it: run such work under `incumbent run`, which doesn't
/// leave any. If the helper dies, all is as without it.
///
/// ```no_run
/// fn main() -> Result<(), Box<dyn std::error::Error>> {
///     incumbent::witness::init()?; // before anything else
///     // … open a store, join, lead
///     Ok(())
/// }
/// ```
///
/// # Errors
/// If no process can be started. Nothing is wrong then but that others wait the ttl.
pub fn init() -> io::Result<()> {
    if let Some(parent) = std::env::var(PARENT).ok().and_then(|parent| parent.parse().ok()) {
        witness(parent);
        std::process::exit(0);
    }
    let (channel, end) = UnixStream::pair()?;
    Command::new("/proc/self/exe")
        .arg0("incumbent-witness")
        .env(PARENT, std::process::id().to_string())
        .stdin(OwnedFd::from(end))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // Signals of a terminal are for the program.
        .process_group(0)
        .spawn()?;
    let helper = Helper { owner: std::process::id(), channel };
    *HELPER.lock().unwrap_or_else(PoisonError::into_inner) = Some(helper);
    Ok(())
}

/// Whether this process has a witness.
pub(crate) fn is_active() -> bool {
    let helper = HELPER.lock().unwrap_or_else(PoisonError::into_inner);
    helper.as_ref().is_some_and(|helper| helper.owner == std::process::id())
}

/// Has the witness close this member, should this process die.
pub(crate) fn entrust(ward: &Ward) {
    let fields = [ward.member.as_str(), &ward.cluster, &ward.url];
    // Names have no control characters, and a URL that has some is nobody's.
    if !fields.iter().any(|field| field.contains(char::is_control)) {
        tell(&format!("+{}\n", fields.join("\t")));
    }
}

/// The member is over; there is nothing to close any more.
pub(crate) fn release(member: &str) {
    tell(&format!("-{member}\n"));
}

fn tell(line: &str) {
    let mut helper = HELPER.lock().unwrap_or_else(PoisonError::into_inner);
    let own = |helper: &&mut Helper| helper.owner == std::process::id();
    if let Some(helper) = helper.as_mut().filter(own)
        && helper.channel.write_all(line.as_bytes()).is_err()
    {
        // A helper that is dead is of no use; others wait the ttl.
        let _ = helper.channel.shutdown(Shutdown::Both);
    }
}

/// The helper itself.
fn witness(parent: u32) {
    let is_child =
        || getppid().is_some_and(|now| now.as_raw_nonzero().get().unsigned_abs() == parent);
    // It was the parent before and after, so the handle is the parent's and no stranger's.
    let (true, Ok(pidfd), true) = (is_child(), proof::open(parent), is_child()) else { return };
    let Ok(channel) = io::stdin().as_fd().try_clone_to_owned() else { return };
    for ward in wards(UnixStream::from(channel), &pidfd).values() {
        let _ = close(ward);
    }
}

/// Listens until the parent is dead; gives what it had entrusted. That the parent says no more
/// is no proof: its end of the conversation may be closed by mistake, or open in another process.
fn wards(channel: UnixStream, pidfd: &OwnedFd) -> BTreeMap<String, Ward> {
    let mut wards = BTreeMap::new();
    let mut lines = BufReader::new(channel);
    let mut listening = true;
    loop {
        let dead = wait(listening.then_some(&lines), pidfd);
        // What was said just before the end counts.
        let _ = lines.get_ref().set_nonblocking(dead);
        let mut line = String::new();
        while listening {
            line.clear();
            match lines.read_line(&mut line) {
                Ok(read) if read > 0 && line.ends_with('\n') => note(&mut wards, line.trim_end()),
                Ok(_) | Err(_) => listening = false,
            }
            if !dead && lines.buffer().is_empty() {
                break;
            }
        }
        if dead {
            return wards;
        }
    }
}

/// Waits for a word or for the end; says whether it is the end.
fn wait(lines: Option<&BufReader<UnixStream>>, pidfd: &OwnedFd) -> bool {
    let mut polled = vec![PollFd::new(pidfd, PollFlags::IN)];
    polled.extend(lines.map(|lines| PollFd::new(lines.get_ref(), PollFlags::IN)));
    let _ = poll(&mut polled, None);
    polled.first().is_some_and(|pidfd| pidfd.revents().contains(PollFlags::IN))
}

fn note(wards: &mut BTreeMap<String, Ward>, line: &str) {
    if let Some(member) = line.strip_prefix('-') {
        wards.remove(member);
    } else if let Some(line) = line.strip_prefix('+') {
        let mut fields = line.splitn(3, '\t').map(str::to_owned);
        if let (Some(member), Some(cluster), Some(url)) =
            (fields.next(), fields.next(), fields.next())
        {
            wards.insert(member.clone(), Ward { url, cluster, member });
        }
    }
}
