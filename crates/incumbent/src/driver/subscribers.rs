//! Who is told what happens.

use tokio::sync::mpsc::{self, Receiver, Sender};

use crate::driver::clock;
use crate::node::event::{Event, Notice};

/// So many notices wait at most for a subscriber that doesn't read them.
const WAITING: usize = 4096;
/// Room that is kept for the very last: that some were missed, how things stand, and the end.
const LAST_WORDS: usize = 3;

/// Where the notices of one subscriber wait.
pub(crate) fn queue() -> (Sender<Notice>, Receiver<Notice>) {
    mpsc::channel(WAITING + LAST_WORDS)
}

#[derive(Default)]
pub(super) struct Subscribers(Vec<Subscriber>);

struct Subscriber {
    notices: Sender<Notice>,
    /// So many were not told, because the queue was full.
    missed: u64,
}

impl Subscribers {
    /// Tells one more from now on, beginning with the state.
    pub(super) fn add(&mut self, notices: Sender<Notice>, state: Event) {
        let mut subscriber = Subscriber { notices, missed: 0 };
        subscriber.tell(&state, LAST_WORDS);
        if self.0.len() == self.0.capacity() {
            // Where nothing happens nobody is told, and those who left would never be noticed. The
            // room makes this rare.
            self.0.retain(|subscriber| !subscriber.notices.is_closed());
            self.0.reserve(self.0.len().max(8));
        }
        self.0.push(subscriber);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Tells all. It never waits: who doesn't read misses what comes.
    pub(super) fn tell(&mut self, event: &Event) {
        self.0.retain_mut(|subscriber| {
            subscriber.tell(event, LAST_WORDS);
            !subscriber.notices.is_closed()
        });
    }

    /// Whether some missed something and have room again.
    pub(super) fn fell_behind(&self) -> bool {
        self.0.iter().any(|subscriber| subscriber.missed > 0 && subscriber.has_room())
    }

    /// Tells those that they missed something, and how things stand now.
    pub(super) fn catch_up(&mut self, state: &Event) {
        for subscriber in self.0.iter_mut().filter(|it| it.missed > 0 && it.has_room()) {
            subscriber.catch_up(state);
        }
    }

    /// Tells all that this is the end. For that there is always room.
    pub(super) fn part(&mut self, state: &Event) {
        for mut subscriber in self.0.drain(..) {
            if subscriber.missed > 0 {
                subscriber.catch_up(state);
            }
            subscriber.tell(&Event::Left, 0);
        }
    }
}

impl Subscriber {
    fn has_room(&self) -> bool {
        self.notices.capacity() >= 2 * LAST_WORDS
    }

    /// Sends the event if there is more room than this; otherwise it counts as missed. Once one
    /// was missed, all are until it is caught up with.
    fn tell(&mut self, event: &Event, reserved: usize) {
        let room = self.notices.capacity() > reserved;
        let notice = Notice { at_ms: clock::wall_ms(), event: event.clone() };
        if self.missed > 0 || !room || self.notices.try_send(notice).is_err() {
            self.missed += 1;
        }
    }

    fn catch_up(&mut self, state: &Event) {
        let notices = std::mem::take(&mut self.missed);
        self.tell(&Event::Missed { notices }, 0);
        self.tell(state, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::event::State;

    fn drained(notices: &mut Receiver<Notice>) -> Vec<Event> {
        std::iter::from_fn(|| notices.try_recv().ok().map(|notice| notice.event)).collect()
    }

    #[test]
    fn o13_who_left_is_forgotten_even_if_nothing_happens() {
        let mut subscribers = Subscribers::default();
        let stays: Vec<_> = (0..20)
            .map(|_| {
                let (sender, notices) = queue();
                subscribers.add(sender, Event::State(State::default()));
                notices
            })
            .collect();
        for _ in 0..1000 {
            subscribers.add(queue().0, Event::State(State::default()));
        }
        assert!(subscribers.0.len() <= 4 * stays.len(), "{} are kept", subscribers.0.len());
        subscribers.tell(&Event::Left);
        assert_eq!(subscribers.0.len(), stays.len());
    }

    #[test]
    fn o13_who_does_not_read_misses_some_and_is_told_so() {
        let state = Event::State(State::default());
        let joined = Event::Joined { member: incumbent_core::MemberId::new("m") };
        let (sender, mut notices) = queue();
        let mut subscribers = Subscribers::default();
        subscribers.add(sender, state.clone());
        for _ in 0..WAITING + 100 {
            subscribers.tell(&joined);
        }
        assert!(!subscribers.fell_behind(), "there is no room yet");
        assert_eq!(drained(&mut notices).len(), WAITING);
        subscribers.tell(&joined);
        assert_eq!(
            drained(&mut notices),
            [],
            "nothing comes before the word that some are missing"
        );
        assert!(subscribers.fell_behind());
        subscribers.catch_up(&state);
        subscribers.tell(&joined);
        let expected = [Event::Missed { notices: 102 }, state.clone(), joined.clone()];
        assert_eq!(drained(&mut notices), expected);
        for _ in 0..WAITING + 100 {
            subscribers.tell(&joined);
        }
        subscribers.part(&state);
        let all = drained(&mut notices);
        assert_eq!(all.len(), WAITING + LAST_WORDS);
        assert_eq!(all[WAITING..], [Event::Missed { notices: 100 }, state, Event::Left]);
    }
}
