//! A forked child can join on its own account, without a runtime of its own (O7). It is alone in
//! its file, so that no other thread holds a lock while it forks.
#![cfg(target_os = "linux")]
#![allow(unsafe_code, reason = "forking can't be written without it")]

mod common;

use std::sync::mpsc;
use std::time::Duration;

use common::{builder, memory};
use incumbent::blocking::Wait;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, fork};

/// Whether a callback is called, which only happens where tasks run.
fn is_told(name: &str) -> bool {
    let Ok(node) = builder(name).join(memory()).wait() else { return false };
    let (sender, told) = mpsc::channel();
    let observer = node.on_notice(move |_| {
        let _ = sender.send(());
    });
    observer.detach();
    told.recv_timeout(Duration::from_secs(10)).is_ok()
}

#[test]
fn o7_tasks_run_in_a_forked_child_too() {
    assert!(is_told("parent"));
    // SAFETY: no thread of the parent's holds a lock for more than a moment, and the alarm ends a
    // child that waits for one.
    let status = match unsafe { fork() }.unwrap() {
        ForkResult::Child => {
            // SAFETY: these only ask the system; nothing of the parent's is to be dropped here.
            unsafe {
                nix::libc::alarm(30);
                nix::libc::_exit(i32::from(!is_told("child")))
            }
        }
        ForkResult::Parent { child } => waitpid(child, None).unwrap(),
    };
    assert!(matches!(status, WaitStatus::Exited(_, 0)), "O7: nothing runs there: {status:?}");
}
