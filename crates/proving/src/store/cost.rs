//! What exchanges cost, counted on the way to the server.

use incumbent_core::store::{Key, Lane, Read, Store};

use super::numbered::{applied, batch, beat};
use super::{read, send};
use crate::{Proxy, Traffic};

/// What a beat reads beside its write.
#[must_use]
pub fn reads() -> Vec<Read> {
    vec![read("roster/m"), read("board")]
}

/// What a hundred beats of a member cost, the first of which is this attempt.
///
/// # Panics
///
/// If one doesn't get through.
pub async fn hundred_beats(store: &impl Store, proxy: &Proxy, first: u64) -> Traffic {
    let before = proxy.quiet().await;
    for attempt in first..first + 100 {
        let beats = vec![beat("member/m", attempt - 1, attempt)];
        let reply = send(store, Lane::Beat, beats, reads()).await.expect("a beat");
        assert_eq!(reply.writes, [applied(attempt)]);
    }
    let cost = proxy.quiet().await.since(before);
    println!("100 beats with two reads: {cost:?}");
    cost
}

/// What exchanges of every shape cost, three times: five hundred writes with a read, and reads of a
/// prefix and of a key.
///
/// # Panics
///
/// If one doesn't get through.
pub async fn every_shape(store: &impl Store, proxy: &Proxy) -> [[Traffic; 2]; 3] {
    send(store, Lane::Change, batch(0), vec![]).await.expect("creations");
    send(store, Lane::Watch, vec![], vec![read("x")]).await.expect("a read");
    let mut costs = [[Traffic::default(); 2]; 3];
    for (round, costs) in (1..).zip(&mut costs) {
        let before = proxy.quiet().await;
        let reply = send(store, Lane::Change, batch(round), vec![read("view")]).await;
        let expected = (0..500).map(|number| applied(round * 1000 + number));
        assert!(reply.expect("an exchange").writes.into_iter().eq(expected));
        let between = proxy.quiet().await;
        let reads = vec![Read::Prefix(Key::new("lease/")), read("board")];
        send(store, Lane::Watch, vec![], reads).await.expect("reads");
        *costs = [between.since(before), proxy.quiet().await.since(between)];
    }
    costs
}
