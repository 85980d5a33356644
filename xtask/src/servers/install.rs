//! Getting servers that aren't there: with apt, npm or pip, and only where that needs no
//! password.

use std::process::Command;
use std::sync::Once;
use std::time::Duration;

use anyhow::{Result, bail};

use crate::process;

const PATIENCE: Duration = Duration::from_secs(15 * 60);

/// Installs packages of the distribution. Its lists are brought up to date once a run.
pub(crate) fn apt(packages: &[&str]) -> Result<()> {
    let by_hand = format!("apt-get install {}", packages.join(" "));
    if !on_path("apt-get") {
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
#[expect(dead_code, reason = "for servers that only npm has, which come with their stores")]
pub(crate) fn npm(package: &str, below: &std::path::Path) -> Result<()> {
    if !on_path("npm") {
        bail!("it is not installed, and there is no npm here: install {package} by hand");
    }
    run(Command::new("npm").args(["install", "--no-save", "--prefix"]).arg(below).arg(package))
}

/// Installs a package of pip below a directory.
#[expect(dead_code, reason = "for servers that only pip has, which come with their stores")]
pub(crate) fn pip(package: &str, below: &std::path::Path) -> Result<()> {
    if !on_path("pip") {
        bail!("it is not installed, and there is no pip here: install {package} by hand");
    }
    run(Command::new("pip").args(["install", "--quiet", "--target"]).arg(below).arg(package))
}

/// Whether a program can be found.
pub(crate) fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
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
