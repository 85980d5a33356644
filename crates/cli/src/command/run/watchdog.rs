//! Whether the command comes on, by the protocol of systemd's watchdog.

use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use incumbent::{Moment, clock};
use tokio::net::UnixDatagram;

use super::notify::notify;
use crate::exit::{Code, Failure, Outcome};

/// What a command may say at once.
const LONGEST: usize = 4096;

/// A socket to which the command says that it comes on. Dropped, it is removed.
pub(crate) struct Watchdog {
    directory: PathBuf,
    socket: UnixDatagram,
    patience: Duration,
    /// When it last said so.
    heard: AtomicU64,
}

impl Watchdog {
    /// Listens from now on.
    pub(crate) fn open(patience: Duration) -> Outcome<Self> {
        let failed = |error: std::io::Error| {
            Failure::new(Code::Unsupervised, format!("the watchdog has no socket: {error}"))
        };
        // Nobody but this user, and root, can say anything there.
        let name = format!("incumbent-dog-{}-{}", std::process::id(), clock::now().as_nanos());
        let directory = std::env::temp_dir().join(name);
        std::fs::DirBuilder::new().mode(0o700).create(&directory).map_err(failed)?;
        let path = directory.join("notify");
        let socket = UnixDatagram::bind(&path);
        let heard = AtomicU64::new(clock::now().as_nanos());
        let socket = socket.inspect_err(|_| drop(std::fs::remove_dir(&directory)));
        let watchdog = Self { directory, socket: socket.map_err(failed)?, patience, heard };
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).map_err(failed)?;
        Ok(watchdog)
    }

    /// What the command has to know. The process whose watchdog it is isn't named: it isn't known yet.
    pub(crate) fn variables(&self) -> Vec<(String, String)> {
        let socket = self.directory.join("notify").display().to_string();
        let patience = self.patience.as_micros().to_string();
        vec![("NOTIFY_SOCKET".to_owned(), socket), ("WATCHDOG_USEC".to_owned(), patience)]
    }

    /// Until the command has said nothing for too long.
    async fn silent(&self) {
        let mut buffer = vec![0; LONGEST];
        loop {
            let heard = Moment::from_nanos(self.heard.load(Ordering::Acquire));
            let now = clock::now();
            let left = (heard + self.patience).since(now);
            match tokio::time::timeout(left, self.socket.recv(&mut buffer)).await {
                Ok(Ok(length)) => self.hear(buffer.get(..length).unwrap_or_default()),
                Ok(Err(_)) | Err(_) if clock::now() >= heard + self.patience => return,
                // An error of the socket is no sign of life; that it is read again must not spin.
                Ok(Err(_)) => tokio::time::sleep(Duration::from_millis(50)).await,
                Err(_) => {}
            }
        }
    }

    fn hear(&self, said: &[u8]) {
        let said = String::from_utf8_lossy(said);
        let (dog, rest): (Vec<&str>, Vec<&str>) =
            said.lines().partition(|line| line.starts_with("WATCHDOG"));
        if dog.contains(&"WATCHDOG=1") {
            self.heard.fetch_max(clock::now().as_nanos(), Ordering::AcqRel);
        }
        if dog.contains(&"WATCHDOG=trigger") {
            // The command itself says that it is stuck.
            self.heard.store(0, Ordering::Release);
        }
        // All else is for the service manager, if there is one.
        if !rest.is_empty() {
            notify(&rest.join("\n"));
        }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// Until the command has said nothing for too long, if it has to say anything.
pub(crate) async fn silent(watchdog: Option<&Watchdog>) {
    match watchdog {
        Some(watchdog) => watchdog.silent().await,
        None => std::future::pending().await,
    }
}
