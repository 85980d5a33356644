//! Azurite, the emulator of Azure Blob Storage, from npm. It compares and swaps atomically, which
//! most emulators of object storage don't.

use anyhow::{Context as _, Result, bail};
use rustix::process::Signal;

use super::instance::{Place, Running};
use super::{Server, install};
use crate::tree;

pub(super) const SERVER: Server = Server {
    name: "azurite",
    store: "stores/object",
    variable: "INCUMBENT_TEST_AZURE",
    start,
    companions: &[],
};

const PACKAGE: &str = "azurite@3.35.0";

fn start() -> Result<Running> {
    // Where the tests of the store look for it, too: they start servers of their own to kill.
    let below = tree::root()?.join("target/npm/azurite");
    let script = below.join("node_modules/azurite/dist/src/blob/main.js");
    if !script.is_file() {
        std::fs::create_dir_all(&below)?;
        install::npm(PACKAGE, &below).context("Azurite")?;
    }
    if !script.is_file() {
        bail!("{PACKAGE} was installed, and its program isn't there");
    }
    let node = install::find("node").context("there is no node to run Azurite with")?;
    let place = Place::new("azurite", None)?;
    let mut serve = place.command(&node);
    serve.arg(script).args(["--blobHost", "127.0.0.1", "--blobPort"]).arg(place.port.to_string());
    serve.arg("-l").arg(place.path());
    serve.args(["--skipApiVersionCheck", "--silent", "--disableTelemetry"]);
    let endpoint = format!("http://127.0.0.1:{}", place.port);
    let url = format!("az://incumbent?endpoint={endpoint}&use_emulator=true&create=yes");
    place.start(&mut serve, Signal::KILL, url)
}
