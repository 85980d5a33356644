//! Who holds the lock that a write waits for is told (O37).

#![allow(clippy::expect_used, clippy::panic)] // A test fails by panicking, its helpers too.

mod common;

use std::time::Duration;

use common::{application, applied, block_on, change, connect, create, prefix, run, shared, write};
use incumbent_core::store::{Obstacle, Outcome, Store};
use incumbent_mysql::MysqlStore;

/// Takes, again and again, until whoever is in the way is told.
async fn found(store: &MysqlStore) -> Vec<Obstacle> {
    for attempt in 2..62 {
        // A server answers such questions from what it last wrote down, a tenth of a second ago.
        let asking = async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            store.obstacles().await
        };
        let (outcome, found) =
            tokio::join!(write(store, change("lease/scheduler", 1, attempt)), asking);
        assert_eq!(outcome, Ok(Outcome::Refused));
        if !found.is_empty() {
            return found;
        }
    }
    panic!("nobody is found in the way");
}

#[test]
fn o37_the_row_and_who_locks_it_are_told() {
    block_on(async {
        let url = shared();
        let store = connect(&url).await;
        assert_eq!(write(&store, create("lease/scheduler", 1)).await, Ok(applied(1)));
        assert_eq!(store.obstacles().await, []);

        let mut leader = application(&url).await;
        let id = leader.id();
        run(&mut leader, "BEGIN").await;
        let lock = format!(
            "SELECT 'hunter2' FROM {}records WHERE `key` = 'lease/scheduler' LOCK IN SHARE MODE",
            prefix(&url)
        );
        run(&mut leader, &lock).await;
        let found = found(&store).await;
        let told: Vec<String> = found.iter().map(ToString::to_string).collect();
        let told = told.iter().find(|told| told.contains(&format!("connection {id} ")));
        let told = told.unwrap_or_else(|| panic!("not {id} in {found:?}"));
        for word in ["lease/scheduler of the cluster c", "idle in its transaction", "open for"] {
            assert!(told.contains(word), "no {word:?} in {told}");
        }
        assert!(!told.contains("hunter2"), "{told}");
        run(&mut leader, "COMMIT").await;
        assert_eq!(write(&store, change("lease/scheduler", 1, 99)).await, Ok(applied(99)));
    });
}
