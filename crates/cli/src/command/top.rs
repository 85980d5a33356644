//! `incumbent top`: a live view of a cluster.

use std::io::IsTerminal;

use crate::exit::{Code, Failure, Outcome};
use crate::interrupt;
use crate::session::Session;
use crate::top;

/// What `--help` shows below.
pub(crate) const EXAMPLES: &str = "\
Members with their duties and load, leases with their leaders, duties with what is wrong first, and
the latest changes. It only looks: when the store pushes a hint, and once a second.

Keys: tab or ← → choose a part, ↑ ↓ PgUp PgDn Home End scroll it, / filters by a text, Esc shows all
again, p pauses the display, q quits.

Examples:
  incumbent top
  incumbent --store sqlite:app.db --cluster billing top";

/// Shows the view until the user quits.
pub(crate) async fn run(session: &Session) -> Outcome {
    if session.json {
        return Err(Failure::usage("top is a live view: use `incumbent status --json` for JSON"));
    }
    if !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
        return Err(Failure::usage(
            "top needs a terminal: `incumbent status` prints how things stand, and `incumbent \
             watch` each change",
        ));
    }
    tokio::select! {
        watched = top::run(session) => watched,
        signal = interrupt::received() => {
            Err(Failure::new(Code::Interrupted, format!("interrupted by {signal}")))
        }
    }
}
