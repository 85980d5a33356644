//! The measurements that need servers.

use std::time::Duration;

use anyhow::{Result, bail};

use crate::step::{Context, Verdict};
use crate::{process, servers};

const PATIENCE: Duration = Duration::from_secs(60 * 60);

/// Starts all servers, and the benchmark with their variables.
pub(crate) fn run(mut context: Context, arguments: &[String]) -> Result<bool> {
    if let Verdict::Failed(story) = servers::start_all(&mut context)? {
        bail!("{story}");
    }
    let features = ["--features", "all-stores", "--"];
    let mut command = context.cargo(&["run", "--profile", "bench", "--package", "incumbent-bench"]);
    let ran = process::run(command.args(features).args(arguments), PATIENCE, |_| {})?;
    if !ran.success {
        println!("{}", ran.story);
    }
    Ok(ran.success)
}
