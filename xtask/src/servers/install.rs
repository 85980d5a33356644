//! Getting programs that aren't there with apt, and only where that needs no password.

use std::process::Command;
use std::sync::Once;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use incumbent_proving::server::find;

use crate::process;

const PATIENCE: Duration = Duration::from_secs(15 * 60);

/// Installs packages of the distribution. Its lists are brought up to date once a run.
pub(crate) fn apt(packages: &[&str]) -> Result<()> {
    let by_hand = format!("apt-get install {}", packages.join(" "));
    if find("apt-get").is_none() {
        bail!("it is not installed, and there is no apt-get here: install it by hand");
    }
    if !rustix::process::geteuid().is_root() {
        bail!("it is not installed; as root, run: {by_hand}");
    }
    static UPDATED: Once = Once::new();
    let mut updated = Ok(());
    UPDATED.call_once(|| updated = run(Command::new("apt-get").args(["update", "-q"])));
    updated?;
    let mut install = Command::new("apt-get");
    install.args(["install", "-q", "-y", "--no-install-recommends"]).args(packages);
    run(install.env("DEBIAN_FRONTEND", "noninteractive"))
}

/// Installs a package unless its program is there.
pub(crate) fn ensure(program: &str, package: &str) -> Result<()> {
    if find(program).is_some() {
        return Ok(());
    }
    apt(&[package])?;
    let found = find(program).map(|_| ());
    found.with_context(|| format!("{package} was installed, and {program} isn't there"))
}

fn run(command: &mut Command) -> Result<()> {
    let shown = format!("{command:?}");
    println!("running {shown}");
    let ran = process::run(command, PATIENCE, |_| {})?;
    if !ran.success {
        bail!("{shown} failed: {}", ran.story);
    }
    Ok(())
}
