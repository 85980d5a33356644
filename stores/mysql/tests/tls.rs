//! Encrypted connections, and whom they trust.
#![allow(clippy::panic, clippy::expect_used, clippy::indexing_slicing)] // A test fails by panicking, its helpers too.

mod common;

use std::path::{Path, PathBuf};

use common::{Server, application, assert_says, block_on, connect, fresh, run};
use incumbent_core::store::ErrorKind;
use incumbent_mysql::MysqlStore;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use tempfile::TempDir;

/// An authority, a certificate of it for `localhost` and one for a client.
struct Papers {
    directory: TempDir,
}

impl Papers {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let key = KeyPair::generate().expect("a key");
        let mut params = named("authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = params.self_signed(&key).expect("a certificate");
        let issuer = Issuer::new(params, key);
        let papers = Self { directory };
        papers.write("ca.pem", &authority.pem());
        for name in ["localhost", "client"] {
            let key = KeyPair::generate().expect("a key");
            let certificate = named(name).signed_by(&key, &issuer).expect("a certificate");
            papers.write(&format!("{name}.pem"), &certificate.pem());
            papers.write(&format!("{name}.key"), &key.serialize_pem());
        }
        papers
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).expect("a file");
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn server(&self) -> Server {
        let option = |name: &str, file: &Path| format!("--{name}={}", file.display());
        let options = [
            option("ssl-ca", &self.path("ca.pem")),
            option("ssl-cert", &self.path("localhost.pem")),
            option("ssl-key", &self.path("localhost.key")),
        ];
        Server::start(&options.each_ref().map(String::as_str))
    }
}

fn named(name: &str) -> CertificateParams {
    let mut params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
    // With the same name as its issuer a certificate would count as its own.
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

fn url(server: &Server, user: &str, host: &str, options: &str) -> String {
    format!("mysql://{user}@{host}:{}/app?prefix={}&{options}", server.port(), fresh())
}

#[test]
fn servers_are_trusted_as_the_mode_says() {
    let (papers, others) = (Papers::new(), Papers::new());
    let server = papers.server();
    block_on(async {
        let mut root = application(&server.url("root")).await;
        run(&mut root, "CREATE USER secure@'%' REQUIRE SSL").await;
        run(&mut root, "GRANT ALL ON app.* TO secure@'%'").await;
        let ca = format!("ssl-ca={}", papers.path("ca.pem").display());
        let other = format!("ssl-ca={}", others.path("ca.pem").display());
        let url = |host: &str, options: &str| url(&server, "secure", host, options);

        connect(&url("127.0.0.1", "")).await;
        connect(&url("127.0.0.1", "ssl-mode=REQUIRED")).await;
        connect(&url("localhost", &format!("ssl-mode=VERIFY_IDENTITY&{ca}"))).await;
        connect(&url("localhost", &format!("ssl-mode=VERIFY_CA&{ca}"))).await;
        let named = format!("ssl-mode=VERIFY_IDENTITY&ssl-hostname=localhost&{ca}");
        connect(&url("127.0.0.1", &named)).await;

        let refused = async |host: &str, options: &str| {
            MysqlStore::connect(&url(host, options)).await.expect_err(options)
        };
        let error = refused("127.0.0.1", "ssl-mode=DISABLED").await;
        assert_says(&error, ErrorKind::Rejected, &["1045"]);
        for (host, options) in [
            ("localhost", format!("ssl-mode=VERIFY_IDENTITY&{other}")),
            ("localhost", format!("ssl-mode=REQUIRED&{other}")),
            ("localhost", "ssl-mode=VERIFY_CA".to_owned()),
            ("127.0.0.1", format!("ssl-mode=VERIFY_IDENTITY&{ca}")),
        ] {
            let error = refused(host, &options).await;
            assert_says(&error, ErrorKind::Rejected, &["certificate", "ssl-ca="]);
        }
        let error = refused("localhost", "ssl-mode=VERIFY_CA&ssl-ca=/no/such.pem").await;
        assert_says(&error, ErrorKind::Rejected, &["/no/such.pem"]);
    });
}

#[test]
fn a_client_shows_its_certificate() {
    let papers = Papers::new();
    let server = papers.server();
    block_on(async {
        let mut root = application(&server.url("root")).await;
        run(&mut root, "CREATE USER known@'%' REQUIRE X509").await;
        run(&mut root, "GRANT ALL ON app.* TO known@'%'").await;
        let file = |name: &str| papers.path(name).display().to_string();
        let options = format!(
            "ssl-mode=VERIFY_IDENTITY&ssl-ca={}&ssl-cert={}&ssl-key={}",
            file("ca.pem"),
            file("client.pem"),
            file("client.key")
        );
        connect(&url(&server, "known", "localhost", &options)).await;
        let error = MysqlStore::connect(&url(&server, "known", "localhost", "")).await;
        assert_says(&error.expect_err("no certificate"), ErrorKind::Rejected, &["1045"]);
    });
}

#[test]
fn a_server_without_tls_is_refused_if_it_is_asked_for() {
    let server = Server::start(&["--skip-ssl"]);
    block_on(async {
        connect(&url(&server, "root", "127.0.0.1", "ssl-mode=PREFERRED")).await;
        let url = url(&server, "root", "127.0.0.1", "ssl-mode=REQUIRED");
        let error = MysqlStore::connect(&url).await.expect_err("no TLS");
        assert_says(&error, ErrorKind::Rejected, &["ssl-mode=PREFERRED"]);
    });
}
