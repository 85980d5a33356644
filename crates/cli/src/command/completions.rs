//! `incumbent completions SHELL`.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::arguments::Arguments;
use crate::exit::Outcome;
use crate::out;

/// What `--help` shows below.
pub(crate) const EXAMPLES: &str = "\
Examples:
  incumbent completions bash > /etc/bash_completion.d/incumbent
  incumbent completions zsh > ~/.zfunc/_incumbent";

/// Which shell.
#[derive(Args, Debug)]
pub(crate) struct CompletionsArguments {
    /// The shell
    shell: Shell,
}

/// Prints the script.
pub(crate) fn run(arguments: &CompletionsArguments) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Arguments::command(), "incumbent", &mut script);
    out::bytes(&script);
    Ok(())
}
