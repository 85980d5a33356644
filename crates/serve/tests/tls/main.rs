//! Encrypted connections, real ones: who gets in by a certificate, and what becomes of everybody else.
#![cfg(target_os = "linux")]
#![allow(clippy::indexing_slicing, clippy::panic, reason = "this is test code")]
#![allow(clippy::unwrap_used, reason = "this is test code")]

#[path = "../common/mod.rs"]
mod common;
mod getting_in;
mod holding;
mod renewing;
mod stage;
mod strangers;
