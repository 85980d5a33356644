//! Who is woken, and who isn't.

#![allow(clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // A test fails by panicking, its helpers too.

mod common;

use common::Server;
use common::{
    Hints, application, applied, beat, block_on, change, connect, create, eventually, fresh, read,
    send, shared, through, write,
};
use incumbent_core::store::{Key, Lane, Outcome, Store, Write};
use incumbent_proving::Proxy;

#[test]
fn a_change_through_another_store_wakes_and_one_through_the_same_does_too() {
    block_on(async {
        let url = shared();
        let (one, two) = (connect(&url).await, connect(&url).await);
        let hints = Hints::of(&one, "c").ready().await;
        // The second finds the channel open, so nothing can have been missed.
        let more = Hints::of(&one, "c");
        let (before, more_before) = (hints.count(), more.count());
        assert_eq!(write(&two, create("k", 1)).await, Ok(applied(1)));
        assert_eq!(write(&two, change("k", 1, 2)).await, Ok(applied(2)));
        eventually("a hint", || hints.count() > before && more.count() > more_before).await;
        let before = hints.count();
        assert_eq!(write(&one, change("k", 2, 3)).await, Ok(applied(3)));
        eventually("another hint", || hints.count() > before).await;
        // In a batch, one hint among many writes is enough.
        let before = hints.count();
        let writes = vec![create("a", 4), change("k", 3, 5), create("z", 6)];
        send(&two, Lane::Change, writes, vec![]).await.expect("writes");
        eventually("a hint of a batch", || hints.count() > before).await;
    });
}

#[test]
fn beats_refused_writes_deletes_and_other_clusters_wake_nobody() {
    block_on(async {
        let url = shared();
        let (watching, writing) = (connect(&url).await, connect(&url).await);
        let hints = Hints::of(&watching, "c").ready().await;
        let control = Hints::of(&watching, "control").ready().await;
        let before = (hints.count(), control.count());
        assert_eq!(write(&writing, create("k", 0)).await, Ok(applied(0)));
        for attempt in 1..100 {
            let lane = if attempt % 2 == 0 { Lane::Beat } else { Lane::Change };
            let beats = vec![beat("k", attempt - 1, attempt)];
            send(&writing, lane, beats, vec![]).await.expect("a beat");
        }
        assert_eq!(write(&writing, change("k", 7, 1000)).await, Ok(Outcome::Refused));
        let writes = vec![change("k", 8, 1001), create("quiet", 1002)];
        // Of a batch with hints, what was applied wakes, hinted or not.
        let exchange = incumbent_core::store::Exchange { writes, reads: vec![] };
        let reply = writing.exchange("other", Lane::Change, exchange).await.expect("an exchange");
        assert_eq!(reply.writes, [Outcome::Refused, applied(1002)]);
        let delete = Write::Delete(Key::new("k"));
        assert_eq!(write(&writing, delete).await, Ok(Outcome::Deleted));
        let loud = common::put("k", incumbent_core::store::Expect::Absent, 2000, true);
        let exchange = incumbent_core::store::Exchange { writes: vec![loud], reads: vec![] };
        writing.exchange("control", Lane::Change, exchange).await.expect("a change");
        // Notifications come in the order of the commits.
        eventually("the control's hint", || control.count() > before.1).await;
        assert_eq!(hints.count(), before.0);
    });
}

#[test]
fn everyone_is_woken_once_after_the_connection_was_lost_and_hints_go_on() {
    let server = Server::start(&["fsync=off"]);
    block_on(async {
        let proxy = Proxy::to(server.port()).await;
        let schema = fresh();
        let watching = connect(&through(&proxy, &schema)).await;
        let writing = connect(&format!("{}?schema={schema}", server.url("postgres"))).await;
        let hints = Hints::of(&watching, "c").ready().await;
        let others = Hints::of(&watching, "d").ready().await;
        write(&writing, create("k", 0)).await.expect("a write");
        for attempt in 1..=5 {
            let before = (hints.count(), others.count());
            proxy.cut();
            eventually("a wake-up after the loss", || {
                hints.count() > before.0 && others.count() > before.1
            })
            .await;
            let before = hints.count();
            write(&writing, change("k", attempt - 1, attempt)).await.expect("a write");
            eventually("a hint over the new connection", || hints.count() > before).await;
        }
    });
}

#[test]
fn a_listener_survives_its_session_s_end_and_goes_on_where_the_last_one_stopped() {
    block_on(async {
        let url = format!("{}&application_name=listening", shared());
        let store = connect(&url).await;
        let writing = connect(&url.replace("=listening", "=writing")).await;
        let application = application(&url).await;
        let sessions =
            "SELECT pid FROM pg_stat_activity WHERE application_name = 'listening watch'";
        let hints = Hints::of(&store, "c").ready().await;
        let rows = application.query(sessions, &[]).await.expect("rows");
        assert_eq!(rows.len(), 1);
        let before = hints.count();
        let kill = "SELECT pg_terminate_backend($1)";
        application.execute(kill, &[&rows[0].get::<_, i32>(0)]).await.expect("a kill");
        eventually("a wake-up", || hints.count() > before).await;
        drop(hints);
        // The connection stays, because reads go over it too.
        let hints = Hints::of(&store, "c");
        assert_eq!(write(&writing, create("k", 0)).await, Ok(applied(0)));
        for attempt in 1..500 {
            assert_eq!(
                write(&writing, change("k", attempt - 1, attempt)).await,
                Ok(applied(attempt))
            );
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            // One may come of its own, when the channel is opened again.
            if hints.count() >= 3 {
                let rows = application.query(sessions, &[]).await.expect("rows");
                assert_eq!(rows.len(), 1);
                return;
            }
        }
        panic!("no hints any more");
    });
}

#[test]
fn a_process_has_three_connections() {
    block_on(async {
        let url = format!("{}&application_name=counted", shared());
        let store = connect(&url).await;
        let application = application(&url.replace("=counted", "=counting")).await;
        let hints = Hints::of(&store, "c").ready().await;
        for attempt in 0..3 {
            for lane in [Lane::Beat, Lane::Change, Lane::Watch] {
                send(&store, lane, vec![], vec![read("k")]).await.expect("a read");
            }
            let created = write(&store, create(&format!("k/{attempt}"), attempt)).await;
            assert_eq!(created, Ok(applied(attempt)));
        }
        let counting = "SELECT application_name FROM pg_stat_activity \
                        WHERE application_name LIKE 'counted%' ORDER BY 1";
        let rows = application.query(counting, &[]).await.expect("rows");
        let names: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
        assert_eq!(names, ["counted beat", "counted change", "counted watch"]);
        drop((hints, store));
    });
}
