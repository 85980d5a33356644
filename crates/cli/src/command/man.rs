//! `incumbent man`.

use std::path::PathBuf;

use clap::{Args, CommandFactory};

use crate::arguments::Arguments;
use crate::exit::{Failure, Outcome};
use crate::out;

/// What `--help` shows below.
pub(crate) const EXAMPLES: &str = "\
Examples:
  incumbent man | man -l -
  incumbent man --dir /usr/local/share/man/man1";

/// Where to.
#[derive(Args, Debug)]
pub(crate) struct ManArguments {
    /// Write one page for each command into this directory, instead of printing the first
    #[arg(long, value_name = "DIRECTORY")]
    dir: Option<PathBuf>,
}

/// Prints or writes the manual.
pub(crate) fn run(arguments: &ManArguments) -> Outcome {
    let command = Arguments::command();
    match &arguments.dir {
        Some(directory) => clap_mangen::generate_to(command, directory).map_err(|error| {
            let directory = directory.display();
            Failure::usage(format!(
                "the pages can't be written to {directory}: {error}. Name a directory that \
                 exists and that you may write to"
            ))
        }),
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(command).render(&mut page)?;
            out::bytes(&page);
            Ok(())
        }
    }
}
