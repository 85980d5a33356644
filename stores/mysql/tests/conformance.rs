//! The conformance kit, tried on a real server: plain, over a path that fails, and with
//! connections that break.
#![allow(clippy::panic, clippy::expect_used, clippy::indexing_slicing)] // A test fails by panicking, its helpers too.

mod common;

use std::pin::Pin;
use std::sync::Arc;

use common::{Server, application, block_on, shared};
use incumbent_mysql::MysqlStore;
use incumbent_testkit::{Conformance, Faults, Opener, Opening, Report};
use mysql_async::prelude::Queryable;

#[test]
fn the_store_conforms() {
    run(Conformance::new(opener(shared())));
}

#[test]
fn the_store_conforms_over_a_path_that_fails() {
    run(Conformance::new(opener(shared())).faults(Faults::mixed(7)));
}

#[test]
fn the_store_conforms_while_its_connections_are_killed() {
    // F3, F20: the server ends sessions whenever it likes.
    // The sessions of the other tests would break too, so it is a server of its own.
    let server = Server::start(&[]);
    let killed = Killed { url: server.fresh_url() };
    let report = run(Conformance::new(killed).only(["errors-tell-the-truth"]).rounds(60));
    assert!(report.rows.iter().all(|row| row.errors > 5), "{report}");
}

fn opener(url: String) -> impl Opener {
    move || {
        let url = url.clone();
        async move { MysqlStore::connect(&url).await.map(Arc::new) }
    }
}

/// Opens stores whose sessions the server kills when asked to.
struct Killed {
    url: String,
}

impl Opener for Killed {
    fn open(&self) -> Opening<'_> {
        Box::pin(async { Ok(Arc::new(MysqlStore::connect(&self.url).await?) as _) })
    }

    fn disturb(&self) -> Pin<Box<dyn Future<Output = bool> + Send + '_>> {
        Box::pin(async {
            let mut application = application(&self.url).await;
            let sessions = "SELECT id FROM information_schema.PROCESSLIST \
                            WHERE id <> CONNECTION_ID() AND user = 'root' AND db = 'app'";
            let Ok(sessions) = application.query::<u64, _>(sessions).await else { return false };
            for session in &sessions {
                // It may have ended by itself.
                let _ = application.query_drop(format!("KILL {session}")).await;
            }
            !sessions.is_empty()
        })
    }
}

fn run(conformance: Conformance) -> Report {
    let report = block_on(conformance.run());
    println!("{report}");
    report.assert_passed();
    report
}
