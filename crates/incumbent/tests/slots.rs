//! Up to so many holders of a named thing, each with a fence of its own.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "this is test code, all of it")]

mod common;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{Moody, builder, join, memory, pause, soon, spawn, steady, until};
use incumbent::{CampaignError, Node, Slot, SlotAttempt, Slots, SlotsError, clock};
use incumbent_proving::{Entry, History, Loss, ask, check};

async fn acquire(slots: &Slots) -> Slot {
    soon(slots.acquire()).await.unwrap()
}

#[tokio::test]
async fn all_are_used_and_no_more_and_who_waits_gets_what_is_freed() {
    let store = memory();
    let mut held = Vec::new();
    for name in ["a", "b", "c"] {
        let node = steady(name).join(&store).await.unwrap();
        held.push(acquire(&node.slots("importers", 3).unwrap()).await);
    }
    let mut numbers: Vec<u16> = held.iter().map(Slot::index).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [0, 1, 2]);
    assert!(held.iter().all(|slot| slot.is_held() && slot.fence().as_u64() == 1));

    let fourth = steady("d").join(&store).await.unwrap().slots("importers", 3).unwrap();
    assert!(matches!(soon(fourth.try_acquire()).await.unwrap(), SlotAttempt::Full));
    let none = soon(fourth.acquire_within(Duration::from_millis(300))).await.unwrap();
    assert!(none.is_none());
    let other = fourth.leases().len();
    assert_eq!((other, fourth.count()), (3, 3));

    let waiting = spawn(async move { fourth.acquire().await.unwrap() });
    pause(200).await;
    assert!(!waiting.is_finished());
    let freed = held.remove(1);
    let (number, fence) = (freed.index(), freed.fence());
    soon(freed.release()).await.unwrap();
    let slot = soon(waiting).await.unwrap();
    assert_eq!(slot.index(), number);
    assert!(slot.fence() > fence, "each slot's fence grows");
    // Slots of another name have nothing to do with it.
    let more = steady("e").join(&store).await.unwrap();
    drop(acquire(&more.slots("exporters", 1).unwrap()).await);
}

#[tokio::test]
async fn one_node_can_hold_several_and_serves_its_waiters_in_order() {
    let node = join(&memory(), "a").await;
    let slots = node.slots("importers", 2).unwrap();
    let (one, other) = (acquire(&slots).await, acquire(&slots).await);
    assert_ne!(one.index(), other.index());
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut waiting = Vec::new();
    for number in 0..4 {
        // Each through a handle of its own: they stand in the same line.
        let (slots, order) = (node.slots("importers", 2).unwrap(), Arc::clone(&order));
        waiting.push(spawn(async move {
            let slot = slots.acquire().await.unwrap();
            order.lock().unwrap().push(number);
            drop(slot);
        }));
        // In line before the next one comes.
        pause(50).await;
    }
    assert!(matches!(soon(slots.try_acquire()).await.unwrap(), SlotAttempt::Full));
    drop(one);
    for waiter in waiting {
        soon(waiter).await.unwrap();
    }
    assert_eq!(*order.lock().unwrap(), [0, 1, 2, 3]);
    drop(other);
    until("all are free", || !slots.leases().iter().any(|lease| node.is_leader(lease.as_str())))
        .await;
    let attempt = soon(slots.try_acquire()).await.unwrap();
    assert!(matches!(attempt, SlotAttempt::Acquired(_)), "{attempt:?}");
}

#[tokio::test]
async fn who_waits_takes_one_even_if_all_are_freed_at_once() {
    let store = memory();
    let holder = steady("holder").join(&store).await.unwrap();
    let slots = holder.slots("importers", 3).unwrap();
    let held = [acquire(&slots).await, acquire(&slots).await, acquire(&slots).await];
    let waiter = steady("waiter").join(&store).await.unwrap();
    let mine = waiter.slots("importers", 3).unwrap();
    let waiting = spawn(async move { mine.acquire().await.unwrap() });
    pause(200).await;
    drop(held);
    let slot = soon(waiting).await.unwrap();
    soon(async {
        loop {
            let mut taken = 0;
            for lease in slots.leases() {
                taken += u32::from(holder.leader(lease.as_str()).await.unwrap().is_some());
            }
            if taken == 1 {
                return;
            }
            pause(20).await;
        }
    })
    .await;
    assert!(slot.is_held());
    // And the others are there for those who come.
    let _two = [acquire(&slots).await, acquire(&slots).await];
    assert!(matches!(soon(slots.try_acquire()).await.unwrap(), SlotAttempt::Full));
}

#[tokio::test]
async fn nodes_that_count_differently_share_what_both_know() {
    let store = memory();
    let (old, new) = (join(&store, "old").await, join(&store, "new").await);
    let (two, four) = (old.slots("importers", 2).unwrap(), new.slots("importers", 4).unwrap());
    let mut held = Vec::new();
    for _ in 0..4 {
        held.push(acquire(&four).await);
    }
    assert!(matches!(soon(two.try_acquire()).await.unwrap(), SlotAttempt::Full));
    let waiting = spawn(async move { two.acquire().await.unwrap() });
    held.retain(|slot| slot.index() < 2);
    pause(300).await;
    assert!(!waiting.is_finished(), "what the old doesn't know is not for it");
    held.retain(|slot| slot.index() != 1);
    assert_eq!(soon(waiting).await.unwrap().index(), 1);
}

