//! The conformance kit, tried on a real server: plain, over a path that fails, and with
//! connections that break.

mod common;

use common::{application, block_on, shared};
use incumbent_postgres::PostgresStore;
use incumbent_proving::{at, conforms, conforms_while_broken};
use incumbent_testkit::{Conformance, Opener};

#[test]
fn the_store_conforms() {
    block_on(conforms(|| Conformance::new(opener(shared()))));
}

#[test]
fn the_store_conforms_while_its_connections_are_killed() {
    // F3, F20: the server ends sessions whenever it likes. They are named, so that the other tests on
    // this server keep theirs.
    let url = format!("{}&application_name=killed", shared());
    block_on(conforms_while_broken(opener(url.clone()), 60, move || {
        let url = url.clone();
        async move {
            let kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                        WHERE application_name LIKE 'killed %'";
            application(&url).await.execute(kill, &[]).await.is_ok()
        }
    }));
}

fn opener(url: String) -> impl Opener {
    at(url, |url| async move { PostgresStore::connect(&url).await })
}
