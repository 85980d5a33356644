//! Who waits for what a node holds.

use std::collections::BTreeMap;
use std::time::Duration;

use incumbent_core::Moment;

use super::datagram::HintAddress;

/// Who waits says so again after this.
pub(crate) const AGAIN: Duration = Duration::from_secs(5);
/// Who hasn't said so for this long waits no more.
const KEPT: Duration = Duration::from_secs(20);
/// So many are known at most; the others find out by looking, as everybody did before.
const MOST: usize = 1024;

/// Who said that it waits for what a node holds, and until when that counts.
#[derive(Debug, Default)]
pub(crate) struct Listeners(BTreeMap<HintAddress, Moment>);

impl Listeners {
    pub(crate) fn note(&mut self, now: Moment, waiter: HintAddress) {
        if self.0.len() >= MOST {
            self.forget_silent(now);
        }
        if self.0.len() < MOST || self.0.contains_key(&waiter) {
            self.0.insert(waiter, now + KEPT);
        }
    }

    /// Those that count now.
    pub(crate) fn waiting(&mut self, now: Moment) -> impl Iterator<Item = HintAddress> {
        self.forget_silent(now);
        self.0.keys().copied()
    }

    fn forget_silent(&mut self, now: Moment) {
        self.0.retain(|_, until| now < *until);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiter(number: u64) -> HintAddress {
        HintAddress { at: "127.0.0.1:7".parse().unwrap(), door: number }
    }

    #[test]
    fn who_is_silent_is_forgotten_and_a_crowd_is_bounded() {
        let (start, mut listeners) = (Moment::START, Listeners::default());
        listeners.note(start, waiter(1));
        let later = start + KEPT / 2;
        listeners.note(later, waiter(2));
        let both: Vec<_> = listeners.waiting(later).collect();
        assert_eq!(both, [waiter(1), waiter(2)]);
        let left: Vec<_> = listeners.waiting(start + KEPT).collect();
        assert_eq!(left, [waiter(2)]);
        for number in 0..10_000 {
            listeners.note(later, waiter(number));
        }
        assert_eq!(listeners.waiting(later).count(), MOST);
        let end = later + KEPT;
        listeners.note(end, waiter(20_000));
        assert_eq!(listeners.waiting(end).collect::<Vec<_>>(), [waiter(20_000)]);
    }
}
