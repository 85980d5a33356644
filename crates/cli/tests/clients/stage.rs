//! Sidecars, and the programs of each language that are their clients.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

const PROGRAM: &str = env!("CARGO_BIN_EXE_incumbent");

/// `incumbent serve`, as a process.
pub(crate) struct Sidecar {
    arguments: Vec<OsString>,
    child: Child,
}

impl Sidecar {
    pub(crate) fn start(store: &str, node: &str, listens: Vec<OsString>) -> Self {
        let mut arguments: Vec<OsString> =
            ["--store", store, "--cluster", "clients", "serve", "--node", node]
                .map(OsString::from)
                .into();
        arguments.extend(["--ttl".into(), "3s".into()]);
        arguments.extend(listens);
        Self { child: spawn(&arguments), arguments }
    }

    /// Kills it, and starts it again at once.
    pub(crate) fn restart(&mut self) {
        self.kill();
        self.start_again();
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits until it has ended in order, as it was told to.
    pub(crate) fn wait(&mut self) {
        assert!(self.child.wait().unwrap().success());
    }

    pub(crate) fn start_again(&mut self) {
        self.child = spawn(&self.arguments);
    }

    pub(crate) fn signal(&self, signal: Signal) {
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

/// Two sidecars of one store in this directory, and where they are found: the clients of the first are known by their
/// Unix socket, those of the other by what they ask over TCP.
pub(crate) fn near_and_far(directory: &Path) -> (String, [Sidecar; 2], [String; 2]) {
    let store = format!("sqlite:{}", directory.join("cluster.db").display());
    let unix = directory.join("socket");
    let address = format!("127.0.0.1:{}", incumbent_proving::server::free_port());
    let urls = [format!("unix:{}", unix.display()), format!("http://{address}")];
    let sidecars = [
        Sidecar::start(&store, "near", vec!["--unix".into(), unix.into()]),
        Sidecar::start(&store, "far", vec!["--listen".into(), address.into()]),
    ];
    (store, sidecars, urls)
}

fn spawn(arguments: &[OsString]) -> Child {
    Command::new(PROGRAM)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// What an operator asks for. It may come to nothing: nobody may hold the lease at that moment.
pub(crate) fn ask(store: &str, words: &[&str]) {
    let asked = Command::new(PROGRAM)
        .args(["--store", store, "--cluster", "clients"])
        .args(words)
        .output()
        .unwrap();
    println!("{words:?}: {}", String::from_utf8_lossy(&asked.stderr));
}

/// Waits until all these nodes take part.
pub(crate) fn until_all_are_there(store: &str, nodes: &[String]) {
    for _ in 0..600 {
        let status = Command::new(PROGRAM)
            .args(["--store", store, "--cluster", "clients", "--json", "status"])
            .output()
            .unwrap();
        let shown = String::from_utf8_lossy(&status.stdout);
        if nodes.iter().all(|node| shown.contains(&format!("\"{node}\""))) {
            return;
        }
        std::thread::park_timeout(std::time::Duration::from_millis(100));
    }
    panic!("not all of {nodes:?} are there");
}

pub(crate) fn rounds() -> usize {
    counted(1, 8)
}

/// So many in a normal run, and so many before a release.
pub(crate) fn counted(short: usize, whole: usize) -> usize {
    let full = std::env::var("INCUMBENT_TEST_FULL").is_ok_and(|full| full == "1");
    let rounds = std::env::var("INCUMBENT_TEST_ROUNDS").ok().and_then(|rounds| rounds.parse().ok());
    rounds.unwrap_or(if full { whole } else { short })
}

/// How a program of each language is started: `candidate` or `worker`. One that is missing here is said to be.
pub(crate) fn languages(scratch: &Path, role: &str) -> Vec<Vec<OsString>> {
    let clients = clients();
    let ways = [
        ("Python", python(&clients, role)),
        ("Node.js", node(&clients, scratch, role)),
        ("Go", go(&clients, scratch, role)),
    ];
    let known = |(language, program): (&str, Option<Vec<OsString>>)| {
        if program.is_none() {
            println!("{language} is left out: it is not installed here");
        }
        program
    };
    ways.into_iter().filter_map(known).collect()
}

/// Where the clients are.
pub(crate) fn clients() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../clients")
}

pub(crate) fn python(clients: &Path, role: &str) -> Option<Vec<OsString>> {
    let python = incumbent_proving::server::find("python3")?;
    Some(vec![
        python.into(),
        "-B".into(),
        clients.join(format!("python/conformance/{role}.py")).into(),
    ])
}

fn node(clients: &Path, scratch: &Path, role: &str) -> Option<Vec<OsString>> {
    let node = incumbent_proving::server::find("node")?;
    let npm = incumbent_proving::server::find("npm")?;
    let copy = scratch.join("typescript");
    run(Command::new("cp").arg("-r").arg(clients.join("typescript")).arg(&copy));
    run(Command::new(npm)
        .args(["install", "--no-audit", "--no-fund", "--silent"])
        .current_dir(&copy));
    run(Command::new(&node).arg("node_modules/typescript/bin/tsc").current_dir(&copy));
    Some(vec![node.into(), copy.join(format!("conformance/{role}.js")).into()])
}

fn go(clients: &Path, scratch: &Path, role: &str) -> Option<Vec<OsString>> {
    let go = incumbent_proving::server::find("go")?;
    let program: PathBuf = scratch.join(format!("go-{role}"));
    let mut build = Command::new(go);
    run(build
        .arg("build")
        .arg("-o")
        .arg(&program)
        .arg(format!("./conformance/{role}"))
        .current_dir(clients.join("go")));
    Some(vec![program.into()])
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
