//! The measurements that need servers.

use std::time::Duration;

use anyhow::{Result, bail};

use crate::step::{Context, Verdict};
use crate::{process, servers};

const PATIENCE: Duration = Duration::from_secs(60 * 60);

/// Starts all servers, and the benchmark with their variables.
pub(crate) fn run(mut context: Context, arguments: &[String]) -> Result<bool> {
    if arguments.iter().any(|argument| matches!(argument.as_str(), "-h" | "--help")) {
        // Who only wants to know what there is needs no server.
        return bench(&context, arguments);
    }
    if arguments.first().is_some_and(|first| first == "peers") {
        return peers(&context, arguments);
    }
    if let Verdict::Failed(story) = servers::start_all(&mut context)? {
        bail!("{story}");
    }
    bench(&context, arguments)
}

/// incumbent beside its peers. The benchmark starts the servers itself, and a peer that can't be had is left
/// out there.
fn peers(context: &Context, arguments: &[String]) -> Result<bool> {
    servers::install_for_peers();
    // The benchmark starts the other one, which `run` alone wouldn't build.
    let build = ["build", "--profile", "bench", "--package", "incumbent-bench", "--bins"];
    let mut build = context.cargo(&build);
    let built = process::run(build.args(["--features", "all-stores"]), PATIENCE, |_| {})?;
    if !built.success {
        bail!("the benchmark can't be built: {}", built.story);
    }
    bench(context, arguments)
}

fn bench(context: &Context, arguments: &[String]) -> Result<bool> {
    let features = ["--features", "all-stores", "--"];
    let mut command = context.cargo(&["run", "--profile", "bench", "--package", "incumbent-bench"]);
    let ran = process::run(command.args(features).args(arguments), PATIENCE, |_| {})?;
    if !ran.success {
        println!("{}", ran.story);
    }
    Ok(ran.success)
}
