//! What is in the bucket: names, contents, versions, and what others put there.
#![allow(clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // Helpers fail by panicking too.

mod common;

use std::sync::Arc;

use common::hashed::Hashed;
use common::{applied, block_on, create, find, put, read, send, write};
use incumbent_core::store::{
    Exchange, Expect, Found, Key, Lane, Outcome, Read, Store, Version, Write,
};
use incumbent_object::BucketStore;
use incumbent_testkit::Conformance;
use object_store::path::Path;
use object_store::{ObjectStore as _, ObjectStoreExt as _, PutPayload};

fn over(client: &Arc<Hashed>) -> BucketStore {
    BucketStore::over(client.clone(), "app").expect("a store")
}

/// S3's ETags are hashes of the content; versions must differ nevertheless.
#[test]
fn content_that_comes_back_has_another_version() {
    block_on(async {
        let store = over(&Hashed::new());
        let first = applied(&store, create("k")).await;
        let second = applied(&store, put("k", Expect::Version(first.clone()), "[]")).await;
        let third = applied(&store, put("k", Expect::Version(second.clone()), "{}")).await;
        assert_ne!(first, third, "the same content");
        for old in [&first, &second] {
            let late = put("k", Expect::Version(old.clone()), "late");
            assert_eq!(write(&store, late).await, Ok(Outcome::Refused));
        }
        // Deleted and created anew with the same content.
        assert_eq!(write(&store, Write::Delete(Key::new("k"))).await, Ok(Outcome::Deleted));
        let fourth = applied(&store, create("k")).await;
        assert_ne!(third, fourth);
        let late = put("k", Expect::Version(third), "late");
        assert_eq!(write(&store, late).await, Ok(Outcome::Refused));
        let found = find(&store, "k").await.expect("a record");
        assert_eq!((found.version, found.value), (fourth, b"{}".to_vec()));
    });
}

#[test]
fn the_store_conforms_on_etags_that_are_hashes() {
    let client = Hashed::new();
    let opener = move || {
        let store = over(&client.beside());
        async move { Ok(Arc::new(store)) }
    };
    block_on(async {
        let report = Conformance::new(opener).run().await;
        println!("{report}");
        report.assert_passed();
    });
}

/// Without the stamp in the content the versions would be those hashes, and the kit would say so
/// (its own mistake `VersionsFromContent`); this shows that the stamp is what makes the difference.
#[test]
fn the_stamp_stands_before_the_value() {
    block_on(async {
        let client = Hashed::new();
        let store = over(&client);
        applied(&store, create("lease/a")).await;
        let object = client.objects().get(&Path::from("app/c/lease/a.json")).await.expect("there");
        let content = object.bytes().await.expect("its content");
        let text = String::from_utf8(content.to_vec()).expect("text");
        let (line, value) = text.split_once('\n').expect("two lines");
        assert!(line.starts_with("{\"incumbent\":1,\"stamp\":\""), "{line}");
        assert_eq!(value, "{}");
    });
}

#[test]
fn an_unchanged_record_costs_no_body() {
    block_on(async {
        let client = Hashed::new();
        let store = over(&client);
        let version = applied(&store, create("k")).await;
        client.take();
        let unless = Read::Key { key: Key::new("k"), unless: Some(version) };
        let reply = send(&store, Lane::Watch, vec![], vec![unless]).await.expect("a read");
        assert_eq!(reply.reads, [Found::Unchanged]);
        let counts = client.take();
        assert_eq!((counts.gets, counts.unchanged), (1, 1));
    });
}

#[test]
fn what_others_put_there_is_never_taken_for_absent() {
    block_on(async {
        let client = Hashed::new();
        let store = over(&client);
        let place = Path::from("app/c/lease/a.json");
        let foreign = PutPayload::from_static(b"by hand");
        client.objects().put(&place, foreign).await.expect("a foreign object");
        let found = find(&store, "lease/a").await.expect("a record");
        assert_eq!(found.value, b"by hand");
        assert_eq!(write(&store, create("lease/a")).await, Ok(Outcome::Refused));
        let over = put("lease/a", Expect::Version(found.version), "{}");
        assert!(matches!(write(&store, over).await, Ok(Outcome::Applied(_))));
    });
}

#[test]
fn objects_with_other_names_are_left_alone() {
    block_on(async {
        let client = Hashed::new();
        let store = over(&client);
        applied(&store, create("lease/a")).await;
        for name in
            ["app/c/lease/readme.txt", "app/c/lease/.zz.json", "app/c.json", "app/cc/a.json"]
        {
            let payload = PutPayload::from_static(b"x");
            client.objects().put(&Path::parse(name).expect("a path"), payload).await.expect("put");
        }
        let all = vec![Read::Prefix(Key::new(""))];
        let reply = send(&store, Lane::Watch, vec![], all).await.expect("a read");
        let [Found::Records(records)] = reply.reads.as_slice() else { panic!("{reply:?}") };
        let keys: Vec<_> = records.iter().map(|record| record.key.as_str()).collect();
        assert_eq!(keys, ["lease/a"]);
    });
}

#[test]
fn a_version_of_another_store_matches_nothing() {
    block_on(async {
        let store = over(&Hashed::new());
        applied(&store, create("k")).await;
        for strange in ["", "0000000000000001.1", "a b", "- - -"] {
            let write_over = put("k", Expect::Version(Version::new(strange)), "x");
            assert_eq!(write(&store, write_over).await, Ok(Outcome::Refused), "{strange:?}");
        }
        assert_eq!(find(&store, "k").await.expect("a record").value, b"{}");
    });
}

#[test]
fn hostile_clusters_stay_apart_and_below_the_prefix() {
    let names = ["../x", "..", ".", "/", "a/b", "a", "A", "é", "e\u{301}", "\0", "%2e", " ", ""];
    block_on(async {
        let client = Hashed::new();
        let store = over(&client);
        let long = ["日".repeat(500), "日".repeat(501)];
        for cluster in names.iter().copied().chain(long.iter().map(String::as_str)) {
            let exchange = Exchange { writes: vec![create("k")], reads: vec![] };
            let reply = store.exchange(cluster, Lane::Change, exchange).await.expect("a write");
            assert!(matches!(reply.writes.as_slice(), [Outcome::Applied(_)]), "{cluster:?}");
            let exchange = Exchange { writes: vec![], reads: vec![Read::Prefix(Key::new(""))] };
            let reply = store.exchange(cluster, Lane::Watch, exchange).await.expect("a read");
            assert!(matches!(reply.reads.as_slice(), [Found::Records(all)] if all.len() == 1));
        }
        let listed: Vec<_> = futures_util::StreamExt::collect(client.objects().list(None)).await;
        assert_eq!(listed.len(), names.len() + 2);
        for object in listed {
            let name = object.expect("an object").location.to_string();
            assert!(name.starts_with("app/") && name.len() < 300, "{name}");
        }
    });
}

#[test]
fn reads_and_writes_of_one_exchange_are_answered_in_order() {
    block_on(async {
        let store = over(&Hashed::new());
        applied(&store, create("b")).await;
        let writes = vec![create("a"), create("b"), Write::Delete(Key::new("none"))];
        let reads = vec![read("none"), read("b")];
        let reply = send(&store, Lane::Change, writes, reads).await.expect("an exchange");
        assert!(matches!(
            reply.writes.as_slice(),
            [Outcome::Applied(_), Outcome::Refused, Outcome::Deleted]
        ));
        assert!(matches!(reply.reads.as_slice(), [Found::Absent, Found::Record(_)]));
    });
}
