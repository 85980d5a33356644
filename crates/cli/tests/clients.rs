//! The clients for other languages, through the same scenarios: real processes that are told to resign, killed and
//! paused, at sidecars that are killed, paused and started again. What they wrote down about their own trust is laid
//! side by side: never do two trust at one instant, and terms grow (F6, F9, F10, F11, F61, F66, F72).
//!
//! `INCUMBENT_TEST_FULL=1` plays eight rounds instead of one, and `INCUMBENT_TEST_ROUNDS` any number.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "this is test code, although not all of it is a test"
)]
#![cfg(target_os = "linux")]

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use incumbent_proving::{Fleet, check};
use rustix::process::{Pid, Signal, kill_process};

const PROGRAM: &str = env!("CARGO_BIN_EXE_incumbent");
const TTL: Duration = Duration::from_secs(3);

#[test]
fn never_two_that_trust_at_one_instant_in_any_language() {
    let directory = tempfile::tempdir().unwrap();
    let languages = languages(directory.path());
    assert!(!languages.is_empty(), "not one of python3, node with npm, and go is here");
    // Clients of one sidecar are known by their Unix socket, those of the other by what they ask over TCP.
    let store = format!("sqlite:{}", directory.path().join("cluster.db").display());
    let unix = directory.path().join("socket");
    let address = format!("127.0.0.1:{}", incumbent_proving::server::free_port());
    let mut sidecars = [
        Sidecar::start(&store, "near", vec!["--unix".into(), unix.clone().into()]),
        Sidecar::start(&store, "far", vec!["--listen".into(), address.clone().into()]),
    ];
    let urls = [format!("unix:{}", unix.display()), format!("http://{address}")];
    let mut fleet = Fleet::empty(directory.path());
    for program in &languages {
        urls.iter().for_each(|url| fleet.join(program, url));
    }
    for _ in 0..rounds() {
        let leader = fleet.next_leader();
        fleet.pause(Duration::from_millis(500));
        fleet.tell_to_resign(leader);

        let leader = fleet.next_leader();
        fleet.stop_until_replaced(leader);
        fleet.signal(leader, Signal::CONT);

        let leader = fleet.next_leader();
        fleet.replace_killed(leader);

        fleet.next_leader();
        resign(&store);

        // The holder's own sidecar: it is trusted until what was told has run out, and no longer.
        let leader = fleet.next_leader();
        let at = usize::from(fleet.url(leader) == urls[1]);
        sidecars[at].restart();

        let leader = fleet.next_leader();
        let at = usize::from(fleet.url(leader) == urls[1]);
        sidecars[at].signal(Signal::STOP);
        fleet.await_election();
        sidecars[at].signal(Signal::CONT);
    }
    fleet.pause(TTL);
    let histories = fleet.stop();
    match check(&histories) {
        Ok(account) => {
            println!("{} terms, {} questions answered with yes", account.terms, account.yes);
            assert!(account.terms >= 6 * rounds(), "{account:?}");
        }
        Err(violation) => panic!("{violation}"),
    }
}

/// `incumbent serve`, as a process.
struct Sidecar {
    arguments: Vec<OsString>,
    child: Child,
}

impl Sidecar {
    fn start(store: &str, node: &str, listens: Vec<OsString>) -> Self {
        let mut arguments: Vec<OsString> =
            ["--store", store, "--cluster", "clients", "serve", "--node", node]
                .map(OsString::from)
                .into();
        arguments.extend(["--ttl".into(), "3s".into()]);
        arguments.extend(listens);
        Self { child: spawn(&arguments), arguments }
    }

    fn restart(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.child = spawn(&self.arguments);
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
    }
}

impl Drop for Sidecar {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(arguments: &[OsString]) -> Child {
    Command::new(PROGRAM)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// An operator asks the holder to resign: the client is told by its stream. Nobody may hold it at that moment.
fn resign(store: &str) {
    let asked = Command::new(PROGRAM)
        .args(["--store", store, "--cluster", "clients", "resign", "lease"])
        .output()
        .unwrap();
    println!("resign: {}", String::from_utf8_lossy(&asked.stderr));
}

fn rounds() -> usize {
    let full = std::env::var("INCUMBENT_TEST_FULL").is_ok_and(|full| full == "1");
    let rounds = std::env::var("INCUMBENT_TEST_ROUNDS").ok().and_then(|rounds| rounds.parse().ok());
    rounds.unwrap_or(if full { 8 } else { 1 })
}

/// How a candidate of each language is started. One that is missing here is said to be.
fn languages(scratch: &Path) -> Vec<Vec<OsString>> {
    let clients = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../clients");
    let ways = [
        ("Python", python(&clients)),
        ("Node.js", node(&clients, scratch)),
        ("Go", go(&clients, scratch)),
    ];
    let known = |(language, program): (&str, Option<Vec<OsString>>)| {
        if program.is_none() {
            println!("{language} is left out: it is not installed here");
        }
        program
    };
    ways.into_iter().filter_map(known).collect()
}

fn python(clients: &Path) -> Option<Vec<OsString>> {
    let python = incumbent_proving::server::find("python3")?;
    Some(vec![python.into(), "-B".into(), clients.join("python/conformance/candidate.py").into()])
}

fn node(clients: &Path, scratch: &Path) -> Option<Vec<OsString>> {
    let node = incumbent_proving::server::find("node")?;
    let npm = incumbent_proving::server::find("npm")?;
    let copy = scratch.join("typescript");
    run(Command::new("cp").arg("-r").arg(clients.join("typescript")).arg(&copy));
    run(Command::new(npm)
        .args(["install", "--no-audit", "--no-fund", "--silent"])
        .current_dir(&copy));
    run(Command::new(&node).arg("node_modules/typescript/bin/tsc").current_dir(&copy));
    Some(vec![node.into(), copy.join("conformance/candidate.js").into()])
}

fn go(clients: &Path, scratch: &Path) -> Option<Vec<OsString>> {
    let go = incumbent_proving::server::find("go")?;
    let program: PathBuf = scratch.join("go-candidate");
    let mut build = Command::new(go);
    run(build
        .arg("build")
        .arg("-o")
        .arg(&program)
        .arg("./conformance/candidate")
        .current_dir(clients.join("go")));
    Some(vec![program.into()])
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
