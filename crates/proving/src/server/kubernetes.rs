//! Kubernetes' API server, for comparisons alone: incumbent has no store on it.

use std::path::Path;
use std::process::Command;

use rustix::process::Signal;

use super::{Recipe, Server, Site};

/// Who may do all.
const TOKEN: &str = "secret";

/// Starts this program before the etcd at this port.
///
/// # Panics
///
/// If its files can't be made.
#[must_use]
pub fn start(program: &Path, etcd: u16) -> Server {
    let site = Site::new("kubernetes");
    let tokens = format!("{TOKEN},admin,1,\"system:masters\"\n");
    std::fs::write(site.path().join("tokens.csv"), tokens).expect("a file");
    for arguments in [
        ["genrsa", "-out", "sa.key", "2048"].as_slice(),
        &["rsa", "-in", "sa.key", "-pubout", "-out", "sa.pub"],
    ] {
        let mut command = Command::new("openssl");
        site.prepare(command.current_dir(site.path()).args(arguments));
    }
    let program = program.to_owned();
    let serve = move |site: &Site| {
        let mut command = site.command(&program);
        command.arg(format!("--etcd-servers=http://127.0.0.1:{etcd}"));
        command.arg(format!("--secure-port={}", site.port()));
        command.args(["--bind-address=127.0.0.1", "--cert-dir=certificates"]);
        command.arg("--service-account-issuer=https://kubernetes.default.svc");
        command.args(["--service-account-key-file=sa.pub", "--token-auth-file=tokens.csv"]);
        command.args(["--service-account-signing-key-file=sa.key", "--authorization-mode=RBAC"]);
        command.args(["--service-cluster-ip-range=10.0.0.0/24"]);
        command.arg("--disable-admission-plugins=ServiceAccount");
        command
    };
    let (kill, end) = (Signal::KILL, Signal::KILL);
    Server::new(site, Recipe { serve: Box::new(serve), ready: Site::listens, kill, end })
}

/// Its URL, as the program under test takes it.
#[must_use]
pub fn url(server: &Server) -> String {
    format!("kubernetes://{TOKEN}@127.0.0.1:{}", server.port())
}
