//! Standbys, and a primary that is replaced (F20).

#![allow(clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // A test fails by panicking, its helpers too.

mod common;

use std::process::Stdio;
use std::time::Duration;

use common::{Server, applied, block_on, change, connect, create, find, fresh, version, write};
use incumbent_core::store::ErrorKind;
use incumbent_postgres::PostgresStore;
use incumbent_proving::server::postgres;

/// A standby of this server.
fn standby_of(primary: &Server) -> Server {
    Server::start_with(&["fsync=off", "hot_standby=on"], |data| {
        std::fs::remove_dir_all(data).expect("an empty place");
        let copied = postgres::command("pg_basebackup")
            .args(["-h", "127.0.0.1", "-U", "postgres", "-R", "-c", "fast", "-p"])
            .arg(primary.port().to_string())
            .arg("-D")
            .arg(data)
            .stdout(Stdio::null())
            .status();
        assert!(copied.expect("pg_basebackup runs").success());
    })
}

#[test]
fn a_standby_is_refused_and_a_promoted_one_is_found_without_a_restart() {
    let primary = Server::start(&["fsync=off", "wal_level=replica"]);
    let schema = fresh();
    block_on(async {
        let store = connect(&format!("{}?schema={schema}", primary.url("postgres"))).await;
        assert_eq!(write(&store, create("k", 0)).await, Ok(applied(0)));
    });
    let standby = standby_of(&primary);
    block_on(async {
        let url = format!("{}?schema={schema}", standby.url("postgres"));
        let error = PostgresStore::connect(&url).await.expect_err("a standby");
        assert_eq!(error.kind, ErrorKind::Unavailable, "{error}");
        assert!(error.message.contains("standby") && error.message.contains("promoted"), "{error}");

        // There nobody waits for who asserts a term, so that nobody may.
        let replica = common::application(&url).await;
        let ask = format!("SELECT {schema}.incumbent_assert('c', 'scheduler', 1)");
        let error = replica.query_one(&ask, &[]).await.expect_err("a standby");
        let code = error.code().expect("a code").code();
        assert_eq!(code, "25006", "{error}");

        // With both named, the primary is found wherever it is.
        let both = format!(
            "postgres://postgres@127.0.0.1:{},127.0.0.1:{}/postgres?schema={schema}",
            standby.port(),
            primary.port()
        );
        let store = connect(&both).await;
        assert_eq!(store.facts().standbys, 1);
        assert!(store.facts().warnings().join(" ").contains("No standby is synchronous"));
        assert_eq!(write(&store, change("k", 0, 1)).await, Ok(applied(1)));
        caught_up(&standby, &schema).await;
        primary.kill();
        let error = write(&store, change("k", 1, 2)).await.expect_err("no primary");
        assert_eq!(error.kind, ErrorKind::Unavailable, "{error}");
        let promoted = postgres::command("pg_ctl")
            .args(["promote", "-w", "-D"])
            .arg(standby.data())
            .stdout(Stdio::null())
            .status();
        assert!(promoted.expect("pg_ctl runs").success());
        for attempt in 10..200 {
            match write(&store, change("k", 1, attempt)).await {
                Ok(outcome) => {
                    assert_eq!(outcome, applied(attempt));
                    assert_eq!(find(&store, "k").await.expect("it").version, version(attempt));
                    return;
                }
                Err(error) => assert_eq!(error.kind, ErrorKind::Unavailable, "{error}"),
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("the promoted standby was not found");
    });
}

async fn caught_up(standby: &Server, schema: &str) {
    let client = common::application(&standby.url("postgres")).await;
    let sql = format!("SELECT stamp FROM {schema}.incumbent_records WHERE key = 'k'");
    for _ in 0..400 {
        let row = client.query_opt(&sql, &[]).await.expect("a row");
        if row.is_some_and(|row| row.get::<_, String>(0) == version(1).as_str()) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("the standby didn't catch up");
}
