//! Terms and duties asserted through each driver, on real databases.
#![allow(clippy::expect_used, clippy::panic)] // A test fails by panicking, its helpers too.

use std::time::Duration;

use incumbent::{Duty, Leadership, Node, OpenStore, Serving, family};
use incumbent_fence::{Asserted as _, FenceError, mysql, postgres as fenced, sqlite};
use incumbent_proving::server::{mariadb, postgres};
use mysql_async::prelude::Queryable as _;
use rusqlite::TransactionBehavior;
use tokio::sync::mpsc;

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.expect("a runtime").block_on(future)
}

/// A node that leads, a duty that it runs, and the store of both.
struct Scene {
    node: Node,
    store: OpenStore,
    held: Leadership,
    duty: Duty,
    _serving: Serving,
}

async fn scene(url: &str) -> Scene {
    let store = incumbent::open(url).await.expect("a store");
    let cluster = format!("c{}", std::process::id());
    let node =
        Node::builder().cluster(cluster).name("first").for_tests().ttl(Duration::from_secs(5));
    let node = node.join(&store).await.expect("it joins");
    let mut campaign = node.campaign("daily, report").expect("a campaign");
    let held = campaign.elected().await.expect("it leads");
    let (found, mut finding) = mpsc::channel(1);
    let projections = family("projections").duties(["orders, eu"]).run(move |duty: Duty| {
        let found = found.clone();
        async move {
            let _ = found.send(duty.clone()).await;
            duty.lost().await;
            Ok(())
        }
    });
    let serving = node.serve(projections).expect("it serves");
    let duty = finding.recv().await.expect("a duty");
    Scene { node, store, held, duty, _serving: serving }
}

fn superseded<E: std::fmt::Debug>(
    result: Result<(), FenceError<E>>,
) -> (Option<u64>, Option<String>) {
    match result {
        Err(FenceError::Superseded { held_by, term }) => (term, held_by),
        other => panic!("{other:?}"),
    }
}

/// Everything that the node held is over when this returns.
async fn leave(scene: Scene) -> incumbent::Assertion {
    let assertion = scene.held.assertion();
    assert!(scene.store.assertion().is_some(), "what the store says is reachable from open()");
    drop(scene.held);
    scene.node.leave().await.expect("it leaves");
    assertion
}

#[test]
fn tokio_postgres_takes_terms_and_duties() {
    block_on(async {
        let url = postgres::shared();
        let joint = if url.contains('?') { '&' } else { '?' };
        let scene =
            scene(&format!("{url}{joint}schema=fence_{}&prefix=f_", std::process::id())).await;
        let base = url.split('?').next().expect("a URL");
        let connecting = tokio_postgres::connect(base, tokio_postgres::NoTls).await;
        let (mut client, connection) = connecting.expect("a connection");
        tokio::runtime::Handle::current().spawn(connection);
        let transaction = client.transaction().await.expect("a transaction");
        scene.held.assert(&transaction).await.expect("it is held");
        scene.duty.assert(&transaction).await.expect("it is this node's");
        transaction.commit().await.expect("a commit");
        let mut wrong = scene.duty.assertion();
        wrong.term -= 1;
        let transaction = client.transaction().await.expect("a transaction");
        let (term, held_by) = superseded(wrong.assert(&transaction).await);
        assert_eq!((term, held_by.as_deref()), (Some(scene.duty.number()), Some("first")));
        drop(transaction);
        prepared_once_for_a_connection(&mut client, &scene).await;
        client.batch_execute("CREATE TEMP TABLE work (term bigint)").await.expect("a table");
        let insert = async |transaction: &tokio_postgres::Transaction<'_>| {
            let done = transaction.execute("INSERT INTO work VALUES (1)", &[]).await;
            done.map_err(FenceError::Database)
        };
        let done = fenced::transaction(&mut client, &scene.held, insert).await;
        assert_eq!(done.expect("it commits"), 1);
        let table = "CREATE TEMP TABLE late (n int UNIQUE DEFERRABLE INITIALLY DEFERRED)";
        client.batch_execute(table).await.expect("a table");
        let refused: Result<(), FenceError<_>> =
            fenced::transaction(&mut client, &scene.held, async |transaction| {
                let twice = transaction.batch_execute("INSERT INTO late VALUES (1), (1)").await;
                twice.map_err(FenceError::Database)
            })
            .await;
        assert!(matches!(refused, Err(FenceError::Commit(_))), "{refused:?}");
        let failed: Result<(), FenceError<_>> =
            fenced::transaction(&mut client, &*scene.held, async |transaction| {
                insert(transaction).await?;
                Err(FenceError::Unfit("the work failed"))
            })
            .await;
        assert!(matches!(failed, Err(FenceError::Unfit("the work failed"))), "{failed:?}");
        let over = leave(scene).await;
        let refused = fenced::transaction(&mut client, &over, insert).await;
        superseded(refused.map(|_| ()));
        // Sent together with the first statement, which saves a round trip: the server refuses that too.
        let transaction = client.transaction().await.expect("a transaction");
        let (asserted, worked) = tokio::join!(over.assert(&transaction), insert(&transaction));
        superseded(asserted);
        assert!(worked.is_err(), "the server refuses what comes after");
        transaction.commit().await.expect("which rolls back");
        let count = client.query_one("SELECT count(*) FROM work", &[]).await.expect("a count");
        assert_eq!(count.get::<_, i64>(0), 1, "nothing else is there");
        let transaction = client.transaction().await.expect("a transaction");
        superseded(over.assert(&transaction).await);
        drop(transaction);
        // A server that isn't there says nothing about the term.
        let transaction = client.transaction().await.expect("a transaction");
        let gone = "SELECT pg_terminate_backend(pg_backend_pid())";
        assert!(transaction.batch_execute(gone).await.is_err());
        let asked = over.assert(&transaction).await;
        assert!(matches!(asked, Err(FenceError::Database(_))), "{asked:?}");
    });
}

