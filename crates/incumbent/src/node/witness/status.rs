//! Whether this process has a witness, and if not, why.

use std::sync::{Mutex, PoisonError};

/// Whether this process has a witness: see [`init`](super::init).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Status {
    /// [`init`](super::init) was not called in this process, so that others wait the ttl should it
    /// die.
    NotInitialised {
        /// What would keep a witness from being of use here, if anything.
        hindrance: Option<String>,
    },
    /// The witness is being started.
    Starting,
    /// The witness looks after this process.
    Ready,
    /// [`init`](super::init) was called, and there is no witness all the same. Others wait the ttl.
    Unwatched {
        /// Why, and what to do about it.
        why: String,
    },
}

/// What became of the call of `init`, and in which process: a forked copy is another.
static LATEST: Mutex<Option<(u32, Status)>> = Mutex::new(None);

/// Whether this process has a witness, and if not, why.
#[must_use]
pub fn status() -> Status {
    let latest = LATEST.lock().unwrap_or_else(PoisonError::into_inner);
    match &*latest {
        Some((owner, status)) if *owner == std::process::id() => status.clone(),
        Some(_) | None => Status::NotInitialised { hindrance: hindrance() },
    }
}

pub(super) fn set(status: Status) {
    if let Status::Unwatched { why } = &status {
        tracing::warn!(why, "this process has no witness: if it dies, others wait for its ttl");
    }
    let mut latest = LATEST.lock().unwrap_or_else(PoisonError::into_inner);
    *latest = Some((std::process::id(), status));
}

/// What would keep a witness from being of use here.
pub(super) fn hindrance() -> Option<String> {
    if !cfg!(target_os = "linux") {
        return Some("witnesses need Linux".to_owned());
    }
    if std::process::id() == 1 {
        return Some(
            "this process is PID 1 of its container, and with it the kernel ends all others there, \
             the witness too: let a small init be PID 1 (docker run --init, or \
             shareProcessNamespace in Kubernetes)"
                .to_owned(),
        );
    }
    let own = std::fs::read_link("/proc/self").ok();
    let own =
        own.as_deref().and_then(|link| link.to_str()) == Some(&std::process::id().to_string());
    (!own).then(|| "/proc isn't mounted, or belongs to another PID namespace: mount it".to_owned())
}
