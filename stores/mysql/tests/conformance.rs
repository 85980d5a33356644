//! The conformance kit, tried on a real server: plain, over a path that fails, and with
//! connections that break.

mod common;

use common::{Server, application, block_on, shared};
use incumbent_mysql::MysqlStore;
use incumbent_proving::{at, conforms, conforms_while_broken};
use incumbent_testkit::{Conformance, Opener};
use mysql_async::prelude::Queryable;

#[test]
fn the_store_conforms() {
    block_on(conforms(|| Conformance::new(opener(shared()))));
}

#[test]
fn the_store_conforms_while_its_connections_are_killed() {
    // F3, F20: the server ends sessions whenever it likes. The sessions of the other tests would
    // break too, so it is a server of its own.
    let server = Server::start(&[]);
    let url = server.fresh_url();
    block_on(conforms_while_broken(opener(url.clone()), 60, move || kill(url.clone())));
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
    at(url, |url| async move { MysqlStore::connect(&url).await })
}
