//! What the view shows, and what keys change about it.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::panes::Panes;
use super::room::{self, Room};
use crate::change::{Item, changes};
use crate::command::status::Snapshot;

/// How many changes are kept.
const LONGEST: usize = 500;

/// What was seen, and when.
#[derive(Clone, Debug)]
pub(super) struct Look {
    /// All there is to see.
    pub(super) snapshot: Snapshot,
    /// By this machine's wall clock.
    pub(super) at_ms: u64,
}

/// A part of the view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pane {
    Members,
    Leases,
    Duties,
    Changes,
}

impl Pane {
    pub(super) const ALL: [Self; 4] = [Self::Members, Self::Leases, Self::Duties, Self::Changes];

    /// Its place in [`Self::ALL`].
    pub(super) fn place(self) -> usize {
        self as usize
    }
}

/// All that the picture depends on.
#[derive(Clone, Debug)]
pub(super) struct Model {
    pub(super) cluster: String,
    pub(super) store: String,
    /// When it was seen, by this machine's wall clock.
    pub(super) at_ms: u64,
    /// Why the last look failed, if it did.
    pub(super) trouble: Option<String>,
    /// How many records can't be read, if any.
    pub(super) unreadable: Option<String>,
    /// What is in the parts of the view.
    pub(super) panes: Panes,
    /// The part that keys are about.
    pub(super) pane: Pane,
    /// How much of the screen each part has.
    pub(super) room: [Room; 4],
    /// How many rows of each part are scrolled out of sight.
    pub(super) skipped: [usize; 4],
    /// Only rows that contain this are shown.
    pub(super) filter: String,
    /// Whether keys go to the filter.
    pub(super) typing: bool,
    /// Whether the picture stands still.
    pub(super) paused: bool,
    snapshot: Snapshot,
    /// The newest first.
    changes: Vec<Item>,
}

impl Model {
    /// One that has seen nothing.
    pub(super) fn new(cluster: &str, store: &str) -> Self {
        Self {
            cluster: cluster.to_owned(),
            store: store.to_owned(),
            at_ms: 0,
            trouble: None,
            unreadable: None,
            panes: Panes::default(),
            pane: Pane::Members,
            room: [Room::default(); 4],
            skipped: [0; 4],
            filter: String::new(),
            typing: false,
            paused: false,
            snapshot: Snapshot::default(),
            changes: Vec::new(),
        }
    }

    /// Takes in what was seen.
    pub(super) fn see(&mut self, look: Look) {
        let Look { snapshot, at_ms } = look;
        let mut items = changes(&self.snapshot, &snapshot, at_ms);
        items.sort_by_key(Item::at_ms);
        self.changes.splice(0..0, items.into_iter().rev());
        self.changes.truncate(LONGEST);
        (self.snapshot, self.at_ms, self.trouble) = (snapshot, at_ms, None);
        self.arrange();
    }

    /// Shares the lines of the screen among the parts.
    pub(super) fn fit(&mut self, height: u16) {
        self.room = room::share(height.saturating_sub(2), self.panes.counts(), self.pane);
        for (skipped, (room, count)) in
            self.skipped.iter_mut().zip(self.room.iter().zip(self.panes.counts()))
        {
            *skipped = (*skipped).min(count.saturating_sub(room.rows()));
        }
    }

    /// The first row of a part that is in sight, how many are, and how many there are.
    pub(super) fn shown(&self, pane: Pane) -> (usize, usize, usize) {
        let place = pane.place();
        let count = self.panes.counts().get(place).copied().unwrap_or_default();
        let first = self.skipped.get(place).copied().unwrap_or_default().min(count);
        let room = self.room.get(place).map_or(0, Room::rows);
        (first, room.min(count - first), count)
    }

    /// Does what a key stands for; other keys do nothing.
    pub(super) fn press(&mut self, key: KeyEvent) {
        if self.typing {
            self.type_in(key);
            return;
        }
        let page = self.room.get(self.pane.place()).map_or(1, Room::rows).max(1);
        match key.code {
            KeyCode::Tab | KeyCode::Right => self.choose(1),
            KeyCode::BackTab | KeyCode::Left => self.choose(Pane::ALL.len() - 1),
            KeyCode::Up => self.scroll(|skipped| skipped.saturating_sub(1)),
            KeyCode::Down => self.scroll(|skipped| skipped.saturating_add(1)),
            KeyCode::PageUp => self.scroll(|skipped| skipped.saturating_sub(page)),
            KeyCode::PageDown => self.scroll(|skipped| skipped.saturating_add(page)),
            KeyCode::Home => self.scroll(|_| 0),
            KeyCode::End => self.scroll(|_| usize::MAX),
            KeyCode::Char('/') => self.typing = true,
            KeyCode::Char('p') => self.paused = !self.paused,
            KeyCode::Esc => self.narrow(String::new()),
            _ => {}
        }
    }

    fn type_in(&mut self, key: KeyEvent) {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let mut filter = self.filter.clone();
        match key.code {
            KeyCode::Esc => {
                filter.clear();
                self.typing = false;
            }
            KeyCode::Char('c') if control => self.typing = false,
            KeyCode::Enter => self.typing = false,
            KeyCode::Backspace => {
                filter.pop();
            }
            KeyCode::Char(letter) if !control => filter.push(letter),
            _ => {}
        }
        self.narrow(filter);
    }

    fn narrow(&mut self, filter: String) {
        self.filter = filter;
        self.arrange();
    }

    fn arrange(&mut self) {
        let broken = self.snapshot.unreadable.len();
        self.unreadable = (broken > 0).then(|| format!("unreadable records: {broken}"));
        self.panes = Panes::of(&self.snapshot, &self.changes, self.at_ms, &self.filter);
    }

    fn choose(&mut self, further: usize) {
        let next = (self.pane.place() + further) % Pane::ALL.len();
        self.pane = Pane::ALL.get(next).copied().unwrap_or(self.pane);
    }

    /// Too far is put right when the picture is drawn.
    fn scroll(&mut self, step: impl FnOnce(usize) -> usize) {
        if let Some(skipped) = self.skipped.get_mut(self.pane.place()) {
            *skipped = step(*skipped);
        }
    }
}
