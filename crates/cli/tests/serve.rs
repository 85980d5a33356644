//! `incumbent serve` as a process: clients outlive it, and it leaves in order.
#![cfg(all(target_os = "linux", feature = "serve"))]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "this is test code")]

mod common;

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use common::{Trial, eventually};
use incumbent::{Moment, clock};
use serde_json::Value;

/// A server that is killed with this.
struct Server {
    child: Child,
    socket: PathBuf,
}

impl Server {
    fn start(trial: &Trial, name: &str) -> Self {
        let socket = trial.path().join(name);
        let path = socket.to_str().unwrap().to_owned();
        let arguments = ["serve", "--unix", &path, "--ttl", "3s", "--node", name];
        let child = trial.command(&arguments).spawn().unwrap();
        let server = Self { child, socket };
        eventually("it listens", || UnixStream::connect(&server.socket).is_ok());
        server
    }

    fn curl(&self) -> Command {
        let mut command = Command::new("curl");
        command.args(["-sN", "--unix-socket", self.socket.to_str().unwrap()]);
        command
    }

    fn hold(&self, name: &str) -> Hold {
        let body = format!("{{\"name\": \"{name}\", \"grace\": \"1s\"}}");
        let mut command = self.curl();
        command.args(["-H", "content-type: application/json", "-d", &body]);
        command.arg("http://localhost/v1/leases/scheduler/hold").stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Hold { child, lines }
    }

    fn status(&self, path: &str) -> String {
        let mut command = self.curl();
        command.args([
            "--max-time",
            "20",
            "-o",
            "/dev/null",
            "-w",
            "%{http_code}",
            &format!("http://localhost{path}"),
        ]);
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    }

    fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Hold {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Hold {
    fn until(&mut self, event: &str) -> Value {
        loop {
            let mut line = String::new();
            assert!(self.lines.read_line(&mut line).unwrap() > 0, "it ended before {event}");
            let line: Value = serde_json::from_str(&line).unwrap();
            if line["event"] == event {
                return line;
            }
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a client on the same host sees.
fn until(file: &File) -> Moment {
    let mut bytes = [0; 8];
    file.read_exact_at(&mut bytes, 8).unwrap();
    Moment::from_nanos(u64::from_le_bytes(bytes))
}

/// A client that holds the lease by the first server, and another that waits for it by the second.
struct Stage {
    first: Server,
    _second: Server,
    holder: Hold,
    elected: Value,
    /// The holder's trust file.
    file: File,
    waiter: Hold,
}

impl Stage {
    fn new(trial: &Trial) -> Self {
        let (first, second) = (Server::start(trial, "one"), Server::start(trial, "two"));
        let mut holder = first.hold("a");
        let elected = holder.until("elected");
        let file = File::open(elected["trust_file"].as_str().unwrap()).unwrap();
        let mut waiter = second.hold("b");
        waiter.until("waiting");
        Self { first, _second: second, holder, elected, file, waiter }
    }
}

#[test]
fn the_death_of_the_server_proves_nothing_about_its_clients() {
    let trial = Trial::with_store();
    let mut stage = Stage::new(&trial);
    let told = until(&stage.file);
    stage.first.child.kill().unwrap();
    stage.first.child.wait().unwrap();
    // The client goes on, by its file alone, for as long as that says.
    assert!(until(&stage.file) >= told && clock::now() < until(&stage.file));
    let told = until(&stage.file);
    stage.waiter.until("elected");
    assert!(clock::now() >= told, "somebody else was elected while the client trusted");
    // F70: who is started again neither adopts nor closes what was its predecessor's.
    let again = Server::start(&trial, "one");
    let hold = stage.elected["hold"].as_str().unwrap();
    assert_eq!(again.status(&format!("/v1/holds/{hold}")), "404");
}

/// F72: releasing on shutdown is the default, after the clients have ended.
#[test]
fn a_server_that_is_told_to_end_hands_over_in_order() {
    let trial = Trial::with_store();
    let mut stage = Stage::new(&trial);
    stage.first.signal("-TERM");
    assert_eq!(stage.holder.until("stopping")["why"], "shutdown");
    assert_eq!(stage.first.status("/readyz"), "503");
    stage.holder.until("lost");
    assert_eq!(until(&stage.file), Moment::START, "its file says so too");
    // Its client ends with its stream, which proves that nothing of it runs.
    stage.waiter.until("elected");
    assert!(stage.first.child.wait().unwrap().success());
    assert!(!stage.first.socket.exists());
    assert!(!std::path::Path::new(stage.elected["trust_file"].as_str().unwrap()).exists());
}

#[test]
fn it_refuses_to_listen_elsewhere_for_everybody() {
    let trial = Trial::with_store();
    let ran = trial.run(&["serve", "--listen", "0.0.0.0:0"]).ends_with(64);
    for flag in ["--token-file", "--client-ca", "--tls-cert"] {
        assert!(ran.stderr.contains(flag), "{}", ran.stderr);
    }
    // To be encrypted is not to be known.
    let (certificate, key) = certificates(&trial);
    let (certificate, key) = (certificate.to_str().unwrap(), key.to_str().unwrap());
    let listen = ["serve", "--listen", "0.0.0.0:0", "--tls-cert", certificate, "--tls-key", key];
    let ran = trial.run(&listen).ends_with(64);
    assert!(ran.stderr.contains("--client-ca"), "{}", ran.stderr);
}

/// Those of a server and of `alice`, whose authority is in `ca.crt`.
fn certificates(trial: &Trial) -> (PathBuf, PathBuf) {
    use std::os::unix::fs::PermissionsExt;
    let authority = incumbent_proving::Authority::new();
    authority.save(trial.path(), "ca.crt");
    let _ = authority.issue("alice", trial.path(), "alice");
    let (certificate, key) = authority.issue("localhost", trial.path(), "server");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    (certificate, key)
}

#[test]
fn certificates_are_named_by_file_and_environment_and_followed_while_it_runs() {
    let trial = Trial::with_store();
    let (certificate, key) = certificates(&trial);
    let place = |name: &str| trial.path().join(name);
    let filed = format!("[serve]\ntls-cert = {certificate:?}\ntls-key = \"/nonexistent\"\n");
    std::fs::write(place("app.toml"), filed).unwrap();
    let mut command = trial.command(&["serve", "--listen", "127.0.0.1:0", "--json"]);
    command.args(["--ttl", "3s", "--config"]).arg(place("app.toml"));
    // Flags win over the environment, and that over the file.
    command.env("INCUMBENT_TLS_KEY", &key).env("INCUMBENT_CLIENT_CA", "/nonexistent");
    command.arg("--client-ca").arg(place("ca.crt"));
    command.stderr(File::create(place("log")).unwrap()).stdout(Stdio::piped());
    let mut server = Server { child: command.spawn().unwrap(), socket: place("none") };
    let mut line = String::new();
    BufReader::new(server.child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let listening: Value = serde_json::from_str(&line).unwrap();
    let url = listening["listening"].as_str().unwrap().replace("127.0.0.1", "localhost");
    assert!(url.starts_with("https://localhost:"), "{url}");
    let status = |flags: &[&str]| {
        let mut curl = Command::new("curl");
        curl.args(["-s", "-o", "/dev/null", "-w", "%{http_code}", "--cacert", "ca.crt"]);
        curl.args(flags).arg(format!("{url}/v1/cluster")).current_dir(trial.path());
        String::from_utf8(curl.output().unwrap().stdout).unwrap()
    };
    let alice = ["--cert", "alice.crt", "--key", "alice.key"];
    assert_eq!((status(&alice), status(&[])), ("200".to_owned(), "000".to_owned()));
    let said = |part: &str| std::fs::read_to_string(place("log")).unwrap().contains(part);
    assert!(said("every certificate of these authorities may do all"));
    std::fs::write(&certificate, "garbage").unwrap();
    eventually("that it is broken is said", || said("Until then the previous file stays in use"));
    assert_eq!(status(&alice), "200");
}

/// A server that starts after this was done in a shell.
fn after(trial: &Trial, done: &str, socket: &Path) -> Command {
    let serve = trial.command(&["-vv", "serve", "--unix", socket.to_str().unwrap(), "--ttl", "3s"]);
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{done}; exec \"$0\" \"$@\"")]);
    command.arg(serve.get_program()).args(serve.get_args());
    for (name, value) in serve.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.current_dir(serve.get_current_dir().unwrap_or(trial.path()));
    command
}

fn idle(server: &Server) -> Vec<UnixStream> {
    (0..200).map(|_| UnixStream::connect(&server.socket).unwrap()).collect()
}

/// The limit that a process is started with is the lowest of those that it may have.
#[test]
fn o55_idle_connections_do_not_use_up_the_files_of_a_server() {
    let trial = Trial::with_store();
    let socket = trial.path().join("files");
    let child = after(&trial, "ulimit -S -n 128", &socket).spawn().unwrap();
    let server = Server { child, socket };
    eventually("it listens", || server.status("/livez") == "200");
    let idle = idle(&server);
    assert_eq!(server.status("/livez"), "200");
    drop(idle);
}

/// Where it may not have more, the store goes on, and others are refused at once and not left waiting.
#[test]
fn o55_connections_are_refused_before_the_store_has_no_files_left() {
    let trial = Trial::with_store();
    let (socket, log) = (trial.path().join("files"), trial.path().join("log"));
    let mut command = after(&trial, "ulimit -n 128", &socket);
    command.stderr(File::create(&log).unwrap());
    let server = Server { child: command.spawn().unwrap(), socket };
    eventually("it listens", || server.status("/livez") == "200");
    let mut holder = server.hold("a");
    let elected = holder.until("elected");
    let file = File::open(elected["trust_file"].as_str().unwrap()).unwrap();
    let idle = idle(&server);
    assert_eq!(server.status("/livez"), "000", "it is refused");
    let told = until(&file);
    eventually("it is renewed twice", || until(&file).since(told) > Duration::from_millis(1100));
    drop(idle);
    eventually("it takes connections again", || server.status("/livez") == "200");
    let said = std::fs::read_to_string(&log).unwrap();
    assert_eq!(said.matches("no more connections are accepted").count(), 1, "{said}");
}

/// Whoever says `nohup` wants it to outlive the terminal.
#[test]
fn o53_a_server_under_nohup_ignores_the_end_of_its_terminal() {
    let trial = Trial::with_store();
    let socket = trial.path().join("nohup");
    let mut command = after(&trial, "trap '' HUP", &socket);
    let mut server = Server { child: command.spawn().unwrap(), socket };
    eventually("it listens", || server.status("/livez") == "200");
    server.signal("-HUP");
    // A signal that counts is answered by 503 at once, and this one would have come first.
    for _ in 0..20 {
        assert_eq!(server.status("/readyz"), "200");
    }
    server.signal("-TERM");
    assert!(server.child.wait().unwrap().success());
}

/// What killed servers leave in memory goes with the next one, once nobody trusts by it.
#[test]
fn o53_trust_files_of_killed_servers_do_not_stay_for_ever() {
    let trial = Trial::with_store();
    let mut first = Server::start(&trial, "one");
    let mut holder = first.hold("a");
    let elected = holder.until("elected");
    let path = PathBuf::from(elected["trust_file"].as_str().unwrap());
    let file = File::open(&path).unwrap();
    first.child.kill().unwrap();
    first.child.wait().unwrap();
    let second = Server::start(&trial, "two");
    let told = until(&file);
    assert!(path.exists() || clock::now() >= told, "its client may trust by it");
    drop(second);
    eventually("told trust is over", || clock::now() >= until(&file));
    let _third = Server::start(&trial, "three");
    eventually("it is gone", || !path.parent().unwrap().exists());
}