async fn prepared_once_for_a_connection(client: &mut tokio_postgres::Client, scene: &Scene) {
    let prepared = fenced::Prepared::new(client, &*scene.held).await.expect("a statement");
    let (mut wrong, mut elsewhere) = (scene.duty.assertion(), scene.duty.assertion());
    wrong.term -= 1;
    elsewhere.sql.as_mut().expect("a statement").statement += " ";
    for _ in 0..10 {
        let transaction = client.transaction().await.expect("a transaction");
        prepared.assert(&transaction, &*scene.held).await.expect("it is held");
        prepared.assert(&transaction, &scene.duty).await.expect("it is this node's");
        let refused = prepared.assert(&transaction, &elsewhere).await;
        assert!(matches!(refused, Err(FenceError::Unfit(_))), "{refused:?}");
        superseded(prepared.assert(&transaction, &wrong).await);
        let after = transaction.execute("SELECT 1", &[]).await;
        assert!(after.is_err(), "the server refuses what comes after");
    }
    let count = "SELECT count(*) FROM pg_prepared_statements \
                 WHERE parameter_types = '{text,text,bigint}'::regtype[]";
    let count = client.query_one(count, &[]).await.expect("a count");
    assert_eq!(count.get::<_, i64>(0), 1, "it was parsed once");
}

#[test]
fn mysql_async_takes_terms_and_duties() {
    block_on(async {
        let url = mariadb::shared();
        let scene = scene(&format!("{url}?prefix=f{}_", std::process::id())).await;
        let opts = mysql_async::Opts::from_url(&url).expect("a URL");
        let opts = mysql_async::OptsBuilder::from_opts(opts).prefer_socket(false);
        let mut client = mysql_async::Conn::new(opts).await.expect("a connection");
        let mut transaction = client.start_transaction(Default::default()).await.expect("one");
        scene.held.assert(&mut transaction).await.expect("it is held");
        scene.duty.assert(&mut transaction).await.expect("it is this node's");
        transaction.commit().await.expect("a commit");
        let mut wrong = scene.duty.assertion();
        wrong.term -= 1;
        let mut transaction = client.start_transaction(Default::default()).await.expect("one");
        let (term, held_by) = superseded(wrong.assert(&mut transaction).await);
        assert_eq!((term, held_by.as_deref()), (Some(scene.duty.number()), Some("first")));
        transaction.rollback().await.expect("a rollback");
        let table = format!("work_{}", std::process::id());
        let create = format!("CREATE TABLE {table} (term BIGINT) ENGINE = InnoDB");
        client.query_drop(create).await.expect("a table");
        let insert = async |transaction: &mut mysql_async::Transaction<'_>| {
            let done = transaction.query_drop(format!("INSERT INTO {table} VALUES (1)")).await;
            done.map_err(FenceError::Database)
        };
        let done = mysql::transaction(&mut client, &*scene.held, insert).await;
        done.expect("it commits");
        let failed: Result<(), FenceError<_>> =
            mysql::transaction(&mut client, &*scene.held, async |transaction| {
                insert(transaction).await?;
                Err(FenceError::Unfit("the work failed"))
            })
            .await;
        assert!(matches!(failed, Err(FenceError::Unfit("the work failed"))), "{failed:?}");
        let over = leave(scene).await;
        superseded(mysql::transaction(&mut client, &over, insert).await);
        let count: Option<u64> =
            client.query_first(format!("SELECT count(*) FROM {table}")).await.expect("a count");
        assert_eq!(count, Some(1), "nothing else is there");
        let mut transaction = client.start_transaction(Default::default()).await.expect("one");
        superseded(over.assert(&mut transaction).await);
        transaction.rollback().await.expect("a rollback");
    });
}

