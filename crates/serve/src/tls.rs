//! Encrypted connections: how this server is known, and whose certificates get in.

mod handshake;
mod names;
mod parts;
mod state;

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use incumbent::store::StoreError;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use self::parts::Paths;
use self::state::State;
use crate::certified::{Roles, Standing};

/// How often the files are looked at.
const PAUSE: Duration = Duration::from_secs(1);

/// The certificate of this server, and whose certificates get in: files that are read again when they have
/// changed. Clones are handles to the same.
#[derive(Clone)]
pub struct Tls(Arc<Inner>);

struct Inner {
    paths: Paths,
    state: Mutex<Arc<State>>,
    /// What is wrong with the files, so that it is said once.
    trouble: Mutex<String>,
    /// What came of the last change, for people.
    news: watch::Sender<String>,
}

/// Why a file of encrypted connections won't do. It names the file, and shows nothing that is in it.
#[derive(Debug)]
pub struct TlsError(String);

impl Tls {
    /// Shows this certificate, with its chain, to clients; both files are PEM.
    ///
    /// # Errors
    /// If a file can't be read or isn't what it should be, or others can read the key.
    pub fn new(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let (certificate, key) = (certificate.to_owned(), key.to_owned());
        Self::read(Paths { certificate, key, authorities: None, roles: None })
    }

    /// Lets only those in, on TCP, whose certificate the authorities in this PEM file vouch for.
    ///
    /// # Errors
    /// If a file can't be read or isn't what it should be.
    pub fn with_client_authorities(&self, path: &Path) -> Result<Self, TlsError> {
        Self::read(Paths { authorities: Some(path.to_owned()), ..self.0.paths.clone() })
    }

    /// Gives them roles by the names in their certificates: a line for each, such as `operator cn:alice`.
    /// Without it all of them may do all, unless tokens are needed.
    ///
    /// # Errors
    /// If a file can't be read, or a line can't be understood.
    pub fn with_roles(&self, path: &Path) -> Result<Self, TlsError> {
        Self::read(Paths { roles: Some(path.to_owned()), ..self.0.paths.clone() })
    }

    /// Whether clients need a certificate.
    #[must_use]
    pub fn needs_certificate(&self) -> bool {
        self.0.paths.authorities.is_some()
    }

    /// Whether roles are given by the names in certificates.
    #[must_use]
    pub fn gives_roles(&self) -> bool {
        self.0.paths.roles.is_some()
    }

    /// What came of the last change of the files, for people.
    #[must_use]
    pub fn news(&self) -> watch::Receiver<String> {
        self.0.news.subscribe()
    }

    fn read(paths: Paths) -> Result<Self, TlsError> {
        let state = Mutex::new(Arc::new(State::read(&paths)?));
        let (trouble, news) = (Mutex::default(), watch::Sender::default());
        Ok(Self(Arc::new(Inner { paths, state, trouble, news })))
    }

    /// Looks at the files now and then, for as long as somebody has them.
    pub(crate) fn follow(&self) -> impl Future<Output = ()> + Send + use<> {
        let tls = Arc::downgrade(&self.0);
        async move {
            loop {
                tokio::time::sleep(PAUSE).await;
                // A file system that doesn't answer holds up nobody but this.
                let look = look_again(&tls);
                if !tokio::task::spawn_blocking(look).await.unwrap_or(true) {
                    return;
                }
            }
        }
    }
}

/// Looks once; says whether anybody has them.
fn look_again(tls: &Weak<Inner>) -> impl FnOnce() -> bool + Send + use<> {
    let tls = Weak::clone(tls);
    move || match tls.upgrade() {
        None => false,
        Some(tls) => {
            tls.refresh();
            true
        }
    }
}

impl Inner {
    fn state(&self) -> Arc<State> {
        Arc::clone(&self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn acceptor(&self) -> TlsAcceptor {
        self.state().acceptor.clone()
    }

    /// Takes what has changed.
    fn refresh(&self) {
        let (next, troubles) = self.state().again(&self.paths);
        if let Some(next) = next {
            *self.state.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(next);
            tracing::info!(action = "tls", "the TLS files have changed");
            let said = "the TLS files have changed: new connections use them";
            self.news.send_replace(said.to_owned());
        }
        let trouble: Vec<_> = troubles.iter().map(ToString::to_string).collect();
        let trouble = trouble.join("; ");
        let mut last = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        if !trouble.is_empty() && *last != trouble {
            tracing::warn!(
                action = "tls",
                trouble,
                "a TLS file is broken: the previous one stays in use"
            );
            self.news.send_replace(format!("{trouble}. Until then the previous file stays in use"));
        }
        *last = trouble;
    }
}

impl Roles for Inner {
    fn standing(&self, names: &[String]) -> Standing {
        match &self.state().roles {
            None => Standing::Unsaid,
            Some(grants) => grants.role(names).map_or(Standing::HasNone, Standing::Has),
        }
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("paths", &self.0.paths).finish_non_exhaustive()
    }
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TlsError {}

impl From<StoreError> for TlsError {
    fn from(error: StoreError) -> Self {
        Self(error.message)
    }
}
