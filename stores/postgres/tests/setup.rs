//! What is said when something has to be set right first.

#![allow(clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // A test fails by panicking, its helpers too.

mod common;

use common::{
    Server, application, applied, assert_says, block_on, connect, create, over_socket, shared,
    write,
};
use incumbent_core::store::{Access, ErrorKind, Exchange, Lane, Store, StoreError};
use incumbent_postgres::{PostgresOptions, PostgresStore};

async fn refusal(url: &str) -> StoreError {
    PostgresStore::connect(url).await.err().unwrap_or_else(|| panic!("{url} was accepted"))
}

/// A server that asks for passwords over TCP.
fn guarded() -> Server {
    Server::start_with(&["fsync=off"], |data| {
        let rules = "local all all trust\nhost all open 127.0.0.1/32 trust\n\
                     host all all 127.0.0.1/32 scram-sha-256\n";
        std::fs::write(data.join("pg_hba.conf"), rules).expect("rules");
    })
}

#[test]
fn passwords_come_from_where_they_should_and_are_never_shown() {
    let server = guarded();
    block_on(async {
        let administrator = over_socket(&server).await;
        let sql = "CREATE ROLE app LOGIN PASSWORD 'hunter2'; CREATE SCHEMA mine AUTHORIZATION app";
        administrator.batch_execute(sql).await.expect("a role");
        let port = server.port();
        let url = |user: &str| format!("postgres://{user}@127.0.0.1:{port}/postgres?schema=mine");
        let store = connect(&url("app:hunter2")).await;
        assert!(!format!("{store:?}").contains("hunter2"));

        let error = refusal(&url("app:hunter3")).await;
        assert_says(&error, ErrorKind::Rejected, &["password", "28P01", "pg_hba.conf", "app"]);
        assert!(!error.message.contains("hunter"), "{error}");
        let error = refusal(&url("nobody:hunter2")).await;
        assert_says(&error, ErrorKind::Rejected, &["28P01"]);
        let error = refusal(&format!("{}&passfile=/nowhere", url("app"))).await;
        assert_says(&error, ErrorKind::Rejected, &["password missing", "PGPASSWORD"]);

        let place = tempfile::tempdir().expect("a directory");
        let file = place.path().join("password");
        std::fs::write(&file, "hunter2\n").expect("a file");
        let by_file = format!("{}&passwordfile={}", url("app"), file.display());
        let store = connect(&by_file).await;
        // A password that was changed is found by the next connection.
        administrator.batch_execute("ALTER ROLE app PASSWORD 'other'").await.expect("a change");
        std::fs::write(&file, "other").expect("a file");
        assert_eq!(write(&store, create("k", 1)).await, Ok(applied(1)));
        let error = refusal(&format!("{}&passwordfile=/nowhere", url("app"))).await;
        assert_says(&error, ErrorKind::Rejected, &["/nowhere", "may read it"]);

        let passfile = place.path().join("pgpass");
        std::fs::write(&passfile, format!("127.0.0.1:{port}:*:app:other\n")).expect("a file");
        let by_passfile = format!("{}&passfile={}", url("app"), passfile.display());
        set_mode(&passfile, "644");
        assert_says(&refusal(&by_passfile).await, ErrorKind::Rejected, &["chmod 600"]);
        set_mode(&passfile, "600");
        connect(&by_passfile).await;
    });
}

fn set_mode(path: &std::path::Path, mode: &str) {
    let done = std::process::Command::new("chmod").arg(mode).arg(path).status();
    assert!(done.expect("chmod runs").success());
}

#[test]
fn a_role_that_may_not_make_tables_is_told_what_to_run_and_that_helps() {
    let server = Server::start(&["fsync=off"]);
    block_on(async {
        let administrator = application(&server.url("postgres")).await;
        administrator.batch_execute("CREATE ROLE poor LOGIN").await.expect("a role");
        for schema in ["public", "Extra"] {
            let url = format!("{}?schema={schema}", server.url("poor"));
            let error = refusal(&url).await;
            let words = ["poor", "may not make them", "CREATE TABLE", "GRANT SELECT, INSERT"];
            assert_says(&error, ErrorKind::Rejected, &words);
            // The message carries the SQL itself, from its first comment on.
            let sql = error.message.find("-- The tables").and_then(|at| error.message.get(at..));
            administrator.batch_execute(sql.expect("SQL")).await.expect("it runs as it is");
            let store = connect(&url).await;
            assert_eq!(write(&store, create("k", 1)).await, Ok(applied(1)));
        }
    });
}

