//! What the stores of incumbent share, and what isn't about one server.
//!
//! - [`StoreUrl`]: a URL taken apart strictly. [`Form`]: what the URLs of each store look like, which
//!   parameters they have, and what is secret in them. [`Options`]: those parameters, as declared.
//!   [`shown`]: a URL as anybody may see it. [`absolute`]: one that means the same in another
//!   directory.
//! - [`Secret`] and [`TlsFiles`]: given, or in files that are read for each connection. `Pem`: such a file.
//! - [`Lane`]: one of a store's queues, with connections that are made in the background. [`Lanes`]:
//!   the three of a store. [`first_of`]: a connection to any of several servers.
//! - [`Sent`] and [`Failure`]: what an error means for a caller and for the connection. [`settled`]:
//!   one answer for operations that were sent one by one. [`chain`]: an error with its causes.
//! - [`Hints`]: a connection on which a server tells of changes, and who wants to be woken.
//! - [`check_name`]: names that may be part of SQL text.
//! - [`choices!`]: the methods by which options are chosen.
//! - [`pause`]: the back-off between attempts to connect. [`locked`]: a lock that is never
//!   poisoned.
//!
//! It is for this workspace alone, and changes with it.

mod chain;
mod choices;
mod connecting;
mod failure;
mod hints;
mod lane;
mod lanes;
mod locked;
mod names;
mod pause;
mod secret;
mod settled;
mod tls;
mod url;

pub use chain::chain;
pub use connecting::{chance, first_of, within};
pub use failure::{Failure, Sent};
pub use hints::{Ear, Hints, Listen, Registry};
pub use lane::{Connect, Lane, LaneOptions, Lent, Session};
pub use lanes::{Lanes, lane_name};
pub use locked::locked;
pub use names::check_name;
#[cfg(feature = "hash")]
pub use names::cut;
pub use pause::pause;
pub use secret::{Secret, regular_file, secret_file, small_file, unreadable};
pub use settled::settled;
#[cfg(feature = "tls")]
pub use tls::{Pem, encrypt, provider};
pub use tls::{TlsFiles, TlsNames};
pub use url::{
    Endpoint, Environment, Form, Kind, Options, Parameter, StoreUrl, absolute, decoded_bytes,
    encoded, has_secret, misunderstood, names_a_user, process_environment, shown, shown_scheme,
    without_secrets,
};
