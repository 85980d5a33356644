use std::sync::mpsc::Receiver;
use std::time::Duration;

use anyhow::Result;
use incumbent::blocking::Wait;
use incumbent::{Leadership, Node};
use incumbent::{Term, clock};

use super::history::{Entry, Loss};

/// What a candidate that leads can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// To give the lease up. It goes on standing for it.
    Resign,
    /// To give the lease up, withdraw, and then stand again as one that has never held it.
    Return,
}

/// From one question to the next.
const PAUSE: Duration = Duration::from_millis(2);

/// From withdrawing to standing again: all that is in the node's memory is forgotten by then.
const ABSENCE: Duration = Duration::from_millis(100);

/// Stands for a lease, and writes down what is told, until the node has left. Orders are for the
/// term in which they come; who doesn't lead takes no notice.
///
/// # Errors
/// If something can't be written down, or the node can't stand.
pub fn stand(
    node: &Node,
    lease: &str,
    orders: &Receiver<Order>,
    mut write: impl FnMut(Entry) -> Result<()>,
) -> Result<()> {
    loop {
        let mut campaign = node.campaign(lease)?;
        loop {
            // An error means that the node has left.
            let Ok(leadership) = campaign.elected().wait() else { return Ok(()) };
            if lead(leadership, orders, &mut write)? == Some(Order::Return) {
                break;
            }
        }
        drop(campaign);
        std::thread::park_timeout(ABSENCE);
    }
}

/// Asks again and again, and writes down the answers, until one is no.
fn lead(
    leadership: Leadership,
    orders: &Receiver<Order>,
    write: &mut impl FnMut(Entry) -> Result<()>,
) -> Result<Option<Order>> {
    let term = leadership.number();
    // What was asked of an earlier term is not meant for this one.
    while orders.try_recv().is_ok() {}
    write(Entry::Elected { at: now(), term })?;
    let mut order = None;
    loop {
        if !ask(&leadership, &mut *write)? {
            break;
        }
        if let Ok(told) = orders.recv_timeout(PAUSE) {
            order = Some(told);
            leadership.resign();
        }
    }
    let why = match leadership.lost().wait().why {
        incumbent::Loss::CannotTell => Loss::CannotTell,
        _ => Loss::Other,
    };
    write(Entry::Lost { at: now(), term, why })?;
    if order == Some(Order::Return) {
        // Whether the store has said that the lease is free makes no difference here.
        let _ = leadership.release().wait();
    }
    Ok(order)
}

/// Asks whether a term is held, and writes down the answer.
///
/// # Errors
/// If it can't be written down.
pub fn ask(term: &Term, mut write: impl FnMut(Entry) -> Result<()>) -> Result<bool> {
    let before = now();
    let held = term.is_held();
    let after = now();
    let until = term.trusted_until().as_nanos();
    write(Entry::Asked { before, after, term: term.number(), held, until })?;
    Ok(held)
}

fn now() -> u64 {
    clock::now().as_nanos()
}
