//! Hints: across stores, never for beats, and again after a connection was lost.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // A test fails by panicking, its helpers too.

mod common;

use common::{
    Hints, Server, apply, beat, create, eventually, fresh, open, pause, put, shared, through,
};
use incumbent_core::store::Expect;
use incumbent_proving::{Proxy, Wire};

#[tokio::test]
async fn changes_wake_others_and_beats_do_not() {
    let url = shared();
    let (writer, reader) = (open(&url).await, open(&url).await);
    let hints = Hints::of(&reader, "c").ready().await;
    let elsewhere = Hints::of(&reader, "other").ready().await;
    let before = (hints.count(), elsewhere.count());
    let version = apply(&writer, create("member/a")).await;
    let version = apply(&writer, beat("member/a", &version, "{}")).await;
    pause(200).await;
    assert_eq!(hints.count(), before.0, "a beat hinted");
    apply(&writer, put("member/a", Expect::Version(version), "{}", true)).await;
    eventually("the hint", || hints.count() > before.0).await;
    pause(50).await;
    assert_eq!(elsewhere.count(), before.1, "another cluster was woken");
}

#[tokio::test]
async fn everybody_is_woken_once_after_a_lost_connection() {
    let server = Server::start();
    let proxy = Proxy::over(Wire::NATS, server.port()).await;
    let bucket = fresh();
    let writer = open(&format!("{}?bucket={bucket}", server.url())).await;
    let reader = open(&through(&proxy, &bucket)).await;
    let hints = [Hints::of(&reader, "c").ready().await, Hints::of(&reader, "d").ready().await];
    for round in 0..3 {
        let before = hints.each_ref().map(Hints::count);
        proxy.cut();
        let again = || hints.iter().zip(before).all(|(hints, before)| hints.count() > before);
        eventually("the wake-up after the loss", again).await;
        let before = hints[0].count();
        apply(&writer, put(&format!("lease/{round}"), Expect::Absent, "{}", true)).await;
        eventually("the hint", || hints[0].count() > before).await;
    }
}

#[tokio::test]
async fn hints_can_be_switched_off() {
    let store = open(&format!("{}&hints=off", shared())).await;
    let wake = std::sync::Arc::new(|| {});
    use incumbent_core::store::Store as _;
    assert!(!store.capabilities().push && store.hints("c", wake).is_none());
    apply(&store, put("lease/a", Expect::Absent, "{}", true)).await;
}