#[test]
fn the_printed_schema_and_grants_are_enough() {
    let server = Server::start(&["fsync=off"]);
    block_on(async {
        let administrator = application(&server.url("postgres")).await;
        let role = "CREATE ROLE \"we\"\"ird\" LOGIN; REVOKE CREATE ON SCHEMA public FROM public";
        administrator.batch_execute(role).await.expect("a role");
        let url = format!("{}?schema=jobs&prefix=x_", server.url("we%22ird"));
        let options = PostgresOptions::parse(&url).expect("options");
        let sql = PostgresStore::schema_sql(&options);
        assert!(sql.contains("\"jobs\".\"x_records\""), "{sql}");
        administrator.batch_execute(&sql).await.expect("the schema");
        // Twice is fine.
        administrator.batch_execute(&sql).await.expect("the schema");
        assert_says(&refusal(&url).await, ErrorKind::Rejected, &["permission denied"]);
        administrator.batch_execute(&options.grants_sql()).await.expect("the grants");
        let store = connect(&url).await;
        assert_eq!(write(&store, create("k", 1)).await, Ok(applied(1)));
        administrator
            .batch_execute("REVOKE UPDATE ON jobs.x_records FROM \"we\"\"ird\"")
            .await
            .expect("less");
        let error = refusal(&url).await;
        assert_says(&error, ErrorKind::Rejected, &["may not read and write", "GRANT SELECT"]);
        let error = write(&store, common::change("k", 1, 2)).await.expect_err("no right");
        assert_says(&error, ErrorKind::Rejected, &["42501", "GRANT SELECT"]);
    });
}

