//! Azurite, the emulator of Azure Blob Storage. It compares and swaps atomically, which most
//! emulators of object storage don't.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use rustix::process::Signal;

use super::{Recipe, Server, Site, build_directory, program};

const PACKAGE: &str = "azurite@3.35.0";

/// Names a server that is there already.
pub const VARIABLE: &str = "INCUMBENT_TEST_AZURE";

/// The URL of the server that the environment names, or of one that all tests of this process share.
#[must_use]
pub fn shared() -> String {
    static ONE: OnceLock<Server> = OnceLock::new();
    super::shared(VARIABLE, &ONE, start, |server| url(server.port(), "incumbent"))
}

/// Starts one.
#[must_use]
pub fn start() -> Server {
    let serve = |site: &Site| {
        let mut command = site.command(&program::required("node", "nodejs"));
        command.arg(script()).args(["--blobHost", "127.0.0.1", "--blobPort"]);
        command.arg(site.port().to_string()).arg("-l").arg(site.path());
        command.args(["--skipApiVersionCheck", "--silent", "--disableTelemetry"]);
        command
    };
    let recipe = Recipe {
        serve: Box::new(serve),
        ready: Site::listens,
        // It writes its index every five seconds and when it is told to end. Killed, it would lose
        // acknowledged writes, which the storage that it stands for doesn't.
        kill: Signal::TERM,
        end: Signal::KILL,
    };
    Server::new(Site::new("azurite"), recipe)
}

/// A container of the emulator at this port, which is made if need be.
#[must_use]
pub fn url(port: u16, container: &str) -> String {
    format!("az://{container}/p?endpoint=http://127.0.0.1:{port}&use_emulator=true&create=yes")
}

/// The script to run with node, installed with npm below the build directory if need be.
fn script() -> PathBuf {
    static SCRIPT: OnceLock<PathBuf> = OnceLock::new();
    let script = SCRIPT.get_or_init(|| {
        let below = build_directory().join("npm/azurite");
        let script = below.join("node_modules/azurite/dist/src/blob/main.js");
        if !script.is_file() {
            std::fs::create_dir_all(&below).expect("a directory");
            let mut npm = Command::new(program::required("npm", "npm"));
            npm.args(["install", "--no-save", "--no-audit", "--no-fund", "--prefix"]);
            let done = npm.arg(&below).arg(PACKAGE).stdin(Stdio::null()).output();
            let done = done.expect("npm runs");
            let said = String::from_utf8_lossy(&done.stderr);
            assert!(done.status.success(), "npm failed: {}", said.trim());
        }
        assert!(script.is_file(), "{PACKAGE} was installed, and its program isn't there");
        script
    });
    script.clone()
}