#[tokio::test]
async fn what_can_not_be_is_said_at_once() {
    let node = join(&memory(), "a").await;
    for count in [0, 1001] {
        assert_eq!(node.slots("importers", count).unwrap_err(), SlotsError::Count { count });
    }
    for name in ["", "a\nb"] {
        assert!(matches!(node.slots(name, 1), Err(SlotsError::Name(_))), "{name:?}");
    }
    let reserved = node.campaign("incumbent/slot/importers/0").unwrap_err();
    assert!(matches!(reserved, CampaignError::Name(_)), "nobody takes a slot as a lease");
    let slots = node.slots("importers", 1).unwrap();
    let slot = acquire(&slots).await;
    // Operators see it under its full name.
    let seen = node.leader("incumbent/slot/importers/0").await.unwrap().unwrap();
    assert_eq!((seen.node.as_str(), seen.term), ("a", slot.number()));
    let waits = slots.clone();
    let waiting = spawn(async move { waits.acquire().await.map(drop) });
    pause(100).await;
    node.cluster().request_resign("incumbent/slot/importers/0").await.unwrap();
    soon(slot.lost()).await;
    drop(slot);
    soon(waiting).await.unwrap().unwrap();
    soon(node.leave()).await.unwrap();
    assert!(matches!(soon(slots.acquire()).await, Err(CampaignError::Left)));
}

#[tokio::test]
async fn a_store_that_is_away_is_not_a_full_house() {
    let store = Moody::new();
    let node = builder("a").join(store.clone()).await.unwrap();
    let slots = node.slots("importers", 3).unwrap();
    store.fail();
    let attempt = soon(slots.try_acquire()).await.unwrap();
    assert!(matches!(attempt, SlotAttempt::Unavailable { .. }), "{attempt:?}");
    let waiting = spawn(async move { slots.acquire().await.unwrap() });
    pause(200).await;
    store.recover();
    assert!(soon(waiting).await.unwrap().is_held());
}

#[test]
fn a_program_without_async_has_them_too() {
    use incumbent::blocking::Wait;
    let node = builder("a").join(memory()).wait().unwrap();
    let slots = node.slots("importers", 1).unwrap();
    let slot = slots.acquire().wait().unwrap();
    assert!(slots.acquire_within(Duration::from_millis(100)).wait().unwrap().is_none());
    assert!(matches!(slots.try_acquire().wait().unwrap(), SlotAttempt::Full));
    drop(slot);
    let slot = slots.acquire_within(Duration::from_secs(60)).wait().unwrap().unwrap();
    assert_eq!(slot.fence().as_u64(), 2);
    drop(slot);
    node.leave().wait().unwrap();
}

/// What one node was told about each slot.
type Histories = Arc<Mutex<BTreeMap<u16, Vec<Entry>>>>;

const COUNT: u16 = 3;

/// Holds slots again and again, and writes down what it is told.
async fn hold_by_turns(node: Node, told: Histories, over: Arc<AtomicBool>) {
    let slots = node.slots("importers", COUNT).unwrap();
    let mut turns: u64 = 0;
    while !over.load(Ordering::SeqCst) {
        let span = Duration::from_millis(500);
        let Some(slot) = slots.acquire_within(span).await.unwrap() else { continue };
        assert!(slot.index() < COUNT);
        turns += 1;
        let write = |entry| told.lock().unwrap().entry(slot.index()).or_default().push(entry);
        write(Entry::Elected { at: clock::now().as_nanos(), term: slot.number() });
        for _ in 0..20 + turns % 30 {
            let told = |entry| {
                write(entry);
                Ok(())
            };
            if !ask(&slot, told).unwrap() {
                let (at, term) = (clock::now().as_nanos(), slot.number());
                write(Entry::Lost { at, term, why: Loss::Other });
                break;
            }
            pause(2).await;
        }
        // Ended in order now and then, dropped otherwise.
        if turns.is_multiple_of(3) {
            let _ = tokio::time::timeout(Duration::from_secs(5), slot.release()).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn never_more_than_there_are_whoever_is_cut_off_thrown_out_or_stopped() {
    let store = Moody::new();
    let over = Arc::new(AtomicBool::new(false));
    let mut crew = Vec::new();
    for number in 0..5 {
        let path = store.beside();
        let node = builder(&format!("node-{number}")).join(path.clone()).await.unwrap();
        let told = Histories::default();
        let task = spawn(hold_by_turns(node.clone(), Arc::clone(&told), Arc::clone(&over)));
        crew.push((node, path, told, task));
    }
    for round in 0..12 {
        pause(300).await;
        let (node, path, ..) = &crew[round % crew.len()];
        match round % 3 {
            // Cut off for longer than its ttl.
            0 => {
                path.hang();
                pause(1300).await;
                path.recover();
            }
            1 => {
                if let Some(member) = node.member() {
                    let _ = node.cluster().evict(member.as_str()).await;
                }
            }
            _ => {
                path.fail();
                pause(200).await;
                path.recover();
            }
        }
    }
    let total = || -> usize {
        let terms = |told: &Histories| told.lock().unwrap().values().map(Vec::len).sum::<usize>();
        crew.iter().map(|(.., told, _)| terms(told)).sum()
    };
    let before = total();
    until("it goes on", || total() > before + 100).await;
    over.store(true, Ordering::SeqCst);
    let mut histories = Vec::new();
    for (node, _, told, task) in crew {
        soon(task).await.unwrap();
        let _ = node.leave().await;
        histories.push((node.name().to_owned(), told));
    }
    for number in 0..COUNT {
        let of_slot: Vec<History> = histories
            .iter()
            .map(|(process, told)| {
                let entries = told.lock().unwrap().remove(&number).unwrap_or_default();
                History { process: process.clone(), entries }
            })
            .collect();
        match check(&of_slot) {
            Ok(account) => assert!(account.terms > 3, "slot {number} was not used: {account:?}"),
            Err(violation) => panic!("slot {number}: {violation}"),
        }
    }
}