#[test]
fn tables_that_can_t_be_used_are_rejected() {
    block_on(async {
        let url = shared();
        connect(&url).await;
        let schema = url.rsplit('=').next().expect("a schema").to_owned();
        let application = application(&url).await;
        let run = async |sql: &str| {
            let sql = sql.replace("{s}", &schema);
            application.batch_execute(&sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
        };
        run("UPDATE {s}.incumbent_meta SET value = 2").await;
        let error = refusal(&url).await;
        assert_says(&error, ErrorKind::Rejected, &["format 2", "Upgrade", "prefix="]);
        run("DELETE FROM {s}.incumbent_meta").await;
        assert_says(&refusal(&url).await, ErrorKind::Rejected, &["format nothing", "prefix="]);
        run("INSERT INTO {s}.incumbent_meta VALUES ('format', 1)").await;
        run("ALTER TABLE {s}.incumbent_records SET UNLOGGED").await;
        // F15: such a table is empty after a crash.
        assert_says(&refusal(&url).await, ErrorKind::Rejected, &["unlogged", "SET LOGGED"]);
        run("ALTER TABLE {s}.incumbent_records SET LOGGED").await;
        connect(&url).await;
        run("ALTER TABLE {s}.incumbent_records RENAME COLUMN stamp TO song").await;
        let store = connect(&url).await;
        let error = write(&store, create("k", 1)).await.expect_err("not our table");
        assert_says(&error, ErrorKind::Rejected, &["song", "stamp"].map(|_| "prefix="));
    });
}

#[test]
fn a_server_that_isn_t_there_or_has_no_such_database_is_named() {
    let server = Server::start(&["fsync=off"]);
    block_on(async {
        let port = server.port();
        let url = format!("postgres://postgres@127.0.0.1:{port}/nowhere");
        assert_says(&refusal(&url).await, ErrorKind::Rejected, &["nowhere", "3D000", "Make the"]);
        let closed = incumbent_proving::server::free_port();
        let error = refusal(&format!("postgres://me:hunter2@127.0.0.1:{closed}/x")).await;
        assert_says(&error, ErrorKind::Unavailable, &["127.0.0.1", "refused"]);
        assert!(!error.message.contains("hunter2"), "{error}");
        let sql = "CREATE DATABASE old ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0";
        application(&server.url("postgres")).await.batch_execute(sql).await.expect("a database");
        let error = refusal(&format!("postgres://postgres@127.0.0.1:{port}/old")).await;
        assert_says(&error, ErrorKind::Rejected, &["LATIN1", "ENCODING 'UTF8'"]);
        let error = refusal(&format!("{}?sslmode=require", server.url("postgres"))).await;
        assert_says(&error, ErrorKind::Rejected, &["TLS", "sslmode=prefer"]);
    });
}

#[test]
fn too_many_connections_are_unavailable() {
    let server =
        Server::start(&["fsync=off", "max_connections=8", "superuser_reserved_connections=0"]);
    block_on(async {
        let url = server.url("postgres");
        let mut taken = Vec::new();
        for _ in 0..8 {
            taken.push(application(&url).await);
        }
        let error = refusal(&url).await;
        assert_says(&error, ErrorKind::Unavailable, &["too many clients", "max_connections"]);
        taken.clear();
        for _ in 0..100 {
            if PostgresStore::connect(&url).await.is_ok() {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        panic!("{}", refusal(&url).await);
    });
}

#[test]
fn durability_is_told_and_kept() {
    let server = Server::start(&["fsync=off", "synchronous_commit=off"]);
    block_on(async {
        let store = connect(&server.fresh_url()).await;
        assert!(!store.capabilities().durable);
        let warnings = store.facts().warnings().join("\n");
        assert!(warnings.contains("fsync is off") && warnings.contains("synchronous_commit"));
        assert!(store.facts().version / 10_000 >= 13);
    });
    block_on(async {
        let store = connect(&shared()).await;
        let facts = store.facts();
        assert_eq!(store.capabilities().durable, facts.fsync);
    });
}

#[test]
fn many_stores_may_make_the_tables_at_once() {
    block_on(async {
        let url = shared();
        let tasks: Vec<_> = (0..8)
            .map(|_| {
                let url = url.clone();
                tokio::runtime::Handle::current()
                    .spawn(async move { PostgresStore::connect(&url).await })
            })
            .collect();
        for task in tasks {
            task.await.expect("no panic").expect("the store opens");
        }
    });
}

#[test]
fn o36_who_looks_makes_nothing_and_sees_what_comes_later() {
    let server = Server::start(&["fsync=off"]);
    block_on(async {
        let administrator = application(&server.url("postgres")).await;
        administrator.batch_execute("CREATE ROLE looker LOGIN").await.expect("a role");
        let url = format!("{}?schema=later", server.url("looker"));
        let options = PostgresOptions::parse(&url).expect("options").access(Access::Look);
        let looker = PostgresStore::connect_with(options.clone()).await.expect("it opens");
        assert!(common::find(&looker, "k").await.is_none());
        let schemas = "SELECT FROM pg_namespace WHERE nspname = 'later'";
        assert!(administrator.query(schemas, &[]).await.expect("an answer").is_empty());

        let store = connect(&format!("{}?schema=later", server.url("postgres"))).await;
        assert_eq!(write(&store, create("k", 1)).await, Ok(applied(1)));
        // The tables are there, and it may not read them yet.
        let read = Exchange { writes: Vec::new(), reads: vec![common::read("k")] };
        let error = looker.exchange("c", Lane::Watch, read.clone()).await.expect_err("no right");
        assert_says(&error, ErrorKind::Rejected, &["looker", "GRANT SELECT ON"]);
        assert!(!error.message.contains("INSERT"), "{error}");
        administrator.batch_execute(&options.grants_sql()).await.expect("the grants");
        assert!(common::find(&looker, "k").await.is_some());
        let hints = common::Hints::of(&looker, "c").ready().await;
        let before = hints.count();
        write(&store, common::change("k", 1, 2)).await.expect("a write");
        common::eventually("a hint for who looks", || hints.count() > before).await;
        // It can't write, whoever asks it to.
        let error = write(&looker, create("l", 3)).await.expect_err("no right");
        assert_says(&error, ErrorKind::Rejected, &["42501"]);
    });
}
