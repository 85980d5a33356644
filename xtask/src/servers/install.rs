//! Getting servers that aren't there: with apt, npm or pip, and only where that needs no
//! password.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Once;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

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

/// Installs a package of npm below a directory.
pub(crate) fn npm(package: &str, below: &std::path::Path) -> Result<()> {
    if find("npm").is_none() {
        bail!("it is not installed, and there is no npm here: install {package} by hand");
    }
    run(Command::new("npm").args(["install", "--no-save", "--prefix"]).arg(below).arg(package))
}

/// Installs a package of pip below a directory.
pub(crate) fn pip(package: &str, below: &std::path::Path) -> Result<()> {
    if find("pip").is_none() {
        bail!("it is not installed, and there is no pip here: install {package} by hand");
    }
    run(Command::new("pip").args(["install", "--quiet", "--target"]).arg(below).arg(package))
}

/// Installs a package unless its program is there.
pub(crate) fn ensure(program: &str, package: &str) -> Result<PathBuf> {
    if let Some(found) = find(program) {
        return Ok(found);
    }
    apt(&[package])?;
    find(program).with_context(|| format!("{package} was installed, and {program} isn't there"))
}

/// Where a program is. Administrators' programs aren't on everybody's path.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places: Vec<PathBuf> = std::env::split_paths(&path).collect();
    places.extend(["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from));
    places.into_iter().map(|place| place.join(program)).find(|program| program.is_file())
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
