//! The header `Incumbent-Fence: lease/term`, and two layers for tower.
//!
//! [`AttachLayer`] puts it on the requests of a leader. [`GateLayer`] asks a gate before each request
//! and refuses a lower term than it has seen, with a problem document that says what to do:
//!
//! | status | type | when |
//! | --- | --- | --- |
//! | 412 Precondition Failed | `urn:incumbent:superseded` | the gate has seen a higher term |
//! | 428 Precondition Required | `urn:incumbent:fence-required` | there is no header |
//! | 400 Bad Request | `urn:incumbent:fence-unreadable` | the header isn't `lease/term` |
//! | 503 Service Unavailable, `Retry-After: 1` | `urn:incumbent:gate-unreachable` | the gate can't be asked |
//!
//! The gate has to be shared by all that serve, and durable: one of this crate's. What is let through
//! may still be on its way when a higher term comes. Where that matters, let the handler take the
//! [`Token`] from the request's extensions through a gate in the same transaction as its write; then
//! this layer only spares it what is stale already. And it is for honest clients: whoever may send
//! requests can send any term.
//!
//! ```no_run
//! # #[cfg(feature = "tokio-postgres")]
//! # fn example(client: std::sync::Arc<tokio_postgres::Client>) {
//! use incumbent_gate::http::GateLayer;
//! use incumbent_gate::{Token, postgres};
//!
//! let layer = GateLayer::new(move |token: Token| {
//!     let client = client.clone();
//!     async move { postgres::show(&client, token.lease(), &token).await }
//! });
//! # let _ = layer;
//! # }
//! ```

mod attach;
mod gate;

pub use attach::{Attach, AttachLayer};
pub use gate::{Gate, GateLayer};

use crate::{Token, TokenError};

/// The header's name.
pub const HEADER: http::HeaderName = http::HeaderName::from_static("incumbent-fence");

/// The token of a request, for handlers and clients without the layers.
///
/// # Errors
/// If the header is there and isn't `lease/term`, or is there twice.
pub fn token(headers: &http::HeaderMap) -> Result<Option<Token>, TokenError> {
    let mut values = headers.get_all(HEADER).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let text = value.to_str().unwrap_or("");
    match values.next() {
        None => text.parse().map(Some),
        Some(_) => format!("{text}, and another").parse().map(Some),
    }
}
