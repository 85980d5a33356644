//! The conformance kit, tried on a real server: plain, over a path that fails, and with
//! connections that break.
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // A test fails by panicking, its helpers too.

mod common;

use std::sync::Arc;

use common::{Server, application, block_on, shared};
use incumbent_mysql::MysqlStore;
use incumbent_proving::{breaking, passed};
use incumbent_testkit::{Conformance, Faults, Opener};
use mysql_async::prelude::Queryable;

#[test]
fn the_store_conforms() {
    block_on(passed(Conformance::new(opener(shared()))));
}

#[test]
fn the_store_conforms_over_a_path_that_fails() {
    block_on(passed(Conformance::new(opener(shared())).faults(Faults::mixed(7))));
}

#[test]
fn the_store_conforms_while_its_connections_are_killed() {
    // F3, F20: the server ends sessions whenever it likes. The sessions of the other tests would
    // break too, so it is a server of its own.
    let server = Server::start(&[]);
    let url = server.fresh_url();
    let killed = breaking(opener(url.clone()), move || kill(url.clone()));
    let kit = Conformance::new(killed).only(["errors-tell-the-truth"]).rounds(60);
    let report = block_on(passed(kit));
    assert!(report.rows.iter().all(|row| row.errors > 5), "{report}");
}

async fn kill(url: String) -> bool {
    let mut application = application(&url).await;
    let sessions = "SELECT id FROM information_schema.PROCESSLIST \
                    WHERE id <> CONNECTION_ID() AND user = 'root' AND db = 'app'";
    let Ok(sessions) = application.query::<u64, _>(sessions).await else { return false };
    for session in &sessions {
        // It may have ended by itself.
        let _ = application.query_drop(format!("KILL {session}")).await;
    }
    !sessions.is_empty()
}

fn opener(url: String) -> impl Opener {
    move || {
        let url = url.clone();
        async move { MysqlStore::connect(&url).await.map(Arc::new) }
    }
}
