//! Encrypted connections, and whom they trust.
#![allow(clippy::panic, clippy::expect_used, clippy::indexing_slicing)] // A test fails by panicking, its helpers too.

mod common;

use std::path::PathBuf;

use common::{Server, application, assert_says, block_on, connect, fresh, run};
use incumbent_core::store::ErrorKind;
use incumbent_mysql::MysqlStore;
use incumbent_proving::Authority;
use tempfile::TempDir;

/// An authority, a certificate of it for `localhost` and one for a client.
struct Papers {
    directory: TempDir,
}

impl Papers {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let authority = Authority::new();
        authority.save(directory.path(), "ca.pem");
        for name in ["localhost", "client"] {
            let _ = authority.issue(name, directory.path(), name);
        }
        Self { directory }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn server(&self) -> Server {
        let option = |name: &str, file: &str| format!("--{name}={}", self.path(file).display());
        let options = [
            option("ssl-ca", "ca.pem"),
            option("ssl-cert", "localhost.crt"),
            option("ssl-key", "localhost.key"),
        ];
        Server::start(&options.each_ref().map(String::as_str))
    }
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
            file("client.crt"),
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
