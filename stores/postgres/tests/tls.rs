//! Encrypted connections to a server with a certificate made here.

#![allow(clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // A test fails by panicking, its helpers too.

mod common;

use std::path::{Path, PathBuf};

use common::{Server, applied, block_on, connect, create, fresh, over_socket, write};
use incumbent_core::store::{ErrorKind, StoreError};
use incumbent_postgres::PostgresStore;
use incumbent_proving::Authority;

async fn refusal(url: &str) -> StoreError {
    PostgresStore::connect(url).await.err().unwrap_or_else(|| panic!("{url} was accepted"))
}

#[test]
fn every_sslmode_trusts_whom_it_should() {
    let place = tempfile::tempdir().expect("a directory");
    let (ours, others) = (Authority::new(), Authority::new());
    let (root, wrong) =
        (ours.save(place.path(), "root.pem"), others.save(place.path(), "wrong.pem"));
    let client = ours.issue("app", place.path(), "client");
    let stranger = others.issue("app", place.path(), "stranger");
    let server = Server::start_with(
        &[
            "fsync=off",
            "ssl=on",
            "ssl_cert_file=server.crt",
            "ssl_key_file=server.key",
            "ssl_ca_file=root.pem",
        ],
        |data| {
            let _ = ours.issue("localhost", data, "server");
            ours.save(data, "root.pem");
            let rules =
                "local all all trust\nhostssl all app all cert\nhostssl all all all trust\n";
            std::fs::write(data.join("pg_hba.conf"), rules).expect("rules");
            for path in ["server.crt", "server.key", "root.pem"] {
                incumbent_proving::server::postgres::own(&data.join(path));
            }
            let key = data.join("server.key");
            let done = std::process::Command::new("chmod").arg("600").arg(key).status();
            assert!(done.expect("chmod runs").success());
        },
    );
    block_on(async {
        let (port, schema) = (server.port(), fresh());
        let url = |user: &str, host: &str, more: &str| {
            format!("postgres://{user}@{host}:{port}/postgres?schema={schema}&{more}")
        };
        let trusted =
            |mode: &str, root: &Path| format!("sslmode={mode}&sslrootcert={}", root.display());
        // The certificate is for localhost, not for its address.
        let fine = [
            ("localhost", "sslmode=prefer".to_owned()),
            ("localhost", "sslmode=require".to_owned()),
            ("localhost", trusted("verify-ca", &root)),
            ("127.0.0.1", trusted("verify-ca", &root)),
            ("localhost", trusted("verify-full", &root)),
        ];
        for (host, more) in &fine {
            let store = connect(&url("postgres", host, more)).await;
            let key = format!("{host}{more}");
            assert_eq!(write(&store, create(&key, 1)).await, Ok(applied(1)));
        }
        let bad = [
            ("127.0.0.1", trusted("verify-full", &root)),
            ("localhost", trusted("verify-full", &wrong)),
            ("localhost", trusted("verify-ca", &wrong)),
            ("localhost", trusted("require", &wrong)),
            ("localhost", "sslmode=verify-full&sslrootcert=system".to_owned()),
        ];
        for (host, more) in &bad {
            let error = refusal(&url("postgres", host, more)).await;
            assert_eq!(error.kind, ErrorKind::Rejected, "{host} {more}: {error}");
        }
        // This server lets nobody in without encryption.
        let error = refusal(&url("postgres", "localhost", "sslmode=disable")).await;
        assert_eq!(error.kind, ErrorKind::Rejected, "{error}");
        let missing = "sslmode=verify-full&sslrootcert=/nowhere";
        let error = refusal(&url("postgres", "localhost", missing)).await;
        assert!(error.message.contains("/nowhere"), "{error}");

        let full = trusted("verify-full", &root);
        let with = |(certificate, key): &(PathBuf, PathBuf)| {
            format!("{full}&sslcert={}&sslkey={}", certificate.display(), key.display())
        };
        // `app` comes in by its certificate alone. It may not make tables, which are there.
        let grants = incumbent_postgres::PostgresOptions::parse(&url("app", "localhost", &full));
        let grants = grants.expect("options").grants_sql();
        let administrator = over_socket(&server).await;
        administrator
            .batch_execute(&format!("CREATE ROLE app LOGIN; {grants}"))
            .await
            .expect("a role");
        connect(&url("app", "localhost", &with(&client))).await;
        let error = refusal(&url("app", "localhost", &full)).await;
        assert_eq!(error.kind, ErrorKind::Rejected, "{error}");
        refusal(&url("app", "localhost", &with(&stranger))).await;
    });
}
