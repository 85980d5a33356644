//! The conformance kit on a Galera cluster, whose servers all take writes and agree on them when
//! they commit. Tests start none by themselves: `INCUMBENT_TEST_GALERA` names the URLs of its
//! servers, separated by commas.
#![allow(clippy::panic, clippy::expect_used, clippy::indexing_slicing)] // A test fails by panicking, its helpers too.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::{block_on, fresh};
use incumbent_mysql::MysqlStore;
use incumbent_testkit::Conformance;

const VARIABLE: &str = "INCUMBENT_TEST_GALERA";

#[test]
fn the_store_conforms_when_handles_are_on_different_servers() {
    let Ok(urls) = std::env::var(VARIABLE) else {
        println!("NOT TRIED: {VARIABLE} names no Galera cluster");
        return;
    };
    let prefix = fresh();
    let urls: Vec<_> = urls.split(',').map(|url| format!("{url}?prefix={prefix}")).collect();
    let next = AtomicUsize::new(0);
    let opener = move || {
        let url = urls[next.fetch_add(1, Ordering::SeqCst) % urls.len()].clone();
        async move { MysqlStore::connect(&url).await.map(Arc::new) }
    };
    let report = block_on(Conformance::new(opener).run());
    println!("{report}");
    report.assert_passed();
}
