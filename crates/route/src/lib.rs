//! Brings HTTP requests to the leader of a lease, or to whoever runs the duty of a key: a tower layer,
//! for axum and everything else that tower knows.
//!
//! ```
//! use axum::{Router, routing::post};
//! use incumbent_route::RouteLayer;
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let store = incumbent::open("solo:").await?;
//! let builder = incumbent::Node::builder().name("broker-1").address("http://10.0.0.7:8080");
//! let node = builder.join(store).await?;
//! let _leading = node.campaign("broker")?; // or `lead`; `follow_only` if it shall never lead
//!
//! let app: Router = Router::new()
//!     .route("/jobs", post(async || "done"))
//!     .layer(RouteLayer::to_leader(&node, "broker"));
//! # Ok(())
//! # }
//! ```
//!
//! # What becomes of a request
//!
//! Who leads is decided when the request comes, by this node's own trust and nothing else.
//!
//! | this node | answer |
//! | --- | --- |
//! | leads | its own, under the term: the request has a [`Term`](incumbent::Term) among its extensions |
//! | knows another that leads | 307 to that one's [address](incumbent::Builder::address), path and query kept; a client sends method and body again. Or [forwarded](RouteLayer::forward), or [refused](RouteLayer::refuse) |
//! | knows nobody, or only what is [too old](RouteLayer::no_older_than) | 503 with `Retry-After` |
//! | stops leading while it answers | see below |
//!
//! **In a hand-over** nobody leads for a moment: 503 with `Retry-After`, nothing was done. A node that
//! is told to hand over takes no new requests, and ends those that it has: they run under
//! [`Term::guard`](incumbent::Term::guard), so that the lease isn't freed before they are gone, and
//! they are cut off when the work under the term ends or its time is over. A node whose trust ran out
//! cuts them off at once, and an answer that was ready too late is not sent. Both get a 503 *without*
//! `Retry-After`: what became of the request is unknown, as after a lost connection. So an answer of
//! the application's own left this node before any successor began. What its handlers write elsewhere
//! needs a fence all the same.
//!
//! # Never a loop
//!
//! - A request that was forwarded carries the header [`HOP`] and is never forwarded again: if this
//!   node doesn't lead either, it answers 503.
//! - Who redirects names the node that holds a term. That node has known of the term since it began.
//!   So if it doesn't lead any more, it answers 503, or names the holder of a *later* term; and none
//!   names the holder of an earlier term than it has seen. Each redirect leads to a later term, and
//!   there is no way back.
//! - Nobody sends anybody to its own address, nor to the one that the request was sent to, as it would
//!   be if all nodes told the address of a load balancer: 503, and the text says why.

mod address;
mod elsewhere;
mod keys;
mod layer;
mod service;
mod target;

pub use elsewhere::{Answer, Elsewhere, Forward, Redirect, Refuse};
pub use keys::KeyRouter;
pub use layer::RouteLayer;
pub use service::Route;
pub use target::{Found, Target, ToLeader, ToOwner};

/// The header of a request that was forwarded: the name of the node that did it, as far as a header
/// can hold it.
pub const HOP: http::HeaderName = http::HeaderName::from_static("incumbent-hop");
