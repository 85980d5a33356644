//! Who holds the lock that a write waits for is told (O37).

#![allow(clippy::expect_used, clippy::panic)] // A test fails by panicking, its helpers too.

mod common;

use std::time::Duration;

use common::{application, applied, beat, block_on, connect, create, shared, write};
use incumbent_core::store::{Obstacle, Store};
use incumbent_postgres::PostgresStore;

/// Asks until somebody is in the way.
async fn found(store: &PostgresStore) -> Vec<Obstacle> {
    for _ in 0..600 {
        let found = store.obstacles().await;
        if !found.is_empty() {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("nobody is found in the way");
}

#[test]
fn o37_the_row_and_who_locks_it_are_told() {
    block_on(async {
        let url = format!("{}&lock_timeout=30000&statement_timeout=60000", shared());
        let store = connect(&url).await;
        assert_eq!(write(&store, create("lease/scheduler", 1)).await, Ok(applied(1)));
        assert_eq!(store.obstacles().await, []);

        let mut leader = application(&url).await;
        let sql = "SET application_name = 'billing'; SELECT pg_backend_pid()";
        leader.batch_execute(sql).await.expect("a name");
        let row = leader.query_one("SELECT pg_backend_pid()", &[]).await.expect("an answer");
        let pid: i32 = row.get(0);
        let records = store.fence_sql();
        let table = records.split(" FROM ").nth(1).and_then(|rest| rest.split(' ').next());
        let lock = format!(
            "SELECT 'hunter2' FROM {} WHERE key = 'lease/scheduler' FOR SHARE",
            table.expect("a table")
        );
        let transaction = leader.transaction().await.expect("a transaction");
        transaction.query(&lock, &[]).await.expect("the lock");
        let taking = tokio::runtime::Handle::current().spawn({
            let store = store.clone();
            async move { write(&store, beat("lease/scheduler", 1, 2)).await }
        });

        let found = found(&store).await;
        let [obstacle] = found.as_slice() else { panic!("{found:?}") };
        let record = ("c".to_owned(), "lease/scheduler".to_owned());
        assert_eq!(obstacle.record, Some(record));
        let told = obstacle.to_string();
        for word in [&format!("pid {pid} "), "billing", "idle in transaction", "open for", "SELECT"]
        {
            assert!(told.contains(word), "no {word:?} in {told}");
        }
        assert!(!told.contains("hunter2"), "{told}");
        assert!(!taking.is_finished());
        transaction.commit().await.expect("a commit");
        assert_eq!(taking.await.expect("no panic"), Ok(applied(2)));
        assert_eq!(store.obstacles().await, []);
    });
}
