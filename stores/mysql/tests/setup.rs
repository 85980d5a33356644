//! What has to be there before the store can be used, and what it says when it isn't.
#![allow(clippy::panic, clippy::expect_used, clippy::indexing_slicing)] // A test fails by panicking, its helpers too.

mod common;

use common::{
    Server, application, applied, assert_says, block_on, connect, create, find, fresh, prefix,
    read, run, send, shared, with_value, write,
};
use incumbent_core::store::{Access, ErrorKind, Expect, Found, Lane, StoreError};
use incumbent_mysql::{MysqlOptions, MysqlStore};
use mysql_async::prelude::Queryable;

async fn refused(url: &str) -> StoreError {
    MysqlStore::connect(url).await.expect_err("it can't be used")
}

#[test]
fn views_show_leases_and_members_to_people() {
    block_on(async {
        let url = shared();
        let store = connect(&url).await;
        let lease = "{\"name\":\"Zeitplan ü\",\"term\":7,\"holder\":{\"node\":\"billing-1\",\
                     \"member\":\"m1\",\"address\":null}}";
        let member = "{\"state\":\"alive\",\"beat\":3,\"ttl_ms\":15000,\"due_ms\":5000}";
        let writes = vec![
            with_value("lease/x", Expect::Absent, 1, lease),
            with_value("lease/broken", Expect::Absent, 2, "no JSON"),
            with_value("lease/free", Expect::Absent, 3, "{\"term\":2,\"holder\":null}"),
            with_value("member/m1", Expect::Absent, 4, member),
        ];
        send(&store, Lane::Change, writes, vec![]).await.expect("writes");
        let mut person = application(&url).await;
        let sql = format!(
            "SELECT cluster, name, term, holder, member, address FROM {}leases ORDER BY `key`",
            prefix(&url)
        );
        type Row = (String, String, Option<u64>, Option<String>, Option<String>, Option<String>);
        let leases: Vec<Row> = person.query(sql).await.expect("a view");
        let text = |text: &str| Some(text.to_owned());
        let none = || (None, None, None);
        let row = |name: &str, term, (holder, member, address)| -> Row {
            ("c".to_owned(), name.to_owned(), term, holder, member, address)
        };
        assert_eq!(leases[0], row("broken", None, none()));
        assert_eq!(leases[1], row("free", Some(2), none()));
        assert_eq!(leases[2], row("Zeitplan ü", Some(7), (text("billing-1"), text("m1"), None)));
        let sql = format!("SELECT id, state, beat, ttl_ms FROM {}members", prefix(&url));
        let members: Vec<(String, String, u64, u64)> = person.query(sql).await.expect("a view");
        assert_eq!(members, [("m1".to_owned(), "alive".to_owned(), 3, 15_000)]);
    });
}

#[test]
fn wrong_passwords_databases_and_hosts_are_told_without_secrets() {
    let server = Server::start(&[]);
    block_on(async {
        let mut root = application(&server.url("root")).await;
        run(&mut root, "CREATE USER app@'%' IDENTIFIED BY 'rightpass'").await;
        run(&mut root, "GRANT ALL ON app.* TO app@'%'").await;
        let port = server.port();
        let url =
            |user: &str, database: &str| format!("mysql://{user}@127.0.0.1:{port}/{database}");

        let error = refused(&url("app:wrongpass", "app")).await;
        assert_says(&error, ErrorKind::Rejected, &["127.0.0.1", "1045", "MYSQL_PWD", "app"]);
        assert!(!error.message.contains("wrongpass"), "{error}");
        let error = refused(&url("root", "nowhere")).await;
        assert_says(&error, ErrorKind::Rejected, &["nowhere", "Make the database"]);
        let error = refused(&url("app:rightpass", "mysql")).await;
        assert_says(&error, ErrorKind::Rejected, &["rights on the database mysql"]);
        let error = refused("mysql://app:wrongpass@127.0.0.1:1/app").await;
        assert_says(&error, ErrorKind::Unavailable, &["127.0.0.1:1"]);
        assert!(!error.message.contains("wrongpass"), "{error}");

        let store = connect(&url("app:rightpass", "app")).await;
        let shown = format!("{store:?} {:?}", store.options());
        assert!(!shown.contains("rightpass") && shown.contains("127.0.0.1"), "{shown}");
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), "rightpass\n").expect("a password");
        let by_file = format!("{}?passwordfile={}", url("app", "app"), file.path().display());
        connect(&by_file).await;
        let error = refused(&format!("{}?passwordfile=/no/such", url("app", "app"))).await;
        assert_says(&error, ErrorKind::Rejected, &["/no/such"]);
    });
}

#[test]
fn a_user_that_may_not_make_tables_is_told_what_to_run() {
    let server = Server::start(&[]);
    block_on(async {
        let mut root = application(&server.url("root")).await;
        run(&mut root, "CREATE USER app@'%'").await;
        // It may enter the database, and that is all.
        run(&mut root, "CREATE TABLE app.other (x INT)").await;
        run(&mut root, "GRANT SELECT ON app.other TO app@'%'").await;
        let url = format!("{}?prefix={}", server.url("app"), fresh());
        let error = refused(&url).await;
        let words = ["may not make them", "CREATE TABLE", "CREATE OR REPLACE", "GRANT SELECT"];
        assert_says(&error, ErrorKind::Rejected, &words);

        // An operator does just that, and it works.
        let options = MysqlOptions::parse(&url).expect("a URL");
        let sql = MysqlStore::schema_sql(&options) + &options.grants_sql();
        let mut admin = application(&server.url("root")).await;
        run(&mut admin, &sql).await;
        let store = connect(&url).await;
        assert_eq!(write(&store, create("k", 1)).await, Ok(applied(1)));
        assert!(find(&store, "k").await.is_some());

        // Without the right to write, the error says which.
        let revoke = format!("REVOKE UPDATE, INSERT ON app.{}records FROM app@`%`", prefix(&url));
        run(&mut admin, &revoke).await;
        let store = connect(&url).await;
        let error = write(&store, create("l", 2)).await.expect_err("no right");
        assert_says(&error, ErrorKind::Rejected, &["GRANT SELECT, INSERT, UPDATE, DELETE"]);
    });
}

