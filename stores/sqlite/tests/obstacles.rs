//! Who has a write transaction open is told (O37).

#![allow(clippy::expect_used)] // A test fails by panicking, its helpers too.

mod common;

use common::{Place, block_on};
use incumbent_core::store::Store;

#[test]
fn o37_a_process_that_writes_is_told() {
    let place = Place::new();
    let store = place.store();
    assert_eq!(block_on(store.obstacles()), []);
    let application = place.application();
    application.execute_batch("BEGIN IMMEDIATE").expect("a transaction");
    let found = block_on(store.obstacles());
    let told: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert!(told.len() == 1 && told.concat().contains("this process itself"), "{told:?}");
    application.execute_batch("ROLLBACK").expect("its end");
    assert_eq!(block_on(store.obstacles()), []);
}
