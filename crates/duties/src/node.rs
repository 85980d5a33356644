//! A node of a cluster with duties: its member and its leases, what it runs for the cluster, and
//! where others run what, while it leads.

mod leading;
mod serving;

use std::collections::{BTreeMap, VecDeque};
use std::ops::{Deref, DerefMut};

use incumbent_core::outbox::{first_read, first_write, next};
use incumbent_core::random::Random;
use incumbent_core::store::{ErrorKind, Lane, Read, Reply, Write};
use incumbent_core::{Brought, Config, ElectionEvent, Elector as Core, Moment, RequestId};

use crate::event::DutyEvent;
use crate::placing::{Placement, Placing, Subject};
use crate::worker::Worker;

/// One node of a cluster. What it knows of members and leases is that of the core, which it rides
/// along with, and so is what a driver says about them.
#[derive(Clone, Debug)]
pub struct DutyNode {
    core: Core,
    placement: Placement,
    /// Its own, so that duties change nothing about when anything else is done.
    random: Random,
    worker: Worker,
    placing: Option<Placing>,
    /// What is on its way, and what it is about.
    errands: BTreeMap<RequestId, Errand>,
    /// How many incarnations had ended when that was last looked at.
    endings: u64,
    /// The view says that lists of this member are gone.
    lists_gone: bool,
    plannings: u64,
    events: VecDeque<DutyEvent>,
}

/// What a request is about.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Errand {
    Catalog(String),
    Report,
    ReportRead,
    PlaceRead,
    PlaceWrite(Subject),
}

impl Deref for DutyNode {
    type Target = Core;

    fn deref(&self) -> &Core {
        &self.core
    }
}

impl DerefMut for DutyNode {
    fn deref_mut(&mut self) -> &mut Core {
        &mut self.core
    }
}

impl DutyNode {
    /// A node that joins at once; `placement` is how it places duties when it leads.
    #[must_use]
    pub fn new(config: Config, placement: Placement, seed: u64, now: Moment) -> Self {
        let worker = Worker::new(&config.timing);
        Self {
            core: Core::new(config, seed, now),
            placement,
            random: Random::new(seed ^ 0x6475_7469_6573),
            worker,
            placing: None,
            errands: BTreeMap::new(),
            endings: 0,
            lists_gone: false,
            plannings: 0,
            events: VecDeque::new(),
        }
    }

    /// Does all that is due. To be called after every input and at [`Self::wake_at`].
    pub fn poll(&mut self, now: Moment) {
        self.core.poll(now);
        self.take_in(now);
        self.drive_worker(now);
        self.drive_placing(now);
    }

    /// When [`Self::poll`] has something to do by itself.
    #[must_use]
    pub fn wake_at(&self) -> Moment {
        let placing = self.placing.as_ref().map_or(Moment::NEVER, Placing::wake_at);
        let worker = self.core.member().map_or(Moment::NEVER, |_| self.worker.wake_at());
        self.core.wake_at().min(placing).min(worker)
    }

    /// Takes in the reply to a request, or the error that came instead. A reply that comes
    /// twice, or after its deadline, is ignored.
    pub fn handle(&mut self, now: Moment, id: RequestId, answer: Result<Reply, ErrorKind>) {
        self.core.handle(now, id, answer);
        self.take_in(now);
    }

    /// The next event to act on.
    pub fn next_event(&mut self) -> Option<DutyEvent> {
        self.pull_events();
        next(&mut self.events)
    }

    /// Takes in what became of the member and its leases, and what came back.
    fn take_in(&mut self, now: Moment) {
        self.follow(now);
        while let Some(found) = self.core.found() {
            self.observe_roster(now, &found);
        }
        while let Some(brought) = self.core.brought() {
            self.replied(now, brought);
        }
        self.follow(now);
        self.core.tell_listed(self.worker.is_listed());
        if let Some(revision) = self.worker.reported() {
            self.core.tell_report(revision);
        }
        self.ride_along();
    }

    /// Takes in what became of the member and its leases.
    fn follow(&mut self, now: Moment) {
        if self.core.endings() != self.endings {
            self.endings = self.core.endings();
            self.worker.end(&self.core.config().timing, now);
        }
        let leads = self.core.leading().map(incumbent_core::leader::Leading::term);
        if self.placing.as_ref().map(Placing::term) != leads {
            self.placing = leads.map(Placing::new);
        }
        while let Some(lease) = self.core.moved() {
            self.duty_changed(now, &lease);
        }
        self.pull_events();
        if std::mem::take(&mut self.lists_gone) {
            self.worker.list_again(now);
        }
    }

    fn pull_events(&mut self) {
        while let Some(event) = self.core.next_event() {
            if let ElectionEvent::Viewed(view) = &event {
                let own = view.members.iter().find(|entry| Some(&entry.id) == self.core.member());
                self.lists_gone |= own.is_some_and(|entry| entry.missing);
            }
            self.events.push_back(DutyEvent::Core(event));
        }
    }

    fn say(&mut self, event: DutyEvent) {
        self.pull_events();
        self.events.push_back(event);
    }

    fn send(
        &mut self,
        now: Moment,
        lane: Lane,
        writes: Vec<Write>,
        reads: Vec<Read>,
        errand: Errand,
    ) {
        let id = self.core.errand(now, lane, writes, reads);
        self.errands.insert(id, errand);
    }

    fn replied(&mut self, now: Moment, brought: Brought) {
        let Some(errand) = self.errands.remove(&brought.id) else { return };
        let answer = brought.answer.as_ref().map_err(|kind| *kind);
        let current = brought.member.as_ref() == self.core.incarnation();
        match errand {
            Errand::Catalog(hash) => self.cataloged(now, &hash, first_write(answer)),
            // The rest was sent by one incarnation and concerns no other.
            _ if !current => {}
            Errand::Report => {
                self.worker.report.wrote(now, first_write(answer), &mut self.random);
            }
            Errand::ReportRead => {
                self.worker.report.read(now, first_read(answer), &mut self.random);
            }
            Errand::PlaceRead => self.placing_read(now, answer),
            Errand::PlaceWrite(subject) => {
                if let Some(placing) = &mut self.placing {
                    placing.wrote(now, &subject, first_write(answer));
                }
            }
        }
    }
}
