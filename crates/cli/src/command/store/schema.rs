//! `incumbent store schema`: what incumbent creates in the store.

use incumbent::sqlite::SqliteOptions;

use crate::exit::{Failure, Outcome};
use crate::out::say;
use crate::session::Session;

/// What `--help` shows below.
pub(crate) const EXAMPLES: &str = "\
Nothing is opened and nothing is changed. Hand it to whoever may create tables where you may not.

Examples:
  incumbent store schema sqlite:app.db
  incumbent store schema 'sqlite:app.db?prefix=election_' > schema.sql";

/// Prints it.
pub(crate) fn run(session: &Session) -> Outcome {
    let url = &session.place.url;
    match url.split_once(':').map(|(scheme, _)| scheme) {
        Some("sqlite") => {
            let options = SqliteOptions::parse(url).map_err(Failure::usage)?;
            say!("{}", options.schema().trim_end());
            Ok(())
        }
        Some("memory" | "solo") => {
            session.remark("A store in memory needs nothing created.");
            Ok(())
        }
        Some(scheme)
            if incumbent::schemes().iter().any(|it| it.trim_end_matches(':') == scheme) =>
        {
            Err(Failure::usage(format!(
                "a {scheme} store has no schema to print: `incumbent store init` makes what is \
                 missing"
            )))
        }
        Some(_) | None => Err(Failure::usage(format!(
            "{:?} is no store: this program knows {}",
            session.place.shown(),
            incumbent::schemes().join(", ")
        ))),
    }
}
