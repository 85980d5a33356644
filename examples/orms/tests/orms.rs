//! A leader that was superseded commits nothing through any of them; without the assertion it does.

use std::time::Duration;

use diesel::prelude::*;
use incumbent::{Leadership, Node};
use incumbent_example_orms::{over_diesel, over_sea_orm, over_sqlx};
use incumbent_fence::FenceError;
use sea_orm::{ConnectionTrait as _, Database, TransactionTrait as _};
use sqlx::postgres::PgPoolOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};
use sqlx::{AssertSqlSafe, PgPool, Row as _, SqlitePool};

/// The server that `cargo xtask serve postgres` starts.
fn server() -> String {
    std::env::var("INCUMBENT_TEST_POSTGRES").expect(
        "INCUMBENT_TEST_POSTGRES isn't set: run `cargo xtask serve postgres`, and export what it prints",
    )
}

/// A node that leads, and one that will.
struct Scene {
    old: Node,
    held: Leadership,
    new: Node,
}

async fn scene(url: &str) -> Scene {
    let node = async |name: &str| {
        let store = incumbent::open(url).await.expect("a store");
        let node = Node::builder().cluster("orms").name(name).for_tests();
        node.ttl(Duration::from_secs(5)).join(&store).await.expect("it joins")
    };
    let (old, new) = (node("old").await, node("new").await);
    let held = old.campaign("daily, report").expect("a name").elected().await.expect("it leads");
    Scene { old, held, new }
}

impl Scene {
    /// Hands over, and keeps what a superseded leader still believes.
    async fn supersede(self) -> (incumbent::Assertion, Leadership, Node) {
        let stale = self.held.assertion();
        drop(self.held);
        self.old.leave().await.expect("it leaves");
        let mut campaign = self.new.campaign("daily, report").expect("a name");
        let next = campaign.elected().await.expect("it leads");
        (stale, next, self.new)
    }
}

fn refused<T, E: std::fmt::Debug>(result: Result<T, FenceError<E>>, next: &Leadership) {
    match result {
        Err(FenceError::Superseded { held_by, term }) => {
            assert_eq!((held_by.as_deref(), term), (Some("new"), Some(next.number())));
        }
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("a stale leader passed"),
    }
}

/// A schema of its own, with a table for the work.
async fn place(name: &str) -> (String, PgPool) {
    let schema = format!("orms_{name}_{}", std::process::id());
    let base = server();
    let base = base.split('?').next().expect("a URL");
    let pool = PgPoolOptions::new().max_connections(2).connect(base).await.expect("a server");
    for sql in [
        format!("CREATE SCHEMA {schema}"),
        format!("CREATE TABLE {schema}.work (by text NOT NULL)"),
    ] {
        sqlx::query(AssertSqlSafe(sql)).execute(&pool).await.expect("a table");
    }
    (schema, pool)
}

fn insert(schema: &str, by: &str) -> String {
    format!("INSERT INTO {schema}.work VALUES ('{by}')")
}

async fn done(pool: &PgPool, schema: &str) -> Vec<String> {
    let sql = format!("SELECT by FROM {schema}.work ORDER BY by");
    let rows = sqlx::query(AssertSqlSafe(sql)).fetch_all(pool).await.expect("rows");
    rows.iter().map(|row| row.get(0)).collect()
}

