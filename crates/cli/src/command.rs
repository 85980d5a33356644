//! The commands, one a file.

pub(crate) mod ask;
pub(crate) mod completions;
pub(crate) mod doctor;
pub(crate) mod duties;
pub(crate) mod evict;
pub(crate) mod history;
pub(crate) mod intents;
pub(crate) mod leader;
pub(crate) mod man;
pub(crate) mod resign;
pub(crate) mod rollout;
#[cfg(target_os = "linux")]
pub(crate) mod run;
#[cfg(feature = "serve")]
pub(crate) mod serve;
pub(crate) mod status;
pub(crate) mod store;
pub(crate) mod top;
pub(crate) mod transfer;
pub(crate) mod watch;
