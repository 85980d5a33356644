//! `incumbent store init`: creates what incumbent needs in the store.

use serde_json::json;

use crate::exit::Outcome;
use crate::out::{plain, say};
use crate::session::Session;

/// What `--help` shows below.
pub(crate) const EXAMPLES: &str = "\
Anything that exists already stays as it is, so you can run this any number of times.

Examples:
  incumbent store init sqlite:app.db
  incumbent store init postgres://owner@db/app";

/// Opens the store, which creates what is missing.
pub(crate) async fn run(session: &Session) -> Outcome {
    let store = session.place.open().await?;
    let kind = store.capabilities().kind;
    if session.json {
        session.print_json(&json!({ "store": session.place.shown(), "kind": kind, "ready": true }));
    } else {
        say!("{} is ready ({kind}).", plain(&session.place.shown()));
    }
    Ok(())
}