#[test]
fn rusqlite_takes_terms_and_duties_and_refuses_what_wouldn_t_hold() {
    block_on(async {
        let place = tempfile::tempdir().expect("a directory");
        let file = place.path().join("app.db");
        let scene = scene(&format!("sqlite:{}", file.display())).await;
        let mut connection = rusqlite::Connection::open(&file).expect("a connection");
        connection.busy_timeout(Duration::from_secs(5)).expect("patience");
        connection.execute_batch("CREATE TABLE work (term INTEGER)").expect("a table");
        let immediate = TransactionBehavior::Immediate;
        let transaction = connection.transaction_with_behavior(immediate).expect("one");
        scene.held.assert(&transaction).expect("it is held");
        scene.duty.assert(&transaction).expect("it is this node's");
        transaction.commit().expect("a commit");

        let transaction = connection.transaction().expect("a deferred one");
        let unfit = scene.held.assert(&transaction);
        assert!(matches!(unfit, Err(FenceError::Unfit(_))), "{unfit:?}");
        drop(transaction);
        let other = place.path().join("other.db").display().to_string();
        connection.execute("ATTACH DATABASE ?1 AS other", [other]).expect("it attaches");
        let transaction = connection.transaction_with_behavior(immediate).expect("one");
        let unfit = scene.held.assert(&transaction);
        assert!(matches!(unfit, Err(FenceError::Unfit(_))), "{unfit:?}");
        drop(transaction);
        connection.execute_batch("DETACH DATABASE other").expect("it goes");

        // Bounded: a statement is interrupted, and what comes too late isn't committed.
        type Failure = FenceError<rusqlite::Error>;
        let write = |transaction: &rusqlite::Transaction<'_>| {
            let done = transaction.execute("INSERT INTO work VALUES (1)", []);
            done.map_err(FenceError::Database)
        };
        let done: Result<usize, Failure> =
            sqlite::transaction(&mut connection, &*scene.held, Duration::from_secs(5), write);
        assert_eq!(done.expect("it commits"), 1);
        let slow = |transaction: &rusqlite::Transaction<'_>| {
            write(transaction)?;
            let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) \
                           SELECT max(i) FROM n";
            let done = transaction.query_row(endless, [], |row| row.get::<_, i64>(0));
            done.map_err(FenceError::Database)
        };
        let bound = Duration::from_millis(100);
        let done = sqlite::transaction(&mut connection, &*scene.held, bound, slow);
        assert!(matches!(done, Err(FenceError::TooLong)), "{done:?}");
        let count = || connection.query_row("SELECT count(*) FROM work", [], |row| row.get(0));
        assert_eq!(count(), Ok(1), "nothing of it is there");

        let mut wrong = scene.duty.assertion();
        wrong.term -= 1;
        let own = scene.duty.number();
        let transaction = connection.transaction_with_behavior(immediate).expect("one");
        let (term, held_by) = superseded(wrong.assert(&transaction));
        assert_eq!((term, held_by.as_deref()), (Some(own), Some("first")));
        drop(transaction);
        let over = leave(scene).await;
        let transaction = connection.transaction_with_behavior(immediate).expect("one");
        superseded(over.assert(&transaction));
        let mut elsewhere = over.clone();
        elsewhere.store = "etcd";
        let refused = elsewhere.assert(&transaction);
        assert!(matches!(refused, Err(FenceError::Elsewhere { store: "etcd" })), "{refused:?}");
    });
}

#[test]
fn a_transaction_that_stalls_on_sqlite_keeps_others_out_until_its_bound() {
    block_on(async {
        let place = tempfile::tempdir().expect("a directory");
        let file = place.path().join("app.db");
        let scene = scene(&format!("sqlite:{}", file.display())).await;
        let open = |patience| {
            let connection = rusqlite::Connection::open(&file).expect("a connection");
            connection.busy_timeout(patience).expect("patience");
            connection
        };
        let patient = Duration::from_secs(20);
        let (mut leader, other) = (open(patient), open(patient));
        let bound = Duration::from_millis(600);
        let (stalled, stalling) = std::sync::mpsc::channel();
        let held = &scene.held;
        let (waited, done) = std::thread::scope(|scope| {
            let working = scope.spawn(move || {
                sqlite::transaction(&mut leader, &**held, bound, |transaction| {
                    stalled.send(()).expect("a listener");
                    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) \
                                   SELECT max(i) FROM n";
                    let done = transaction.query_row(endless, [], |row| row.get::<_, i64>(0));
                    done.map_err(FenceError::Database)
                })
            });
            stalling.recv().expect("it stalls");
            // Whoever takes over has to write, as this does.
            let since = incumbent::clock::now();
            other.execute_batch("BEGIN IMMEDIATE; ROLLBACK").expect("it gets through");
            (incumbent::clock::now().since(since), working.join().expect("no panic"))
        });
        assert!(matches!(done, Err(FenceError::TooLong)), "{done:?}");
        let range = Duration::from_millis(200)..bound + Duration::from_secs(5);
        assert!(range.contains(&waited), "{waited:?}");

        // Without the bound it is as long as the transaction is open.
        let mut leader = open(patient);
        let immediate = TransactionBehavior::Immediate;
        let transaction = leader.transaction_with_behavior(immediate).expect("one");
        scene.held.assert(&transaction).expect("it is held");
        let refused = open(bound * 2).execute_batch("BEGIN IMMEDIATE");
        let code = refused.expect_err("it is kept out").sqlite_error_code();
        assert_eq!(code, Some(rusqlite::ErrorCode::DatabaseBusy));
        drop(transaction);
        leave(scene).await;
    });
}
