//! The board, and what it points to: the view and the operators' intents.

use super::standing::{self, PreferredMembers};
use super::{
    Board, Config, ElectionEvent, Elector, Lane, Moment, Purpose, Read, Version, View, keys,
};

use crate::outbox::Answered;
use crate::pace;
use crate::records::{Ask, Content, Intent, IntentState};
use crate::store::{Expect, Found, Record};
use crate::sweep::Look;

/// What of the board and its records was read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Index {
    board: Option<Version>,
    view: Option<Version>,
    /// Revisions on the board, as far as they were followed up.
    views_read: u64,
    intents_read: u64,
    views: u64,
    intents: u64,
    /// Whom the last view prefers as leaders of the cluster.
    pub(super) preferred: PreferredMembers,
    /// A hint came: read the board without waiting for the beat.
    pub(super) want_board: bool,
    /// When the board was last asked for.
    asked: Option<Moment>,
    /// When to try again, because a read failed.
    retry_at: Option<Moment>,
    failures: u32,
}

/// What a read follows up: the revisions as they were when it was sent. What the board says
/// when the reply arrives may be newer than what the reply holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Followed {
    view: Option<u64>,
    intents: Option<u64>,
    along: bool,
}

impl Index {
    /// Whether the board is to be read with a beat that is sent now, whatever else is. Where the store
    /// pushes, hints say when it is to be read, and once a ttl is enough for those that are lost.
    pub(super) fn is_due(&self, now: Moment, config: &Config) -> bool {
        let (ttl, beat) = (config.timing.ttl, config.timing.beat);
        !config.push || self.asked.is_none_or(|asked| now >= asked + (ttl - beat / 2))
    }

    /// The read of the board.
    pub(super) fn board_read(&mut self, now: Moment) -> Read {
        self.asked = Some(now);
        Read::Key { key: keys::board(), unless: self.board.clone() }
    }

    /// What was asked wasn't answered: the next beat asks again.
    pub(super) fn ask_again(&mut self) {
        self.asked = None;
    }

    /// When to read again what could not be read.
    pub(super) fn wake_at(&self) -> Option<Moment> {
        self.retry_at
    }

    /// Intents that named a term which only now is ours are to be read again.
    pub(super) fn reread_intents(&mut self) {
        self.intents_read = 0;
    }
}

impl Elector {
    /// Reads what the board says has moved.
    pub(super) fn drive_index(&mut self, now: Moment) {
        if self.index.retry_at.is_some_and(|at| now < at) {
            return;
        }
        self.index.retry_at = None;
        let busy = |purpose: &Purpose| matches!(purpose, Purpose::Index(_));
        if !self.trusted(now) || self.outbox.awaits(busy) {
            return;
        }
        let index = &mut self.index;
        let moved = |to: u64, read: u64| (to > read).then_some(to);
        let view = moved(index.views, index.views_read).filter(|_| self.config.membership);
        let intents = moved(index.intents, index.intents_read);
        let board = std::mem::take(&mut index.want_board);
        if view.is_none() && intents.is_none() && !board {
            return;
        }
        let mut reads = vec![index.board_read(now)];
        let view_version = index.view.clone();
        let along = self.rider.along.clone().filter(|_| board);
        let followed = Followed { view, intents, along: along.is_some() };
        if view.is_some() {
            reads.push(Read::Key { key: keys::view(), unless: view_version });
        }
        if intents.is_some() {
            reads.push(Read::Prefix(keys::intents()));
        }
        reads.extend(along);
        self.outbox.ask(now, Lane::Watch, reads, Purpose::Index(followed));
    }

    pub(super) fn observe_board(&mut self, found: Option<&Found>) {
        let Some(Found::Record(stored)) = found else { return };
        if self.index.board.as_ref() == Some(&stored.version) {
            return;
        }
        match Board::read(stored) {
            Ok(board) => {
                self.index.views = board.view;
                self.index.intents = board.intents;
                // A board that went back belongs to a store that was restored: read it all.
                self.index.views_read = self.index.views_read.min(board.view.saturating_sub(1));
                self.index.intents_read = self.index.intents_read.min(board.intents);
            }
            Err(unreadable) => self.outbox.say(ElectionEvent::Unreadable(unreadable)),
        }
        self.index.board = Some(stored.version.clone());
    }

    pub(super) fn indexed(&mut self, now: Moment, followed: Followed, answer: Answered<'_>) {
        let Ok(reply) = answer else {
            self.index.failures = self.index.failures.saturating_add(1);
            let pause = pace::FAILURE.0 * (1 << self.index.failures.min(5));
            self.index.retry_at = Some(now + self.random.span(pause / 2, pause));
            self.index.want_board = true;
            return;
        };
        self.index.failures = 0;
        let mut reads = reply.reads.iter();
        self.observe_board(reads.next());
        if let Some(revision) = followed.view {
            self.index.views_read = revision;
            if let Some(Found::Record(stored)) = reads.next() {
                self.observe_view(stored);
            }
        }
        if let Some(revision) = followed.intents {
            self.index.intents_read = revision;
            if let Some(Found::Records(records)) = reads.next() {
                for stored in records {
                    self.obey(now, stored);
                }
            }
        }
        if followed.along {
            self.rider.found.extend(reads.next().cloned());
        }
    }

    /// Where nobody leads the cluster, everybody sweeps now and then.
    pub(super) fn drive_sweep(&mut self, now: Moment) {
        if self.may_lead_cluster() || self.leaving || !self.trusted(now) {
            return;
        }
        let (timing, planted) = (&self.config.timing, self.config.planted);
        self.sweep.poll(now, timing, planted, &mut self.outbox);
    }

    pub(super) fn swept(&mut self, now: Moment, look: Look, answer: Answered<'_>) {
        if look == Look::Read && (self.leaving || !self.trusted(now)) {
            return self.sweep.reset();
        }
        self.sweep.replied(now, look, answer, &self.config, &mut self.outbox);
    }

    fn observe_view(&mut self, stored: &Record) {
        match View::read(stored) {
            Ok(view) => {
                self.index.view = Some(stored.version.clone());
                self.index.preferred = standing::preferred(&view);
                self.outbox.say(ElectionEvent::Viewed(view));
            }
            Err(unreadable) => self.outbox.say(ElectionEvent::Unreadable(unreadable)),
        }
    }

    /// Does what an operator asks, if it is meant for us.
    fn obey(&mut self, now: Moment, stored: &Record) {
        let mut intent = match Intent::read(stored) {
            Ok(intent) => intent,
            Err(unreadable) => return self.outbox.say(ElectionEvent::Unreadable(unreadable)),
        };
        if intent.state != IntentState::Open {
            return;
        }
        let Ask::Resign { lease, term, successor } = intent.ask.clone() else {
            return; // Meant for the leader, who lists them.
        };
        let Some(name) = self.leases.named(&lease).filter(|name| self.held(name) == Some(term))
        else {
            return;
        };
        self.resign(now, &name, term, successor);
        intent.state = IntentState::Done;
        let expect = Expect::Version(stored.version.clone());
        let put = self.outbox.put(stored.key.clone(), expect, intent.bytes(), true);
        self.outbox.write(now, vec![put], Purpose::Obeyed);
    }
}
