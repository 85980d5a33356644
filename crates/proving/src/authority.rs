//! Certificates for servers and clients whose connections are encrypted.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose,
};

/// Somebody who signs certificates.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    /// A new one, which nobody trusts yet.
    ///
    /// # Panics
    ///
    /// If there is no randomness to be had.
    #[must_use]
    pub fn new() -> Self {
        let mut params = named("authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().expect("a key");
        Self(CertifiedIssuer::self_signed(params, key).expect("an authority"))
    }

    /// A certificate for this name and its key, in files that begin so.
    ///
    /// # Panics
    ///
    /// If they can't be written.
    #[must_use]
    pub fn issue(&self, name: &str, place: &Path, start: &str) -> (PathBuf, PathBuf) {
        self.sign(named(name), place, start)
    }

    /// A certificate of this content and its key, in files that begin so.
    ///
    /// # Panics
    ///
    /// If they can't be written.
    #[must_use]
    pub fn sign(
        &self,
        mut params: CertificateParams,
        place: &Path,
        start: &str,
    ) -> (PathBuf, PathBuf) {
        // Strict clients ask for it.
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.0).expect("a certificate");
        let paths = (place.join(format!("{start}.crt")), place.join(format!("{start}.key")));
        fs::write(&paths.0, certificate.pem()).expect("a file");
        fs::write(&paths.1, key.serialize_pem()).expect("a file");
        paths
    }

    /// Its own certificate, for those who are to trust it, in a file of this name.
    ///
    /// # Panics
    ///
    /// If it can't be written.
    pub fn save(&self, place: &Path, name: &str) -> PathBuf {
        let path = place.join(name);
        fs::write(&path, self.0.pem()).expect("a file");
        path
    }
}

impl Default for Authority {
    fn default() -> Self {
        Self::new()
    }
}

fn named(name: &str) -> CertificateParams {
    let mut params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
    // With the same name as its issuer a certificate would count as its own.
    params.distinguished_name.push(DnType::CommonName, name);
    params
}
