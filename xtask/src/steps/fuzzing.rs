//! Asks `incumbent serve` all sorts of questions that its OpenAPI document allows, and some that it doesn't.

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, bail};
use incumbent_proving::server::free_port;

use super::cargo::{FEATURES, plain};
use crate::clock;
use crate::process::Group;
use crate::step::{Context, Verdict};

/// The version whose words for options these are.
const PACKAGE: &str = "schemathesis==4.32.5";

/// How long the server may take to listen.
const PATIENCE: Duration = Duration::from_secs(60);

/// What must hold of every answer, and of every one but that of the roles: there 503 says who doesn't lead.
const DESCRIBED: &str =
    "response_schema_conformance,status_code_conformance,content_type_conformance";

pub(super) fn schemathesis(context: &mut Context) -> Result<Verdict> {
    // The program that the tests run: by itself it would have other features, and be built once more.
    let tests = ["test", "--workspace", "--features", FEATURES, "--test", "usage", "--no-run"];
    let built = plain(&mut context.cargo(&tests))?;
    if built != Verdict::Passed {
        return Ok(built);
    }
    let place = context.root.join("target/schemathesis");
    let program = installed(&place)?;
    let data = place.join("cluster.db");
    for file in ["cluster.db", "cluster.db-wal", "cluster.db-shm"] {
        let _ = std::fs::remove_file(place.join(file));
    }
    let (port, store) = (free_port(), format!("sqlite:{}", data.display()));
    let address = format!("127.0.0.1:{port}");
    // Cargo has put it beside this very program.
    let mut serve = Command::new(std::env::current_exe()?.with_file_name("incumbent"));
    context.prepare(&mut serve);
    serve.args(["--store", &store, "serve", "--node", "fuzzed", "--listen", &address]);
    let _server = Group::spawn(&mut serve)?;
    listens(&address)?;
    let url = format!("http://{address}/openapi.json");
    let examples = if context.full { "200" } else { "10" };
    let everything = format!("not_a_server_error,{DESCRIBED}");
    let rounds = [
        // Streams have no end, and files no schema.
        ["--exclude-path-regex", "(^/leader/|/hold$|/serve$|/events$|^/page/)", &everything],
        ["--include-path-regex", "^/leader/", DESCRIBED],
    ];
    for [option, paths, checks] in rounds {
        let mut fuzz = Command::new(&program);
        fuzz.current_dir(&place).args(["run", &url, option, paths, "--checks", checks]);
        fuzz.args(["--max-examples", examples, "--request-timeout", "70", "--no-color"]);
        fuzz.args(["--phases", "examples,coverage,fuzzing"]);
        let verdict = plain(&mut fuzz)?;
        if verdict != Verdict::Passed {
            return Ok(verdict);
        }
    }
    Ok(Verdict::Passed)
}

/// The program, installed into an environment of its own unless it is there.
fn installed(place: &Path) -> Result<PathBuf> {
    let program = place.join("bin/schemathesis");
    if !program.is_file() {
        run(Command::new("python3").args(["-m", "venv"]).arg(place))?;
        run(Command::new(place.join("bin/pip")).args(["install", "--quiet", PACKAGE]))?;
    }
    Ok(program)
}

fn run(command: &mut Command) -> Result<()> {
    if !command.status()?.success() {
        bail!("{command:?} failed");
    }
    Ok(())
}

fn listens(address: &str) -> Result<()> {
    let started = clock::now();
    while TcpStream::connect(address).is_err() {
        if started.elapsed() > PATIENCE {
            bail!("nobody listens on {address} after {PATIENCE:?}");
        }
        std::thread::park_timeout(Duration::from_millis(100));
    }
    Ok(())
}
