//! Gates in tables, asked in the transaction that writes.
#![allow(clippy::expect_used, clippy::panic)] // A test fails by panicking, its helpers too.

mod common;

use std::path::PathBuf;
use std::time::Duration;

use common::{NEW, OLD, Resource, Way, block_on, holds, pause};
use incumbent_gate::{GateError, Token, mysql, postgres, sqlite};
use incumbent_proving::server::mariadb;
use mysql_async::prelude::Queryable as _;
use rusqlite::TransactionBehavior;

fn token(term: u64) -> Token {
    Token::new("scheduler", term)
}

/// Longer than a transaction of the new leader's.
async fn long_pause() {
    for _ in 0..10 {
        pause().await;
    }
}

struct Postgres {
    client: tokio_postgres::Client,
    resource: String,
}

impl Postgres {
    async fn open(url: &str, resource: String) -> Self {
        let connecting = tokio_postgres::connect(url, tokio_postgres::NoTls).await;
        let (client, connection) = connecting.expect("a connection");
        tokio::runtime::Handle::current().spawn(connection);
        Self { client, resource }
    }

    async fn admitted(&mut self, term: u64) -> Result<(), GateError<tokio_postgres::Error>> {
        let transaction = self.client.transaction().await.expect("a transaction");
        postgres::admit(&transaction, &self.resource, &token(term)).await?;
        pause().await;
        let set = "UPDATE gated SET data = $2 WHERE resource = $1";
        let set = transaction.execute(set, &[&self.resource, &term.cast_signed()]).await;
        assert_eq!(set.expect("a write"), 1);
        transaction.commit().await.map_err(GateError::Unreachable)
    }
}

impl Resource for Postgres {
    async fn write(&mut self, term: u64, way: Way) -> bool {
        if way == Way::Gate || term == NEW {
            return match self.admitted(term).await {
                Ok(()) => true,
                Err(GateError::Superseded { term: NEW }) => false,
                Err(other) => panic!("{other}"),
            };
        }
        if postgres::show(&self.client, &self.resource, &token(term)).await.is_err() {
            return false;
        }
        long_pause().await;
        let set = "UPDATE gated SET data = $2 WHERE resource = $1";
        self.client.execute(set, &[&self.resource, &term.cast_signed()]).await.expect("a write");
        true
    }

    async fn data(&mut self) -> u64 {
        let sql = "SELECT data FROM gated WHERE resource = $1";
        let row = self.client.query_one(sql, &[&self.resource]).await.expect("a row");
        row.get::<_, i64>(0).cast_unsigned()
    }
}

#[test]
fn nothing_stale_gets_through_a_table_of_postgresql() {
    let server = incumbent_proving::server::postgres::start(&["fsync=off"]);
    let url = incumbent_proving::server::postgres::url(&server, "postgres");
    block_on(async {
        let maker = Postgres::open(&url, String::new()).await.client;
        let tables =
            format!("{}; CREATE TABLE gated (resource text, data bigint)", postgres::SCHEMA);
        maker.batch_execute(&tables).await.expect("tables");
        maker.batch_execute(postgres::SCHEMA).await.expect("it may be there already");
        for round in 0..20 {
            let fill =
                format!("INSERT INTO gated VALUES ('Gate{round}', 0), ('AskFirst{round}', 0)");
            maker.batch_execute(&fill).await.expect("rows");
        }
        holds(20, |way, round| Postgres::open(&url, format!("{way:?}{round}"))).await;

        // A snapshot from before a higher term commits nothing.
        let mut one = Postgres::open(&url, "Gate0".to_owned()).await;
        let level = tokio_postgres::IsolationLevel::RepeatableRead;
        let starting = one.client.build_transaction().isolation_level(level).start().await;
        let transaction = starting.expect("a transaction");
        transaction.query("SELECT 1 FROM gated", &[]).await.expect("a snapshot");
        postgres::show(&maker, "Gate0", &token(9)).await.expect("a higher term");
        let refused = postgres::admit(&transaction, "Gate0", &token(NEW)).await;
        assert!(matches!(refused, Err(GateError::Unreachable(_))), "{refused:?}");
        drop(transaction);
        let error = postgres::show(&maker, "Gate0", &token(OLD)).await.expect_err("it is over");
        assert_eq!(error.to_string(), "the term is over: the gate has seen term 9");
    });
}

struct Mariadb {
    conn: mysql_async::Conn,
    resource: String,
}

impl Mariadb {
    async fn open(url: &str, resource: String) -> Self {
        let opts = mysql_async::Opts::from_url(url).expect("a URL");
        let opts = mysql_async::OptsBuilder::from_opts(opts).prefer_socket(false);
        Self { conn: mysql_async::Conn::new(opts).await.expect("a connection"), resource }
    }

    async fn set(&mut self, term: u64) {
        let set = "UPDATE gated SET data = ? WHERE resource = ?";
        self.conn.exec_drop(set, (term, &self.resource)).await.expect("a write");
    }
}

