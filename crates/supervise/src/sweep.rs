//! Killing and reaping everything below this process.

use std::io;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpgid, kill_process, kill_process_group, wait,
};

/// Between two rounds of killing: at first, and where something won't die.
const SHORTEST: Duration = Duration::from_micros(200);
const LONGEST: Duration = Duration::from_millis(20);

/// Makes this process the one to which orphans below it are given.
pub(crate) fn adopt_orphans() -> io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?)
}

/// Kills and reaps until nothing is left below this process; tells of each that was reaped.
///
/// What loses its parent becomes a child of this process, and is killed in the next round. That
/// there are no children left, which the kernel says, is the only end.
pub(crate) fn sweep(mut reaped: impl FnMut(Pid, WaitStatus)) {
    let mut round = SHORTEST;
    loop {
        for child in children() {
            // It may have ended meanwhile; then it is a child that was not reaped yet, so the
            // number is still its own.
            let _ = kill_process(child, Signal::KILL);
        }
        let mut some = false;
        let counted = |pid, status| {
            some = true;
            reaped(pid, status);
        };
        if reap(counted) {
            return;
        }
        round = if some { SHORTEST } else { (round * 2).min(LONGEST) };
        pause(round);
    }
}

/// Reaps all that have ended; says whether no child is left. A process with the id 1 owes this
/// to whatever becomes its child.
///
/// A child that Ctrl-Z has stopped goes on, should it not ignore the signal as it was told: nobody whom
/// the shell waits for has stopped with it, so a lease would be held for nothing by a terminal that
/// answers nobody.
pub fn reap(mut reaped: impl FnMut(Pid, WaitStatus)) -> bool {
    loop {
        match wait(WaitOptions::NOHANG | WaitOptions::UNTRACED) {
            Ok(Some((pid, status))) if status.stopped() => {
                if status.stopping_signal() == Some(Signal::TSTP.as_raw())
                    && let Ok(group) = getpgid(Some(pid))
                {
                    let _ = kill_process_group(group, Signal::CONT);
                }
            }
            Ok(Some((pid, status))) => reaped(pid, status),
            Ok(None) => return false,
            Err(Errno::INTR) => {}
            Err(_) => return true,
        }
    }
}

/// The children of all threads of this process.
fn children() -> Vec<Pid> {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let lists = tasks.map(|task| std::fs::read_to_string(task.path().join("children")));
    let mut children = Vec::new();
    for list in lists {
        match list {
            Ok(list) => children.extend(list.split_ascii_whitespace().filter_map(number)),
            // Kernels can be built without these lists.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return search(),
            Err(_) => {}
        }
    }
    children
}

/// The children of this process, found among all processes.
fn search() -> Vec<Pid> {
    let own = std::process::id().to_string();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter(|entry| {
            let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
            let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
            fields.split_ascii_whitespace().nth(1) == Some(own.as_str())
        })
        .filter_map(|entry| entry.file_name().to_str().and_then(number))
        .collect()
}

fn number(text: &str) -> Option<Pid> {
    text.parse().ok().and_then(Pid::from_raw)
}

fn pause(span: Duration) {
    if let Ok(span) = rustix::event::Timespec::try_from(span) {
        let _ = rustix::event::poll(&mut [], Some(&span));
    }
}
