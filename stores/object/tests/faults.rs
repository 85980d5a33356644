//! What happens when the server, its credentials or the network are in the way.
#![allow(clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // Helpers fail by panicking too.

mod common;

use std::time::Duration;

use common::{applied, block_on, connect, create, find, put, read, send, write};
use incumbent_core::store::{ErrorKind, Expect, Found, Key, Lane, Outcome, Read};
use incumbent_object::{BucketOptions, BucketStore};
use incumbent_proving::server::azurite;
use incumbent_proving::{Mood, Proxy, Wire};

const LANES: [Lane; 3] = [Lane::Beat, Lane::Change, Lane::Watch];

/// Reads on this lane until one succeeds, as the library would.
async fn until_served(store: &BucketStore, lane: Lane) {
    for _ in 0..100 {
        match send(store, lane, vec![], vec![read("k")]).await {
            Ok(_) => return,
            Err(error) => assert_ne!(error.kind, ErrorKind::Rejected, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the {lane:?} lane was never served again");
}

#[test]
fn wrong_credentials_and_missing_containers_are_rejected_with_the_next_step() {
    let server = azurite::start();
    block_on(async {
        let options = BucketOptions::parse(&azurite::url(server.port(), "there")).expect("a URL");
        BucketStore::connect_with(options.clone()).await.expect("it is made");
        let again = options.clone().create(false);
        BucketStore::connect_with(again.clone()).await.expect("it is there");

        let key = "d3Jvbmcga2V5";
        let error = BucketStore::connect_with(again.clone().setting("account_key", key)).await;
        let error = error.expect_err("a wrong key");
        assert_eq!(error.kind, ErrorKind::Rejected, "{error}");
        assert!(error.message.contains("AZURE_STORAGE_ACCOUNT_KEY"), "{error}");
        assert!(!error.message.contains(key), "{error}");

        let error = BucketStore::connect_with(options.clone().setting("account_key", key)).await;
        assert_eq!(error.expect_err("a wrong key").kind, ErrorKind::Rejected);

        let missing = BucketOptions::parse(&azurite::url(server.port(), "missing"))
            .expect("a URL")
            .create(false);
        let error = BucketStore::connect_with(missing).await.expect_err("no container");
        assert_eq!(error.kind, ErrorKind::Rejected, "{error}");
        let step = "az storage container create --name missing";
        assert!(error.message.contains(step), "{error}");
    });
}

#[test]
fn a_killed_server_is_found_again() {
    let server = azurite::start();
    block_on(async {
        let store = connect(&azurite::url(server.port(), "box")).await;
        let version = applied(&store, create("k")).await;
        for _ in 0..2 {
            server.kill();
            for lane in LANES {
                let error = send(&store, lane, vec![create("new")], vec![]).await;
                let error = error.expect_err("no server");
                // The connections of before may have been in use when they broke.
                assert_ne!(error.kind, ErrorKind::Rejected, "{error}");
                let error = send(&store, lane, vec![create("new")], vec![]).await;
                assert_eq!(error.expect_err("no server").kind, ErrorKind::Unavailable);
            }
            server.resume();
            for lane in LANES {
                until_served(&store, lane).await;
            }
            assert_eq!(find(&store, "new").await, None);
            assert_eq!(find(&store, "k").await.expect("a record").version, version);
        }
    });
}

#[test]
fn a_paused_server_leaves_writes_unknown_and_is_found_again() {
    let server = azurite::start();
    block_on(async {
        let url = format!("{}&timeout=500", azurite::url(server.port(), "box"));
        let store = connect(&url).await;
        for lane in LANES {
            until_served(&store, lane).await;
        }
        server.pause(true);
        for lane in LANES {
            let key = format!("late-{lane:?}");
            let mut kind = ErrorKind::Unavailable;
            // On a busy machine the time may be over before anything was sent: then nothing is unknown.
            for _ in 0..20 {
                let error = send(&store, lane, vec![create(&key)], vec![]).await;
                kind = error.expect_err("no answer").kind;
                if kind != ErrorKind::Unavailable {
                    break;
                }
            }
            assert_eq!(kind, ErrorKind::Unknown);
            let error = send(&store, lane, vec![], vec![read("k")]).await;
            assert_eq!(error.expect_err("no answer").kind, ErrorKind::Unavailable);
        }
        server.pause(false);
        for lane in LANES {
            until_served(&store, lane).await;
        }
        // What was sent may have landed since; either way it can be written over. Half a second is short for a
        // server that has just slept, so that this is judged by a store with time.
        let store = connect(&azurite::url(server.port(), "box")).await;
        for lane in LANES {
            let key = format!("late-{lane:?}");
            let expect = match find(&store, &key).await {
                Some(record) => Expect::Version(record.version),
                None => Expect::Absent,
            };
            let written = write(&store, put(&key, expect, "after")).await;
            assert!(matches!(written, Ok(Outcome::Applied(_) | Outcome::Refused)), "{written:?}");
        }
    });
}

#[test]
fn a_write_without_an_answer_is_unknown_and_was_sent_once() {
    let server = azurite::start();
    block_on(async {
        let proxy = Proxy::over(Wire::HTTP, server.port()).await;
        let store = connect(&azurite::url(proxy.port(), "box")).await;
        let version = applied(&store, create("k")).await;
        for (round, lane) in [Lane::Change, Lane::Beat, Lane::Change].into_iter().enumerate() {
            until_served(&store, lane).await;
            let key = format!("new-{round}");
            proxy.set(Mood::LoseAnswers);
            let before = proxy.sent("PUT /");
            let error = send(&store, lane, vec![create(&key)], vec![]).await;
            let error = error.expect_err("no answer");
            assert_eq!(error.kind, ErrorKind::Unknown, "{error}");
            // A retry would have found the first attempt's object, and would have called that a
            // refusal.
            tokio::time::sleep(Duration::from_millis(300)).await;
            assert_eq!(proxy.sent("PUT /") - before, 1, "a write was sent again");
            proxy.set(Mood::Fine);
            assert!(find(&store, &key).await.is_some(), "it was applied");
        }
        proxy.set(Mood::LoseAnswers);
        let update = put("k", Expect::Version(version.clone()), "[]");
        let error = write(&store, update).await.expect_err("no answer");
        assert_eq!(error.kind, ErrorKind::Unknown, "{error}");
        proxy.set(Mood::Fine);
        let late = put("k", Expect::Version(version), "late");
        assert_eq!(write(&store, late).await, Ok(Outcome::Refused));
    });
}

/// To read once more does no harm. Otherwise a connection that the server closed while it was idle
/// would make the beat's outcome unknown whose reads went over it.
#[test]
fn a_read_is_tried_once_more_where_nobody_answered() {
    let server = azurite::start();
    block_on(async {
        let proxy = Proxy::over(Wire::HTTP, server.port()).await;
        let store = connect(&azurite::url(proxy.port(), "box")).await;
        applied(&store, create("k")).await;
        for _ in 0..20 {
            until_served(&store, Lane::Watch).await;
            proxy.cut();
            let reply = send(&store, Lane::Watch, vec![], vec![read("k")]).await;
            assert!(reply.is_ok(), "{reply:?}");
        }
        proxy.set(Mood::LoseAnswers);
        let before = proxy.sent("GET /");
        send(&store, Lane::Watch, vec![], vec![read("k")]).await.expect_err("no answer");
        assert_eq!(proxy.sent("GET /") - before, 2);
        proxy.set(Mood::Closed);
        let error = write(&store, create("x")).await.expect_err("nobody is let in");
        assert_ne!(error.kind, ErrorKind::Rejected, "{error}");
    });
}

#[test]
fn a_hung_lane_does_not_hold_up_the_beat() {
    let server = azurite::start();
    block_on(async {
        let store = connect(&format!("{}&requests=2", azurite::url(server.port(), "box"))).await;
        let mut version = applied(&store, create("member/a")).await;
        let busy: Vec<_> = (0..90).map(|n| create(&format!("lease/{n}"))).collect();
        let changing = send(&store, Lane::Change, busy, vec![]);
        let beating = async {
            for _ in 0..5 {
                let writes = vec![put("member/a", Expect::Version(version.clone()), "{}")];
                let reply = send(&store, Lane::Beat, writes, vec![]).await.expect("a beat");
                let [Outcome::Applied(now)] = reply.writes.as_slice() else { panic!("{reply:?}") };
                version = now.clone();
            }
        };
        let (changed, ()) = tokio::join!(changing, beating);
        assert_eq!(changed.expect("changes").writes.len(), 90);
        let below = vec![Read::Prefix(Key::new("lease/"))];
        let reply = send(&store, Lane::Watch, vec![], below).await.expect("a read");
        assert!(matches!(reply.reads.as_slice(), [Found::Records(all)] if all.len() == 90));
    });
}
