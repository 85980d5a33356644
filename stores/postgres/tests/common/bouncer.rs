//! A private PgBouncer in transaction mode.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use super::server::{as_postgres, free_port, own};

/// Makes a missing PgBouncer a failure.
pub const REQUIRED: &str = "INCUMBENT_REQUIRE_PGBOUNCER";

pub struct Bouncer {
    pub port: u16,
    process: Child,
    watchdog: Child,
    _directory: TempDir,
}

impl Bouncer {
    /// Starts one before the server at this port, with more lines for its configuration. `None`
    /// where there is no PgBouncer, which is said aloud.
    pub fn before(server: u16, more: &str) -> Option<Self> {
        let Some(program) = program() else {
            let said = "no pgbouncer was found (on Debian: apt-get install pgbouncer)";
            assert!(std::env::var_os(REQUIRED).is_none(), "{said}");
            println!("NOT TRIED: {said}");
            return None;
        };
        let directory =
            tempfile::Builder::new().prefix("incumbent-pb").tempdir().expect("a directory");
        let port = free_port();
        let users = directory.path().join("users.txt");
        std::fs::write(&users, "\"postgres\" \"\"\n").expect("a file");
        let configuration = format!(
            "[databases]\n* = host=127.0.0.1 port={server}\n[pgbouncer]\n\
             listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n\
             auth_type = any\nauth_file = {}\npool_mode = transaction\n\
             default_pool_size = 4\nmax_client_conn = 200\n{more}\n",
            users.display()
        )
        .replace("auth_type = any", "auth_type = trust");
        let file = directory.path().join("pgbouncer.ini");
        std::fs::write(&file, configuration).expect("a file");
        own(directory.path());
        let log = std::fs::File::create(directory.path().join("log")).expect("a log");
        let process = as_postgres(&program).arg("-q").arg(&file).stderr(log).spawn();
        let process = process.expect("pgbouncer starts");
        let watchdog = Command::new("sh")
            .args(["-c", "read line; kill $0"])
            .arg(process.id().to_string())
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let bouncer =
            Self { port, process, watchdog: watchdog.expect("a watchdog"), _directory: directory };
        for _ in 0..200 {
            if std::net::TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return Some(bouncer);
            }
            std::thread::park_timeout(Duration::from_millis(25));
        }
        panic!("pgbouncer didn't start");
    }

    pub fn url(&self, schema: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres?schema={schema}", self.port)
    }
}

impl Drop for Bouncer {
    fn drop(&mut self) {
        for process in [&mut self.watchdog, &mut self.process] {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

fn program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places: Vec<_> = std::env::split_paths(&path).collect();
    // Administrators' programs aren't on everybody's path.
    places.extend(["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from));
    places.into_iter().map(|place| place.join("pgbouncer")).find(|path| path.is_file())
}
