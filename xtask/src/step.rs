use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

/// One check.
pub(crate) struct Step {
    /// Its name on the command line.
    pub(crate) name: &'static str,
    /// What it checks, in a line.
    pub(crate) about: &'static str,
    pub(crate) run: fn(&mut Context) -> Result<Verdict>,
}

/// How a step ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It held.
    Passed,
    /// It ran tests and counted them.
    Tests(Counts),
    /// It didn't hold.
    Failed(String),
    /// It was not tried, and why.
    Skipped(String),
}

/// How tests ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
    /// Of those that passed, so many only when they were run again, alone.
    pub(crate) unsteady: u64,
}

/// What all steps share.
pub(crate) struct Context {
    pub(crate) root: PathBuf,
    pub(crate) full: bool,
    /// Variables for the tests: where the servers are.
    pub(crate) variables: Vec<(String, String)>,
    /// Kept alive until the end.
    pub(crate) servers: Vec<incumbent_proving::Server>,
}

impl Context {
    pub(crate) fn new(root: PathBuf, full: bool) -> Self {
        Self { root, full, variables: Vec::new(), servers: Vec::new() }
    }

    /// A cargo command in the workspace, with all variables set.
    pub(crate) fn cargo(&self, arguments: &[&str]) -> Command {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.current_dir(&self.root).args(arguments);
        self.prepare(&mut command);
        command
    }

    /// Sets all variables of a command.
    pub(crate) fn prepare(&self, command: &mut Command) {
        // What `cargo xtask` says about this very tool would make cargo build some crates anew.
        for (name, _) in std::env::vars_os() {
            let about_us = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_CRATE_", "CARGO_BIN_"];
            if about_us.iter().any(|start| name.to_string_lossy().starts_with(start)) {
                command.env_remove(name);
            }
        }
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        if self.full {
            command.env("INCUMBENT_TEST_FULL", "1");
        }
    }
}