fn store(schema: &str) -> String {
    let base = server();
    let joint = if base.contains('?') { '&' } else { '?' };
    format!("{base}{joint}schema={schema}")
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlx_on_postgresql() {
    let (schema, pool) = place("sqlx").await;
    let scene = scene(&store(&schema)).await;
    let mut transaction = pool.begin().await.expect("a transaction");
    over_sqlx::assert(&mut transaction, &*scene.held).await.expect("it is held");
    let sql = insert(&schema, "old");
    sqlx::query(AssertSqlSafe(sql)).execute(&mut *transaction).await.expect("work");
    transaction.commit().await.expect("a commit in its term");

    let (stale, next, _node) = scene.supersede().await;
    let mut transaction = pool.begin().await.expect("a transaction");
    refused(over_sqlx::assert(&mut transaction, &stale).await, &next);
    let more = sqlx::query(AssertSqlSafe(insert(&schema, "stale")));
    assert!(more.execute(&mut *transaction).await.is_err(), "the server refuses what comes after");
    drop(transaction);
    assert_eq!(done(&pool, &schema).await, ["old"]);

    let unfenced = sqlx::query(AssertSqlSafe(insert(&schema, "stale")));
    unfenced.execute(&pool).await.expect("nothing else would have refused it");
}

#[tokio::test(flavor = "multi_thread")]
async fn sea_orm_on_postgresql() {
    let (schema, pool) = place("sea").await;
    let scene = scene(&store(&schema)).await;
    let base = server();
    let database = Database::connect(base.split('?').next().expect("a URL")).await;
    let database = database.expect("a connection");
    let transaction = database.begin().await.expect("a transaction");
    over_sea_orm::assert(&transaction, &*scene.held).await.expect("it is held");
    transaction.execute_unprepared(&insert(&schema, "old")).await.expect("work");
    transaction.commit().await.expect("a commit in its term");

    let (stale, next, _node) = scene.supersede().await;
    let transaction = database.begin().await.expect("a transaction");
    refused(over_sea_orm::assert(&transaction, &stale).await, &next);
    let more = transaction.execute_unprepared(&insert(&schema, "stale")).await;
    assert!(more.is_err(), "the server refuses what comes after");
    drop(transaction);
    assert_eq!(done(&pool, &schema).await, ["old"]);
}

/// What a program of diesel's has: one error for all.
#[derive(Debug)]
enum Failure {
    Fence(FenceError<diesel::result::Error>),
    Database,
}

impl From<diesel::result::Error> for Failure {
    fn from(_: diesel::result::Error) -> Self {
        Self::Database
    }
}

impl From<FenceError<diesel::result::Error>> for Failure {
    fn from(error: FenceError<diesel::result::Error>) -> Self {
        Self::Fence(error)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn diesel_on_postgresql() {
    let (schema, pool) = place("diesel").await;
    let scene = scene(&store(&schema)).await;
    let base = server();
    let connected = PgConnection::establish(base.split('?').next().expect("a URL"));
    let mut connection = connected.expect("a connection");
    let work = |connection: &mut PgConnection, by: &str| {
        diesel::sql_query(insert(&schema, by)).execute(connection)
    };
    connection
        .transaction::<_, Failure, _>(|connection| {
            over_diesel::assert(connection, &*scene.held)?;
            Ok(work(connection, "old")?)
        })
        .expect("a commit in its term");

    // Where the lock wouldn't last, it is refused before anything is asked.
    let autocommit = over_diesel::assert(&mut connection, &*scene.held);
    assert!(matches!(autocommit, Err(FenceError::Unfit(_))), "{autocommit:?}");
    let nested = connection.transaction::<_, Failure, _>(|connection| {
        connection.transaction(|connection| Ok(over_diesel::assert(connection, &*scene.held)?))
    });
    assert!(matches!(nested, Err(Failure::Fence(FenceError::Unfit(_)))), "{nested:?}");

    let (stale, next, _node) = scene.supersede().await;
    let fenced = connection.transaction::<_, Failure, _>(|connection| {
        let asserted = over_diesel::assert(connection, &stale);
        assert!(work(connection, "stale").is_err(), "the server refuses what comes after");
        Ok(asserted?)
    });
    match fenced {
        Err(Failure::Fence(error)) => refused(Err::<(), _>(error), &next),
        other => panic!("{other:?}"),
    }
    assert_eq!(done(&pool, &schema).await, ["old"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlx_on_sqlite() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("app.db");
    let scene = scene(&format!("sqlite:{}", file.display())).await;
    let options = SqliteConnectOptions::new().filename(&file).create_if_missing(true);
    let options = options.busy_timeout(Duration::from_secs(5));
    let one = SqlitePoolOptions::new().max_connections(1);
    let pool: SqlitePool = one.connect_with(options).await.expect("a file");
    sqlx::query("CREATE TABLE work (by TEXT)").execute(&pool).await.expect("a table");
    let count = async || {
        let row = sqlx::query("SELECT count(*) FROM work").fetch_one(&pool).await.expect("a count");
        row.get::<i64, _>(0)
    };
    let mut transaction = over_sqlx::begin(&pool, &*scene.held).await.expect("it is held");
    let work = sqlx::query("INSERT INTO work VALUES ('old')");
    work.execute(&mut *transaction).await.expect("work");
    transaction.commit().await.expect("a commit in its term");

    let other = directory.path().join("other.db");
    let attach = format!("ATTACH DATABASE '{}' AS other", other.display());
    sqlx::query(AssertSqlSafe(attach)).execute(&pool).await.expect("it attaches");
    let unfit = over_sqlx::begin(&pool, &*scene.held).await;
    assert!(matches!(unfit, Err(FenceError::Unfit(_))), "{unfit:?}");
    sqlx::query("DETACH DATABASE other").execute(&pool).await.expect("it goes");

    let (stale, _next, _node) = scene.supersede().await;
    let refused = over_sqlx::begin(&pool, &stale).await;
    // SQLite's trigger can't say more than that.
    assert!(
        matches!(refused, Err(FenceError::Superseded { held_by: None, term: None })),
        "{refused:?}"
    );
    assert_eq!(count().await, 1);

    // The trap: an error doesn't end a transaction here, so that who swallows it has no fence.
    let mut transaction = pool.begin_with("BEGIN IMMEDIATE").await.expect("a transaction");
    let sql = stale.sql.expect("a statement").statement;
    let asked = sqlx::query(AssertSqlSafe(sql)).bind(stale.cluster).bind(stale.lease);
    assert!(asked.bind(stale.term).execute(&mut *transaction).await.is_err());
    let work = sqlx::query("INSERT INTO work VALUES ('stale')");
    work.execute(&mut *transaction).await.expect("SQLite goes on");
    transaction.commit().await.expect("and commits");
    assert_eq!(count().await, 2);
}
