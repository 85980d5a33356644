//! Whether a history of one record could have happened one step after another (Wing and Gong's
//! search, with Lowe's memory of the states already tried).

use std::collections::HashSet;

/// Stands for one content that was written once.
pub(crate) type Content = u32;

/// One operation of a concurrent history.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    /// When it was sent, on a counter that all clients share.
    pub(crate) sent: u64,
    /// When it was answered; `None` where the outcome is unknown, so that it may take effect at
    /// any later time, or never.
    pub(crate) answered: Option<u64>,
    /// What it did if it took effect. What surely took no effect is no event.
    pub(crate) action: Action,
}

/// What an operation did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Found this content, or no record.
    Saw(Option<Content>),
    /// Replaced the first by the second.
    Swapped(Option<Content>, Content),
    /// Removed the record.
    Deleted,
}

/// The most events that a history may have.
pub(crate) const MOST_EVENTS: usize = 128;

/// Whether there is an order of the events that respects which ended before which began, and in
/// which each is right, starting without a record. Histories are at most [`MOST_EVENTS`] long.
pub(crate) fn is_linearizable(history: &[Event]) -> bool {
    let history = history.get(..MOST_EVENTS).unwrap_or(history);
    let mut tried = HashSet::new();
    let mut open = vec![(0_u128, None)];
    while let Some((done, state)) = open.pop() {
        if !tried.insert((done, state)) {
            continue;
        }
        let left = || history.iter().enumerate().filter(move |(place, _)| done & (1 << place) == 0);
        let Some(first_answer) = left().filter_map(|(_, event)| event.answered).min() else {
            // Only operations of unknown outcome are left, and those need not have happened.
            return true;
        };
        for (place, event) in left().filter(|(_, event)| event.sent < first_answer) {
            if let Some(next) = after(state, event.action) {
                open.push((done | (1 << place), next));
            }
        }
    }
    false
}

/// The state after this action, if it is right in that state.
fn after(state: Option<Content>, action: Action) -> Option<Option<Content>> {
    match action {
        Action::Saw(content) => (state == content).then_some(state),
        Action::Swapped(from, to) => (state == from).then_some(Some(to)),
        Action::Deleted => Some(None),
    }
}

#[cfg(test)]
mod tests {
    use super::{Action, Event, is_linearizable};

    fn event(sent: u64, answered: u64, action: Action) -> Event {
        Event { sent, answered: Some(answered), action }
    }

    #[test]
    fn one_after_another() {
        let created = event(1, 2, Action::Swapped(None, 1));
        assert!(is_linearizable(&[]));
        assert!(is_linearizable(&[created.clone(), event(3, 4, Action::Saw(Some(1)))]));
        assert!(!is_linearizable(&[created.clone(), event(3, 4, Action::Saw(None))]));
        assert!(!is_linearizable(&[created, event(3, 4, Action::Swapped(None, 2))]));
    }

    #[test]
    fn overlapping_operations_take_either_order() {
        let created = event(1, 6, Action::Swapped(None, 1));
        let (before, behind) = (event(2, 3, Action::Saw(None)), event(4, 5, Action::Saw(Some(1))));
        assert!(is_linearizable(&[created.clone(), before, behind]));
        let (behind, before) = (event(2, 3, Action::Saw(Some(1))), event(4, 5, Action::Saw(None)));
        assert!(!is_linearizable(&[created, behind, before]), "what was seen can't be unseen");
    }

    #[test]
    fn both_candidates_win() {
        let swaps = [
            event(1, 2, Action::Swapped(None, 1)),
            event(3, 6, Action::Swapped(Some(1), 2)),
            event(4, 5, Action::Swapped(Some(1), 3)),
        ];
        assert!(!is_linearizable(&swaps));
    }

    #[test]
    fn unknown_happens_late_or_never() {
        let unknown = Event { sent: 1, answered: None, action: Action::Swapped(None, 1) };
        assert!(is_linearizable(std::slice::from_ref(&unknown)));
        assert!(is_linearizable(&[unknown.clone(), event(2, 3, Action::Saw(None))]));
        let late = [event(2, 3, Action::Saw(None)), event(4, 5, Action::Saw(Some(1)))];
        assert!(is_linearizable(&[[unknown.clone()].as_slice(), &late].concat()));
        let undone = [event(2, 3, Action::Saw(Some(1))), event(4, 5, Action::Saw(None))];
        assert!(!is_linearizable(&[[unknown].as_slice(), &undone].concat()));
    }

    #[test]
    fn deletes() {
        let deleted = [
            event(1, 2, Action::Swapped(None, 1)),
            event(3, 4, Action::Deleted),
            event(5, 6, Action::Saw(None)),
        ];
        assert!(is_linearizable(&deleted));
        let kept = [deleted[0].clone(), deleted[1].clone(), event(5, 6, Action::Saw(Some(1)))];
        assert!(!is_linearizable(&kept));
    }
}
