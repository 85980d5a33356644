//! What `incumbent doctor` looks at, one kind of question a file.

pub(crate) mod access;
pub(crate) mod advice;
pub(crate) mod clocks;
pub(crate) mod finding;
#[cfg(target_os = "linux")]
pub(crate) mod part;
#[cfg(target_os = "linux")]
pub(crate) mod race;
#[cfg(target_os = "linux")]
mod racers;
#[cfg(target_os = "linux")]
pub(crate) mod supervision;
