//! The files of encrypted connections.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use incumbent_store_common::{Pem, provider, regular_file};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::sign::{CertifiedKey, SingleCertAndKey};

use super::TlsError;
use crate::grants::Grants;

/// A file with roles may have so many bytes at most.
const LARGEST: u64 = 1 << 20;

/// Where the files are.
#[derive(Clone, Debug)]
pub(super) struct Paths {
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
    pub(super) authorities: Option<PathBuf>,
    pub(super) roles: Option<PathBuf>,
}

/// How this server is known: a certificate and its key, which are taken together or not at all. While they are
/// renewed one may be there before the other.
#[derive(Clone)]
pub(super) struct Identity {
    certificate: Pem,
    key: Pem,
    resolver: Arc<SingleCertAndKey>,
}

impl Identity {
    /// The former one if nothing has changed.
    pub(super) fn read(paths: &Paths, former: Option<&Self>) -> Result<Self, TlsError> {
        let certificate = Pem::read("--tls-cert", &paths.certificate)?;
        let key = Pem::read("--tls-key", &paths.key)?;
        if key.is_open_to_others() {
            let path = paths.key.display();
            return Err(TlsError(format!(
                "--tls-key={path}: others can read it: `chmod o-rwx` it"
            )));
        }
        if let Some(former) = former.filter(|it| it.certificate == certificate && it.key == key) {
            return Ok(former.clone());
        }
        let chain = certificate.certificates()?;
        let certified = CertifiedKey::from_der(chain, key.key()?, &provider());
        let certified = certified.map_err(|error| {
            let path = paths.certificate.display();
            TlsError(format!(
                "--tls-key={} is not the key of --tls-cert={path}: {error}. Name the certificate and \
                 the key that were made together",
                paths.key.display()
            ))
        })?;
        let resolver = Arc::new(SingleCertAndKey::from(certified));
        Ok(Self { certificate, key, resolver })
    }

    pub(super) fn resolver(&self) -> Arc<SingleCertAndKey> {
        Arc::clone(&self.resolver)
    }
}

impl PartialEq for Identity {
    fn eq(&self, other: &Self) -> bool {
        self.certificate == other.certificate && self.key == other.key
    }
}

/// Who vouches for clients.
#[derive(Clone)]
pub(super) struct Authorities {
    pem: Pem,
    verifier: Arc<dyn ClientCertVerifier>,
}

impl Authorities {
    /// The former ones if nothing has changed.
    pub(super) fn read(path: &Path, former: Option<&Self>) -> Result<Self, TlsError> {
        let pem = Pem::read("--client-ca", path)?;
        if let Some(former) = former.filter(|former| former.pem == pem) {
            return Ok(former.clone());
        }
        let roots = Arc::new(pem.authorities()?);
        let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider()).build();
        let verifier = verifier.map_err(|error| pem.wrong(&error))?;
        Ok(Self { pem, verifier })
    }

    pub(super) fn verifier(&self) -> Arc<dyn ClientCertVerifier> {
        Arc::clone(&self.verifier)
    }
}

impl PartialEq for Authorities {
    fn eq(&self, other: &Self) -> bool {
        self.pem == other.pem
    }
}

/// The roles that certificates are given.
pub(super) fn read_roles(path: &Path) -> Result<Grants, TlsError> {
    let wrong = |said: String| TlsError(format!("--certificate-roles={}: {said}", path.display()));
    let next = "name a file with a line for each certificate: a role and a name, such as `operator \
                cn:alice`";
    let read = regular_file(path, LARGEST);
    let (bytes, _) = read.map_err(|error| wrong(format!("{error}: {next}")))?;
    let text = String::from_utf8(bytes).map_err(|_| wrong(format!("it isn't text: {next}")))?;
    Grants::parse(&text).map_err(wrong)
}
