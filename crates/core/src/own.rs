//! A record that nobody but its member writes, brought to the content that it should have.

use crate::backoff::Backoff;
use crate::random::Random;
use crate::settings::Timing;
use crate::store::{ErrorKind, Expect, Found, Outcome, Version};
use crate::time::Moment;

/// What a request about the record was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UpkeepKind {
    /// That it be written.
    Write,
    /// What is there.
    Read,
}

/// What to do about the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Upkeep {
    /// Write this.
    Write(Expect, Vec<u8>),
    /// An attempt may have landed: see what is there.
    Read,
}

/// The record of one member, which it alone writes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OwnRecord {
    wanted: Option<Vec<u8>>,
    there: There,
    /// What is on its way.
    sending: Option<Vec<u8>>,
    busy: bool,
    /// The store is known to hold what is wanted. It is asked for often, and compared once.
    settled: bool,
    /// Nothing is sent before this.
    not_before: Moment,
    retry: Backoff,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum There {
    Nothing,
    Content(Vec<u8>, Version),
    InDoubt,
}

impl OwnRecord {
    /// A record that was never written.
    pub fn new(timing: &Timing) -> Self {
        Self {
            wanted: None,
            there: There::Nothing,
            sending: None,
            busy: false,
            settled: true,
            not_before: Moment::START,
            retry: Backoff::new(timing.ttl / 60, timing.ttl / 8),
        }
    }

    /// Sets what it should hold.
    pub fn want(&mut self, content: Vec<u8>) {
        self.wanted = Some(content);
        self.compare();
    }

    /// Whether the store is known to hold what is wanted.
    pub fn is_settled(&self) -> bool {
        self.settled
    }

    fn compare(&mut self) {
        self.settled = match (&self.wanted, &self.there) {
            (Some(wanted), There::Content(there, _)) => wanted == there,
            (None, _) => true,
            (Some(_), There::Nothing | There::InDoubt) => false,
        };
    }

    /// When [`Self::step`] has something to do.
    pub fn wake_at(&self) -> Moment {
        if self.busy || self.is_settled() { Moment::NEVER } else { self.not_before }
    }

    /// What is to be done, if it is time.
    pub fn step(&mut self, now: Moment) -> Option<Upkeep> {
        if now < self.wake_at() {
            return None;
        }
        let wanted = self.wanted.clone()?;
        let step = match &self.there {
            There::InDoubt => Upkeep::Read,
            There::Nothing => Upkeep::Write(Expect::Absent, wanted),
            There::Content(_, version) => Upkeep::Write(Expect::Version(version.clone()), wanted),
        };
        if let Upkeep::Write(_, content) = &step {
            self.sending = Some(content.clone());
        }
        self.busy = true;
        Some(step)
    }

    /// Takes in what became of a write.
    pub fn wrote(
        &mut self,
        now: Moment,
        outcome: Result<&Outcome, ErrorKind>,
        random: &mut Random,
    ) {
        self.busy = false;
        match (outcome, self.sending.take()) {
            (Ok(Outcome::Applied(version)), Some(content)) => {
                self.there = There::Content(content, version.clone());
                self.retry.reset();
            }
            _ => {
                self.there = There::InDoubt;
                self.not_before = now + self.retry.pause(random);
            }
        }
        self.compare();
    }

    /// Takes in what a read found.
    pub fn read(&mut self, now: Moment, found: Result<&Found, ErrorKind>, random: &mut Random) {
        self.busy = false;
        match found {
            Ok(Found::Record(stored)) => {
                self.there = There::Content(stored.value.clone(), stored.version.clone());
            }
            Ok(Found::Absent) => self.there = There::Nothing,
            Ok(Found::Unchanged | Found::Records(_)) | Err(_) => {
                self.not_before = now + self.retry.pause(random);
            }
        }
        self.compare();
    }
}
