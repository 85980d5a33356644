//! A process beside the program that sees its end, and closes its members.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::getppid;

use super::closing::{Ward, close};
use super::proof;
use super::status::{self, Status};

/// Tells the helper whose helper it is.
const PARENT: &str = "INCUMBENT_WITNESS_OF";

/// The way to the helper of this process, if it has one.
static HELPER: Mutex<Option<Helper>> = Mutex::new(None);

struct Helper {
    /// A forked copy of this process is somebody else, and has no helper.
    owner: u32,
    lines: SyncSender<String>,
}

/// What the helper says once it has got to `init`.
const READY: &[u8] = b"r";

/// A helper that doesn't get there in this time won't.
const LONGEST_START: Duration = Duration::from_secs(30);

/// Members that were entrusted, also before there was a helper, and by which process: a forked
/// copy must not answer for those of its parent.
static WARDS: Mutex<(u32, BTreeMap<String, String>)> = Mutex::new((0, BTreeMap::new()));

/// So many lines wait at most for a helper that doesn't read, because it was stopped.
const WAITING: usize = 1024;

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
/// Behind a flag, or after something that doesn't return, the helper never gets here. Then it is
/// ended, a warning is logged, and [`status`](super::status()) says so; it can't join in the
/// meantime. The same is said where a witness is of no use, as for PID 1 of a container.
///
/// # Errors
/// If no process can be started. Nothing is wrong then but that others wait the ttl.
pub fn init() -> io::Result<()> {
    if let Some(parent) = whose_witness().and_then(|parent| parent.parse().ok()) {
        witness(parent);
        std::process::exit(0);
    }
    if let Some(why) = status::hindrance() {
        status::set(Status::Unwatched { why });
        return Ok(());
    }
    start().inspect_err(|error| {
        status::set(Status::Unwatched { why: format!("no process could be started: {error}") });
    })
}

/// The process whose witness this one was started as, if it was.
pub(crate) fn whose_witness() -> Option<String> {
    std::env::var(PARENT).ok()
}

fn start() -> io::Result<()> {
    let (channel, end) = UnixStream::pair()?;
    let answers = channel.try_clone()?;
    status::set(Status::Starting);
    let child = Command::new("/proc/self/exe")
        .arg0("incumbent-witness")
        .env(PARENT, std::process::id().to_string())
        .stdin(OwnedFd::from(end))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // Signals of a terminal are for the program.
        .process_group(0)
        .spawn()?;
    let (lines, waiting) = sync_channel(WAITING);
    // Writing may block, so that it is done where nothing hangs on it (O3).
    std::thread::Builder::new()
        .name("incumbent-words".to_owned())
        .spawn(move || pass_on(&waiting, channel))?;
    std::thread::Builder::new()
        .name("incumbent-witness".to_owned())
        .spawn(move || look_after(child, answers))?;
    // Those that joined before are looked after too.
    for line in own_wards().1.values() {
        let _ = lines.try_send(line.clone());
    }
    let helper = Helper { owner: std::process::id(), lines };
    *HELPER.lock().unwrap_or_else(PoisonError::into_inner) = Some(helper);
    Ok(())
}

/// Waits until the helper is ready, and then for its end, which ought not to come.
fn look_after(mut child: Child, mut answers: UnixStream) {
    let mut answer = [0; 1];
    let _ = answers.set_read_timeout(Some(LONGEST_START));
    let began = answers.read_exact(&mut answer).is_ok();
    if began {
        status::set(Status::Ready);
        let _ = answers.set_read_timeout(None);
        // It says nothing more: this ends with the helper.
        let _ = answers.read(&mut answer);
    }
    // Else it is this very program, running a second time.
    let _ = child.kill();
    let _ = child.wait();
    let why = if began {
        "the witness has ended, or was killed"
    } else {
        "the witness is this program, started again without arguments, and did not get to \
         `witness::init()`: call it first in `main`, unconditionally"
    };
    status::set(Status::Unwatched { why: why.to_owned() });
    *HELPER.lock().unwrap_or_else(PoisonError::into_inner) = None;
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
        let line = format!("+{}\n", fields.join("\t"));
        own_wards().1.insert(ward.member.clone(), line.clone());
        tell(line);
    }
}

/// The member is over; there is nothing to close any more.
pub(crate) fn release(member: &str) {
    own_wards().1.remove(member);
    tell(format!("-{member}\n"));
}

/// The members of this very process.
fn own_wards() -> MutexGuard<'static, (u32, BTreeMap<String, String>)> {
    let mut wards = WARDS.lock().unwrap_or_else(PoisonError::into_inner);
    if wards.0 != std::process::id() {
        *wards = (std::process::id(), BTreeMap::new());
    }
    wards
}

/// Never waits. What a helper that is dead or stopped doesn't hear does no harm: others wait the
/// ttl, or it closes what is closed already.
fn tell(line: String) {
    let helper = HELPER.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(helper) = helper.as_ref().filter(|helper| helper.owner == std::process::id()) {
        let _ = helper.lines.try_send(line);
    }
}

/// Writes lines to the helper for as long as it reads.
fn pass_on(lines: &Receiver<String>, mut channel: UnixStream) {
    while let Ok(line) = lines.recv() {
        if channel.write_all(line.as_bytes()).is_err() {
            let _ = channel.shutdown(Shutdown::Both);
            return;
        }
    }
}

/// The helper itself.
fn witness(parent: u32) {
    let is_child =
        || getppid().is_some_and(|now| now.as_raw_nonzero().get().unsigned_abs() == parent);
    // It was the parent before and after, so the handle is the parent's and no stranger's.
    let (true, Ok(pidfd), true) = (is_child(), proof::open(parent), is_child()) else { return };
    let Ok(channel) = io::stdin().as_fd().try_clone_to_owned() else { return };
    let mut channel = UnixStream::from(channel);
    if channel.write_all(READY).is_err() {
        return;
    }
    for ward in wards(channel, &pidfd).values() {
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
