//! A store that fails: the leader steps down in time (F7), survives it (F28), and one hung
//! request costs nothing (F27).

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use common::{Moody, join, next_event, pause, soon, until};
use incumbent::{Event, Finish, Loss, OpenStore};

#[tokio::test]
async fn an_outage_ends_work_in_time_and_the_node_leads_again_afterwards() {
    let store = Moody::new();
    let node = join(&OpenStore::from(store.clone()), "a").await;
    let mut notices = node.subscribe();
    let working = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&working);
    let lead = node
        .lead("scheduler", move |term| {
            let working = Working::start(&flag);
            async move {
                let _working = working;
                // It ignores its token, as work will.
                pause(60_000).await;
                drop(term);
                Ok(())
            }
        })
        .unwrap();
    until("it works", || working.load(Ordering::SeqCst)).await;
    let first = lead.term().unwrap();
    for round in 0..2 {
        if round == 0 {
            store.fail()
        } else {
            store.hang()
        }
        let began = incumbent::clock::now();
        until("work stops", || !working.load(Ordering::SeqCst)).await;
        let lasted = incumbent::clock::now().since(began);
        assert!(lasted < Duration::from_millis(1500), "F7: work went on for {lasted:?}");
        let lost = |event: &Event| matches!(event, Event::Lost { .. });
        let lost = next_event(&mut notices, lost).await;
        assert!(matches!(lost, Event::Lost { why: Loss::CannotTell, .. }), "{lost:?}");
        pause(300).await;
        store.recover();
        until("F28: it works again", || working.load(Ordering::SeqCst)).await;
    }
    assert!(lead.term().unwrap().number() > first.number());
    assert_eq!(soon(lead.stop()).await, Finish::Stopped);
}

#[tokio::test]
async fn one_hung_request_does_not_cost_the_term() {
    let store = Moody::new();
    let node = join(&OpenStore::from(store.clone()), "a").await;
    let mut campaign = node.campaign("scheduler").unwrap();
    let leadership = soon(campaign.elected()).await.unwrap();
    for _ in 0..3 {
        store.mood().hang_beats.store(1, Ordering::SeqCst);
        until("a beat hung", || store.mood().hang_beats.load(Ordering::SeqCst) == 0).await;
        pause(800).await;
        assert!(leadership.is_held(), "F27");
    }
}

#[tokio::test]
async fn a_store_that_rejects_everything_fails_the_join_at_once() {
    let store = Moody::new();
    store.reject();
    let refused = soon(common::builder("a").join(store)).await;
    assert!(matches!(&refused, Err(incumbent::JoinError::Rejected(_))), "{refused:?}");
}

#[tokio::test]
async fn a_store_that_is_away_fails_the_join_in_time_and_says_why() {
    let store = Moody::new();
    store.fail();
    let builder = common::builder("a").join_timeout(Duration::from_millis(300));
    let refused = soon(builder.join(store)).await.unwrap_err().to_string();
    assert!(refused.contains("the store is away"), "{refused}");
}

#[tokio::test]
async fn a_store_that_panics_is_a_store_that_failed() {
    let store = Panicky::default();
    // Printing a backtrace may take a good part of a second, on the very thread that beats.
    let builder = common::builder("a").ttl(Duration::from_secs(5));
    let node = soon(builder.join(store.clone())).await.unwrap();
    let mut campaign = node.campaign("scheduler").unwrap();
    let leadership = soon(campaign.elected()).await.unwrap();
    store.panics.store(1, Ordering::SeqCst);
    until("it panicked", || store.panics.load(Ordering::SeqCst) == 0).await;
    pause(5000).await;
    assert!(leadership.is_held());
}

struct Working(Arc<AtomicBool>);

impl Working {
    fn start(flag: &Arc<AtomicBool>) -> Self {
        flag.store(true, Ordering::SeqCst);
        Self(Arc::clone(flag))
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

#[derive(Clone, Default)]
struct Panicky {
    inner: incumbent::MemoryStore,
    panics: Arc<AtomicUsize>,
}

impl incumbent::store::Store for Panicky {
    fn capabilities(&self) -> incumbent::store::Capabilities {
        self.inner.capabilities()
    }

    fn exchange<'a>(
        &'a self,
        cluster: &'a str,
        lane: incumbent::store::Lane,
        exchange: incumbent::store::Exchange,
    ) -> incumbent::store::Answer<'a> {
        let order = Ordering::SeqCst;
        let planned = self.panics.fetch_update(order, order, |left| left.checked_sub(1));
        assert!(planned.is_err(), "as planned");
        self.inner.exchange(cluster, lane, exchange)
    }

    fn hints(
        &self,
        cluster: &str,
        wake: incumbent::store::Wake,
    ) -> Option<incumbent::store::HintGuard> {
        self.inner.hints(cluster, wake)
    }
}
