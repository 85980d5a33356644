//! Through PgBouncer in transaction mode (F3): all but push.

#![allow(clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // A test fails by panicking, its helpers too.

mod common;

use std::sync::Arc;

use common::bouncer::Bouncer;
use common::{
    Server, application, applied, beat, block_on, connect, create, fresh, read, send, with_value,
    write,
};
use incumbent_core::store::{Expect, Lane, Outcome, Store};
use incumbent_postgres::PostgresStore;
use incumbent_testkit::Conformance;

#[test]
fn the_store_conforms_through_a_pooler_and_pushes_nothing() {
    let server = Server::start(&["fsync=off"]);
    // The second only pretends to know the settings, as many do whose users need it.
    for more in ["", "ignore_startup_parameters = options"] {
        let bouncer = Bouncer::before(server.port(), more);
        let url = bouncer.url(&fresh());
        block_on(async {
            let store = connect(&url).await;
            assert!(store.facts().pooled);
            assert!(!store.capabilities().push);
            assert!(store.hints("c", Arc::new(|| ())).is_none());
            let opener = move || {
                let url = url.clone();
                async move { PostgresStore::connect(&url).await.map(Arc::new) }
            };
            let report = Conformance::new(opener).rounds(15).run().await;
            println!("{report}");
            report.assert_passed();
        });
    }
}

#[test]
fn nothing_of_ours_stays_in_the_pooler_s_connections() {
    let server = Server::start(&["fsync=off", "synchronous_commit=off"]);
    let bouncer = Bouncer::before(server.port(), "");
    block_on(async {
        let url = bouncer.url(&fresh());
        let store = connect(&url).await;
        for attempt in 0..50 {
            let writes = if attempt == 0 {
                vec![create("member/m", 0)]
            } else {
                vec![beat("member/m", attempt - 1, attempt)]
            };
            for lane in [Lane::Beat, Lane::Change] {
                let _ = send(&store, lane, writes.clone(), vec![read("board")]).await;
            }
        }
        let application = application(&url).await;
        let row = application
            .query_one(
                "SELECT current_setting('lock_timeout'), current_setting('synchronous_commit'), \
                 (SELECT count(*) FROM pg_prepared_statements WHERE statement NOT LIKE '%pg_prepared_statements%')",
                &[],
            )
            .await
            .expect("a row");
        assert_eq!(row.get::<_, String>(0), "0");
        assert_eq!(row.get::<_, String>(1), "off");
        assert_eq!(row.get::<_, i64>(2), 0);
    });
}

#[test]
fn a_locked_lease_is_refused_in_time_through_a_pooler_too() {
    let server = Server::start(&["fsync=off"]);
    let bouncer = Bouncer::before(server.port(), "");
    block_on(async {
        let schema = fresh();
        let store = connect(&format!("{}&lock_timeout=300", bouncer.url(&schema))).await;
        let value = r#"{"term":1,"holder":{"member":"m"}}"#;
        let lease = with_value("lease/a", Expect::Absent, 0, true, value);
        assert_eq!(write(&store, lease).await, Ok(applied(0)));
        let mut leader = application(&server.url("postgres")).await;
        let transaction = leader.transaction().await.expect("a transaction");
        let row = transaction.query_opt(&store.fence_sql(), &[&"c", &"lease/a", &1_i64]).await;
        assert!(row.expect("a fence").is_some());
        assert_eq!(write(&store, common::change("lease/a", 0, 1)).await, Ok(Outcome::Refused));
        let writes = vec![common::change("lease/a", 0, 2), create("lease/b", 3)];
        let reply = send(&store, Lane::Change, writes, vec![]).await.expect("an exchange");
        assert_eq!(reply.writes, [Outcome::Refused, applied(3)]);
    });
}

#[test]
fn a_pooler_can_be_declared() {
    block_on(async {
        let store = connect(&format!("{}&pooler=yes", common::shared())).await;
        assert!(!store.capabilities().push);
        assert_eq!(write(&store, create("k", 1)).await, Ok(applied(1)));
    });
}