impl Resource for Mariadb {
    async fn write(&mut self, term: u64, way: Way) -> bool {
        let starting = self.conn.start_transaction(mysql_async::TxOpts::default()).await;
        let mut transaction = starting.expect("a transaction");
        match mysql::admit(&mut transaction, &self.resource, &token(term)).await {
            Ok(()) => {}
            Err(GateError::Superseded { term: NEW }) => {
                transaction.rollback().await.expect("a rollback");
                return false;
            }
            // Two that make the row at once may wait for each other, and one of them is refused.
            Err(GateError::Unreachable(mysql_async::Error::Server(error)))
                if error.code == 1213 =>
            {
                transaction.rollback().await.expect("a rollback");
                return false;
            }
            Err(other) => panic!("{other}"),
        }
        if way == Way::AskFirst && term == OLD {
            transaction.commit().await.expect("a commit");
            long_pause().await;
            self.set(term).await;
            return true;
        }
        pause().await;
        let set = "UPDATE gated SET data = ? WHERE resource = ?";
        transaction.exec_drop(set, (term, &self.resource)).await.expect("a write");
        transaction.commit().await.expect("a commit");
        true
    }

    async fn data(&mut self) -> u64 {
        let sql = "SELECT data FROM gated WHERE resource = ?";
        let found = self.conn.exec_first(sql, (&self.resource,)).await.expect("an answer");
        found.expect("a row")
    }
}

#[test]
fn nothing_stale_gets_through_a_table_of_mariadb() {
    let url = mariadb::shared();
    block_on(async {
        let mut maker = Mariadb::open(&url, String::new()).await.conn;
        maker.query_drop(mysql::SCHEMA).await.expect("a table");
        maker.query_drop("DELETE FROM incumbent_gate").await.expect("an empty table");
        maker.query_drop("DROP TABLE IF EXISTS gated").await.expect("a fresh start");
        let table = "CREATE TABLE gated (resource VARCHAR(40) PRIMARY KEY, data BIGINT)";
        maker.query_drop(table).await.expect("a table");
        for round in 0..20 {
            let fill =
                format!("INSERT INTO gated VALUES ('Gate{round}', 0), ('AskFirst{round}', 0)");
            maker.query_drop(fill).await.expect("rows");
        }
        holds(20, |way, round| Mariadb::open(&url, format!("{way:?}{round}"))).await;
    });
}

struct Sqlite {
    path: PathBuf,
    resource: String,
}

impl Sqlite {
    fn connection(&self) -> rusqlite::Connection {
        let connection = rusqlite::Connection::open(&self.path).expect("a connection");
        connection.busy_timeout(Duration::from_secs(30)).expect("patience");
        connection
    }

    fn admitted(&self, term: u64, way: Way) -> bool {
        let mut connection = self.connection();
        let behavior = TransactionBehavior::Immediate;
        let transaction = connection.transaction_with_behavior(behavior).expect("a transaction");
        match sqlite::admit(&transaction, &self.resource, &token(term)) {
            Ok(()) => {}
            Err(GateError::Superseded { term: NEW }) => return false,
            Err(other) => panic!("{other}"),
        }
        let set = "UPDATE gated SET data = ?2 WHERE resource = ?1";
        let set = |connection: &rusqlite::Connection| {
            let done = connection.execute(set, (&self.resource, term.cast_signed()));
            assert_eq!(done.expect("a write"), 1);
        };
        if way == Way::Gate || term == NEW {
            set(&transaction);
            transaction.commit().expect("a commit");
        } else {
            transaction.commit().expect("a commit");
            std::thread::park_timeout(Duration::from_millis(20));
            set(&connection);
        }
        true
    }
}

impl Resource for Sqlite {
    async fn write(&mut self, term: u64, way: Way) -> bool {
        let through = self.admitted(term, way);
        tokio::task::yield_now().await;
        through
    }

    async fn data(&mut self) -> u64 {
        let sql = "SELECT data FROM gated WHERE resource = ?1";
        let read = |row: &rusqlite::Row<'_>| row.get::<_, i64>(0);
        let found = self.connection().query_row(sql, [&self.resource], read);
        found.expect("a row").cast_unsigned()
    }
}

#[test]
fn nothing_stale_gets_through_a_table_of_sqlite() {
    let place = tempfile::tempdir().expect("a directory");
    let path = place.path().join("app.db");
    let made = Sqlite { path: path.clone(), resource: String::new() }.connection();
    made.execute_batch("PRAGMA journal_mode = WAL").expect("a log");
    made.execute_batch(sqlite::SCHEMA).expect("a table");
    made.execute_batch("CREATE TABLE gated (resource TEXT, data INTEGER)").expect("a table");
    for round in 0..20 {
        let fill = format!("INSERT INTO gated VALUES ('Gate{round}', 0), ('AskFirst{round}', 0)");
        made.execute_batch(&fill).expect("rows");
    }
    block_on(holds(20, |way, round| {
        let path = path.clone();
        async move { Sqlite { path, resource: format!("{way:?}{round}") } }
    }));
}
