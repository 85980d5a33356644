//! A forked child doesn't lead (O7).
#![cfg(target_os = "linux")]
#![allow(unsafe_code, reason = "forking can't be written without it")]

mod common;

use common::{join, memory, soon};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, fork};

#[tokio::test]
async fn o7_a_forked_child_does_not_trust_and_its_parent_goes_on() {
    let node = join(&memory(), "a").await;
    let mut campaign = node.campaign("scheduler").unwrap();
    let leadership = soon(campaign.elected()).await.unwrap();
    assert!(leadership.is_held());
    // SAFETY: the child only loads atomics and reads the clock, and then ends at once.
    let status = match unsafe { fork() }.unwrap() {
        ForkResult::Child => {
            let trusts = leadership.is_held()
                || node.is_leader("scheduler")
                || leadership.trust_left() > std::time::Duration::ZERO;
            // SAFETY: nothing of the parent's is to be dropped here.
            unsafe { nix::libc::_exit(i32::from(trusts)) }
        }
        ForkResult::Parent { child } => waitpid(child, None).unwrap(),
    };
    assert!(matches!(status, WaitStatus::Exited(_, 0)), "O7: the child trusts: {status:?}");
    assert!(leadership.is_held(), "what the child was told changes nothing here");
}
