//! The conformance kit of incumbent: what every store must do, tried on yours.
//!
//! Whoever writes a store implements [`incumbent_core::store::Store`] and runs the kit from a
//! test. It opens the store several times, as several processes would, reads what the store
//! declares about itself, tries one property after another, and says openly what it skipped.
//!
//! ```
//! use std::sync::Arc;
//! use incumbent_testkit::{Conformance, Faults, ModelStore};
//!
//! # tokio::runtime::Builder::new_multi_thread().enable_time().build().unwrap().block_on(async {
//! // Here stands your store. Each call opens it anew; a clone is another handle of this one.
//! let store = ModelStore::sound();
//! let opener = move || {
//!     let handle = store.clone();
//!     async move { Ok(Arc::new(handle)) }
//! };
//!
//! let report = Conformance::new(opener.clone()).only(["create-once", "swap-once"]).run().await;
//! println!("{report}");
//! report.assert_passed();
//!
//! // And once more over a path that fails, where a write's outcome may be unknown.
//! let faulty = Conformance::new(opener).faults(Faults::mixed(7)).only(["swap-once"]);
//! faulty.run().await.assert_passed();
//! # });
//! ```
//!
//! - [`properties`] lists what is tried.
//! - [`FaultyStore`] puts any store behind a path that fails, for tests of your own.
//! - [`ModelStore`] is a small store that is right, or makes one chosen [`Mistake`]. That is how
//!   the kit shows that it bites: every mistake names the property that catches it.
//!
//! Numbers such as F10 and O6 stand for failures: `docs/failures.md` in the repository tells what happened
//! elsewhere (F) or here (O), and what happens now.

mod conformance;
mod context;
mod faulty;
mod handle;
mod linear;
mod locked;
mod model;
mod opener;
mod properties;
mod property;
mod report;
mod rng;
mod shape;
mod shown;
mod violation;

pub use conformance::{Conformance, Progress};
pub use context::Context;
pub use faulty::{Fault, Faults, FaultyStore};
pub use handle::{Effect, Handle};
pub use model::{Mistake, ModelStore};
pub use opener::{Opener, Opening};
pub use properties::properties;
pub use property::{Need, Property, Running};
pub use report::{Report, Row, Verdict};
pub use rng::Rng;
pub use violation::Violation;
