//! A server as a process.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::net::UnixStream;

/// `incumbent serve`, which is killed with this.
pub(crate) struct Server {
    child: Child,
    pub(crate) socket: PathBuf,
}

impl Server {
    pub(crate) fn start(directory: &Path, number: usize) -> Self {
        let socket = directory.join(format!("socket-{number}"));
        let store = format!("sqlite:{}", directory.join("roles.db").display());
        let child = Command::new(env!("CARGO_BIN_EXE_incumbent"))
            .args(["--quiet", "--store", &store, "--cluster", "roles", "serve", "--ttl", "3s"])
            .args(["--node", &format!("server-{number}"), "--unix"])
            .arg(&socket)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Self { child, socket }
    }

    pub(crate) async fn until_it_listens(&self) {
        for _ in 0..6_000 {
            if UnixStream::connect(&self.socket).await.is_ok() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("it doesn't listen");
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
