//! What tests, benchmarks and xtask share: private servers, paths to them that can be long and can
//! break, candidates and the checker of their histories, URLs with secrets in them. Not published.
#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking, its helpers too")]

#[cfg(feature = "candidates")]
mod arena;
#[cfg(feature = "candidates")]
mod authority;
#[cfg(feature = "browser")]
pub mod browser;
#[cfg(feature = "candidates")]
mod conformance;
#[cfg(feature = "candidates")]
mod distance;
#[cfg(feature = "candidates")]
mod fleet;
mod process;
#[cfg(feature = "candidates")]
mod proxy;
#[cfg(feature = "candidates")]
pub mod race;
#[cfg(feature = "candidates")]
mod roles;
#[cfg(feature = "candidates")]
mod secrets;
pub mod server;
#[cfg(feature = "candidates")]
pub mod store;

#[cfg(feature = "candidates")]
pub use arena::{Account, Entry, History, Loss, Order, Violation, ask, check, compete, stand};
#[cfg(feature = "candidates")]
pub use authority::Authority;
#[cfg(feature = "candidates")]
pub use conformance::{at, conforms, conforms_while_broken, passed};
#[cfg(feature = "candidates")]
pub use distance::hold_through_resets;
#[cfg(feature = "candidates")]
pub use fleet::Fleet;
pub use process::{Process, heard};
#[cfg(feature = "candidates")]
pub use proxy::{Mood, Proxy, Traffic, Wire};
#[cfg(feature = "candidates")]
pub use roles::{Role, RoleAsker};
#[cfg(feature = "candidates")]
pub use secrets::{SecretUrl, SecretUrls};
pub use server::Server;
