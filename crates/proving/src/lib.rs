//! What tests, benchmarks and xtask share: private servers, paths to them that can be long and can
//! break, candidates and the checker of their histories, URLs with secrets in them. Not published.
#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking, its helpers too")]

#[cfg(feature = "candidates")]
mod arena;
#[cfg(feature = "candidates")]
mod conformance;
#[cfg(feature = "candidates")]
mod distance;
#[cfg(feature = "candidates")]
mod proxy;
pub mod race;
#[cfg(feature = "candidates")]
mod secrets;
pub mod server;
#[cfg(feature = "candidates")]
pub mod store;

#[cfg(feature = "candidates")]
pub use arena::{Account, Entry, History, Loss, Order, Violation, ask, check, compete, stand};
#[cfg(feature = "candidates")]
pub use conformance::{breaking, passed};
#[cfg(feature = "candidates")]
pub use distance::{Reset, Trial, hold_through_resets};
#[cfg(feature = "candidates")]
pub use proxy::{Mood, Proxy, Traffic, Wire};
#[cfg(feature = "candidates")]
pub use secrets::{SecretUrl, SecretUrls};
pub use server::Server;
