//! The commands, one a file.

pub(crate) mod completions;
pub(crate) mod evict;
pub(crate) mod history;
pub(crate) mod leader;
pub(crate) mod man;
pub(crate) mod resign;
pub(crate) mod status;
pub(crate) mod store;
pub(crate) mod transfer;
pub(crate) mod watch;
