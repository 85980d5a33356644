//! chromedriver, by which tests steer a browser.

use rustix::process::Signal;

use super::{Recipe, Server, Site, program};

/// Starts one. Browsers are started by it, one for each `browser::Browser`.
#[must_use]
pub fn start() -> Server {
    let serve = |site: &Site| {
        let mut command = site.command(&program::required("chromedriver", "chromium-driver"));
        command.arg(format!("--port={}", site.port())).env("TMPDIR", site.path());
        // What the browser keeps goes to the directory too.
        command.env("HOME", site.path()).env("XDG_CONFIG_HOME", site.path());
        command
    };
    let recipe = Recipe {
        serve: Box::new(serve),
        ready: Site::listens,
        kill: Signal::KILL,
        end: Signal::TERM,
    };
    Server::new(Site::new("chromedriver"), recipe)
}
