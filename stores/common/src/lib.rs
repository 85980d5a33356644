//! What the stores of incumbent share, and what isn't about one server.
//!
//! - [`StoreUrl`]: a URL taken apart strictly. [`shown`]: one as anybody may see it. [`Form`]: what
//!   the URLs of each store look like, and what is secret in them. [`absolute`]: one that means the
//!   same in another directory.
//! - [`Lane`]: one of a store's queues, with connections that are made in the background.
//! - [`Sent`] and [`Failure`]: what an error means for a caller and for the connection.
//! - [`Password`]: given, or in a file that is read for each connection.
//! - [`pause`]: the back-off between attempts to connect. [`locked`]: a lock that is never
//!   poisoned.
//!
//! It is for this workspace alone, and changes with it.

mod failure;
mod lane;
mod locked;
mod password;
mod pause;
mod url;

pub use failure::{Failure, Sent};
pub use lane::{Connect, Lane, LaneOptions, Session};
pub use locked::locked;
pub use password::{Password, secret_file, small_file};
pub use pause::pause;
pub use url::{
    Endpoint, Form, StoreUrl, absolute, decoded_bytes, encoded, has_secret, names_a_user, shown,
    shown_scheme, without_secrets,
};
