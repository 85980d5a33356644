//! A server with certificates, and its clients.

use std::fs::Permissions;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use incumbent::MemoryStore;
use incumbent_proving::Authority;
use incumbent_serve::{Access, Tls};
use incumbent_store_common::{TlsFiles, TlsNames};
use rcgen::{CertificateParams, DnType, SanType};
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use serde_json::Value;

use crate::common::{PATIENCE, Reply, Server, ask, options};

pub(crate) type Stream = StreamOwned<ClientConnection, TcpStream>;
pub(crate) type Identity = (PathBuf, PathBuf);

/// Nobody waits so long.
pub(crate) const LONG: Duration = Duration::from_secs(600);

/// What a server asks of its clients.
#[derive(Default)]
pub(crate) struct Wants<'a> {
    pub(crate) no_certificates: bool,
    pub(crate) roles: Option<&'a str>,
    pub(crate) tokens: Option<&'a str>,
    pub(crate) ttl: Option<Duration>,
}

pub(crate) struct Stage {
    pub(crate) directory: tempfile::TempDir,
    pub(crate) authority: Authority,
    pub(crate) tls: Tls,
    pub(crate) server: Server,
}

impl Stage {
    /// A server that wants certificates, of anybody whom its authority knows.
    pub(crate) fn new() -> Self {
        Self::wanting(&Wants::default())
    }

    pub(crate) fn wanting(wants: &Wants<'_>) -> Self {
        let (directory, authority) = (tempfile::tempdir().unwrap(), Authority::new());
        let place = directory.path();
        authority.save(place, "ca.crt");
        let (certificate, key) = closed(authority.issue("localhost", place, "server"));
        let mut tls = Tls::new(&certificate, &key).unwrap();
        if !wants.no_certificates {
            tls = tls.with_client_authorities(&place.join("ca.crt")).unwrap();
        }
        if let Some(roles) = wants.roles {
            std::fs::write(place.join("roles"), roles).unwrap();
            tls = tls.with_roles(&place.join("roles")).unwrap();
        }
        let mut access = Access::open();
        if let Some(tokens) = wants.tokens {
            write_closed(&place.join("tokens"), tokens);
            access = access.with_token_file(&place.join("tokens")).unwrap();
        }
        let mut options = options(wants.ttl.unwrap_or(LONG), access);
        options.tls = Some(tls.clone());
        let server = Server::build(MemoryStore::new(), options);
        Self { directory, authority, tls, server }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Somebody with this common name, and this name of a host if it has a dot.
    pub(crate) fn identity(&self, name: &str) -> Identity {
        self.authority.sign(named(name), self.directory.path(), name)
    }

    /// A connection by who has this, or nothing to show.
    pub(crate) fn connect(&self, identity: Option<&Identity>) -> Stream {
        let tcp = TcpStream::connect(self.server.tcp).unwrap();
        tcp.set_read_timeout(Some(PATIENCE)).unwrap();
        let name = "localhost".try_into().unwrap();
        let client = ClientConnection::new(Arc::new(self.config(identity)), name).unwrap();
        StreamOwned::new(client, tcp)
    }

    fn config(&self, identity: Option<&Identity>) -> ClientConfig {
        let mut files = TlsFiles::none(TlsNames::USUAL);
        let kept = self.path("kept.crt");
        files.authorities = Some(if kept.exists() { kept } else { self.path("ca.crt") });
        files.identity = identity.cloned();
        files.config().unwrap()
    }

    /// Lets clients know the server by the authority of this moment, whatever becomes of that file.
    pub(crate) fn keep_trusting(&self) {
        std::fs::copy(self.path("ca.crt"), self.path("kept.crt")).unwrap();
    }

    /// A request by who has this.
    pub(crate) fn ask(
        &self,
        identity: Option<&Identity>,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<Value>,
    ) -> Reply {
        let mut all = vec![("connection", "close"), ("content-type", "application/json")];
        if !headers.iter().any(|(name, _)| *name == "host") {
            all.push(("host", "localhost"));
        }
        all.extend(headers);
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        ask(self.connect(identity), method, path, &all, &body)
    }

    pub(crate) fn get(&self, identity: &Identity, path: &str) -> Reply {
        self.ask(Some(identity), "GET", path, &[], None)
    }

    /// Whether somebody gets an answer at all.
    pub(crate) fn is_let_in(&self, identity: Option<&Identity>) -> bool {
        self.refusal(identity).is_none()
    }

    /// What somebody is told who isn't let in.
    pub(crate) fn refusal(&self, identity: Option<&Identity>) -> Option<String> {
        let mut stream = self.connect(identity);
        let asked = stream.write_all(b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n");
        let mut head = [0; 12];
        let read = asked.and_then(|()| stream.read_exact(&mut head));
        read.err().map(|error| error.to_string())
    }
}

/// The names of somebody.
pub(crate) fn named(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    if name.contains('.') {
        params.subject_alt_names = vec![SanType::DnsName(name.try_into().unwrap())];
    }
    params
}

/// Lets nobody else read the key.
pub(crate) fn closed((certificate, key): Identity) -> Identity {
    std::fs::set_permissions(&key, Permissions::from_mode(0o600)).unwrap();
    (certificate, key)
}

pub(crate) fn write_closed(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
}
