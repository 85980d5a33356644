use std::path::{Path, PathBuf};
use std::process::Command;

/// Where a program is. Administrators' programs aren't on everybody's path, and Debian keeps those
/// of PostgreSQL by their version.
#[must_use]
pub fn find(name: &str) -> Option<PathBuf> {
    let versioned = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut places: Vec<PathBuf> = versioned.map(|entry| entry.path().join("bin")).collect();
    places.sort();
    places.reverse();
    let path = std::env::var_os("PATH").unwrap_or_default();
    places.extend(std::env::split_paths(&path));
    places.extend(["/usr/sbin", "/usr/local/sbin", "/usr/local/bin"].map(PathBuf::from));
    places.into_iter().map(|place| place.join(name)).find(|program| program.is_file())
}

/// The same for who can't do without it.
///
/// # Panics
///
/// If it isn't there.
pub(super) fn required(name: &str, package: &str) -> PathBuf {
    find(name).unwrap_or_else(|| {
        panic!(
            "no {name} was found: install it (on Debian: apt-get install {package}), or run the \
             tests with `cargo xtask test`, which does so"
        )
    })
}

/// A command that runs as another user if this is root, for programs that refuse to run as root.
pub(super) fn command_as(user: &str, program: &Path) -> Command {
    if !rustix::process::geteuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.arg(format!("--reuid={user}")).arg(format!("--regid={user}"));
    command.arg("--clear-groups").arg(program);
    command
}