#[test]
fn other_formats_and_other_engines_are_refused() {
    block_on(async {
        let url = shared();
        drop(connect(&url).await);
        let mut admin = application(&url).await;
        let prefix = prefix(&url);
        run(&mut admin, &format!("UPDATE {prefix}meta SET value = 2")).await;
        assert_says(&refused(&url).await, ErrorKind::Rejected, &["format 2", "Upgrade"]);
        run(&mut admin, &format!("DELETE FROM {prefix}meta")).await;
        assert_says(&refused(&url).await, ErrorKind::Rejected, &["format nothing", "prefix="]);
        run(&mut admin, &format!("INSERT INTO {prefix}meta VALUES ('format', 1)")).await;
        run(&mut admin, &format!("ALTER TABLE {prefix}records ENGINE = MyISAM")).await;
        let error = refused(&url).await;
        assert_says(&error, ErrorKind::Rejected, &["MyISAM", "ENGINE = InnoDB;"]);
        run(&mut admin, &format!("ALTER TABLE {prefix}records ENGINE = InnoDB")).await;
        connect(&url).await;
    });
}

#[test]
fn many_processes_may_make_the_tables_at_once() {
    block_on(async {
        let url = shared();
        let mut opening = tokio::task::JoinSet::new();
        for _ in 0..12 {
            let url = url.clone();
            opening.spawn(async move { MysqlStore::connect(&url).await.map(drop) });
        }
        while let Some(opened) = opening.join_next().await {
            opened.expect("no panic").expect("it opens");
        }
    });
}

#[test]
fn sessions_are_independent_of_the_servers_defaults() {
    let server = Server::start(&[
        "--sql-mode=ANSI,PAD_CHAR_TO_FULL_LENGTH",
        "--character-set-server=latin1",
        "--skip-character-set-client-handshake",
        "--autocommit=0",
        "--transaction-isolation=SERIALIZABLE",
        "--innodb-flush-log-at-trx-commit=2",
        "--default-time-zone=+13:00",
    ]);
    block_on(async {
        let store = connect(&server.fresh_url()).await;
        use incumbent_core::store::Store;
        assert!(!store.capabilities().durable, "the log isn't flushed at each commit");
        let value = "{\"text\":\"日本語 🦀 é\"}";
        let put = with_value("k", Expect::Absent, 1, value);
        assert_eq!(write(&store, put).await, Ok(applied(1)));
        let other = connect(&server.fresh_url()).await;
        drop(other);
        let record = find(&store, "k").await.expect("it is committed");
        assert_eq!(record.value, value.as_bytes());
        assert!(record.age.expect("an age") < std::time::Duration::from_secs(60));
        let reply = send(&store, Lane::Beat, vec![], vec![read("k")]).await.expect("a read");
        assert!(matches!(reply.reads[0], Found::Record(_)));
    });
}

#[test]
fn o36_a_user_with_select_alone_can_look_and_makes_nothing() {
    let server = Server::start(&[]);
    block_on(async {
        let mut root = application(&server.url("root")).await;
        run(&mut root, "CREATE USER looker@'%'").await;
        run(&mut root, "CREATE TABLE app.other (x INT)").await;
        run(&mut root, "GRANT SELECT ON app.other TO looker@'%'").await;
        let prefix = fresh();
        let url = format!("{}?prefix={prefix}", server.url("looker"));
        let options = MysqlOptions::parse(&url).expect("options").access(Access::Look);
        let error = MysqlStore::open(options.clone()).await.expect_err("no right");
        assert_says(&error, ErrorKind::Rejected, &["looker", "GRANT SELECT ON"]);
        assert!(!error.message.contains("INSERT"), "{error}");

        // It may read all there is, and there is nothing of ours.
        run(&mut root, "GRANT SELECT ON app.* TO looker@'%'").await;
        let looker = MysqlStore::open(options.clone()).await.expect("it opens");
        assert!(find(&looker, "k").await.is_none());
        let tables: Vec<String> = root.query("SHOW TABLES FROM app").await.expect("an answer");
        assert_eq!(tables, ["other"]);

        let store = connect(&format!("{}?prefix={prefix}", server.url("root"))).await;
        assert_eq!(write(&store, create("k", 1)).await, Ok(applied(1)));
        assert!(find(&looker, "k").await.is_some(), "what came later");
        // The printed rights are enough.
        run(&mut root, "REVOKE SELECT ON app.* FROM looker@'%'").await;
        run(&mut root, &options.grants_sql()).await;
        let looker = MysqlStore::open(options).await.expect("it opens");
        assert!(find(&looker, "k").await.is_some());
        let error = write(&looker, create("l", 2)).await.expect_err("no right");
        assert_says(&error, ErrorKind::Rejected, &["1142"]);
    });
}
