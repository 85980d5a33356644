//! incumbent over HTTP: leases for programs in any language, roles for load balancers and probes,
//! and all that operators look at and ask for. docs/http.md describes it, and `/openapi.json` is
//! the same for machines.
//!
//! `incumbent serve` is this crate as a program. An application mounts it under a prefix of its own:
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let store = incumbent::open("sqlite:app.db").await?;
//! let node = incumbent::Node::builder().name("billing-1").join(store).await?;
//! let service = incumbent_serve::Service::new(node, incumbent_serve::Options::default())?;
//! let app = axum::Router::<()>::new().nest("/incumbent", service.router());
//! # Ok(())
//! # }
//! ```
//!
//! Its own listeners (`Listener`) can encrypt, and ask for certificates: `Tls`, with the feature `tls`.
//!
//! # What makes it safe
//!
//! A client is told how long it may trust, and checks that by its own clock at the moment of use. What
//! was told is kept: a lease isn't freed while told trust may last, unless the client said that it has
//! ended, or its death is proven (`keeper.rs`, `ledger.rs`). Each hold is a member of its own, which gives
//! no evidence of this process, because its end says nothing about a client.

mod access;
mod agent;
mod audit;
mod body;
mod call;
mod certified;
mod clusters;
mod crowd;
mod cursor;
mod document;
mod documents;
mod events;
mod follow;
#[cfg(feature = "tls")]
mod grants;
mod hold;
mod holding;
mod holds;
mod keeper;
mod kept;
mod ledger;
mod lines;
mod listen;
mod looking;
mod metrics;
mod openapi;
mod page;
mod peer;
mod problem;
mod roles;
mod route;
mod routes;
mod service;
mod serving;
mod snapshot;
mod span;
mod steering;
#[cfg(feature = "tls")]
mod tls;
mod trust_file;
mod verdict;
mod watched;

pub use access::{Access, AccessError, Role};
pub use agent::agent_check;
pub use clusters::MOST_CLUSTERS;
pub use crowd::raise_file_limit;
pub use listen::{Address, Listener, ServeError};
pub use service::{Options, Service};
#[cfg(feature = "tls")]
pub use tls::{Tls, TlsError};
