//! A node: one member after another, and the leases that hang from it. It wires the machines together:
//! which is asked when, which reply is whose, and what one does because of another.
//!
//! No I/O and no clock: the driver says what time it is, sends the [`Request`]s, brings back
//! the replies and acts on the [`ElectionEvent`]s. Everything that could go wrong in a protocol is in
//! here, and the simulator runs this very code.

mod api;
mod event;
mod reads;
mod replies;
mod rider;
mod standing;

use crate::farewell::Farewells;
use crate::introduction::Introduction;
use crate::keys;
use crate::leader::Leading;
use crate::leases::{Leases, Owner};
use crate::member::{Ending, MemberStep, Membership};
use crate::mutant::{Mutant, Planted, fault};
use crate::names::{LeaseName, MemberId};
use crate::outbox::{Outbox, Purpose, RequestId};
use crate::random::Random;
use crate::records::{Board, Content, LeaseRecord, MemberRecord, Profile, View};
use crate::settings::Timing;
use crate::store::{Expect, Key, Lane, Read, Version, Write};
use crate::sweep::Sweep;
use crate::time::Moment;
use rider::Rider;

pub use api::Sighting;
pub use event::{ElectionEvent, LossCause};
pub(crate) use reads::Followed;
pub use rider::Brought;
pub(crate) use standing::PreferredMembers;

/// What a node is, fixed for its life.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Config {
    /// What it says about itself; its name is the node's.
    pub profile: Profile,
    /// The times it runs by.
    pub timing: Timing,
    /// Whether the store pushes hints.
    pub push: bool,
    /// The largest value that the store takes, in bytes. Records that could be larger are cut, and
    /// say so.
    pub max_value: usize,
    /// Whether it follows the view, and the lease of the cluster's leader; for that it stands as its
    /// profile says.
    pub membership: bool,
    /// The mistake to make, if any.
    pub planted: Planted,
}

/// One node of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Elector {
    config: Config,
    random: Random,
    outbox: Outbox,
    /// Wall-clock milliseconds, for display alone.
    wall_ms: u64,

    member: Option<Membership>,
    introduction: Introduction,
    rider: Rider,
    farewells: Farewells,
    joins: crate::backoff::Backoff,
    leaving: bool,

    leases: Leases,
    leader: Option<Leading>,
    sweep: Sweep,
    index: reads::Index,
}

impl Elector {
    /// A node that joins at once.
    #[must_use]
    pub fn new(config: Config, seed: u64, now: Moment) -> Self {
        let max_value = fault!(config.planted, RecordsUnbounded => usize::MAX, config.max_value);
        let config = Config { max_value, ..config };
        let mut random = Random::new(seed);
        let writer = random.number();
        let id = MemberId::draw(&mut random);
        let member = Membership::new(id, &config.timing, now);
        let ttl = config.timing.ttl;
        let mut outbox = Outbox::new(writer, config.timing.request);
        outbox.sends_for(Some(&member.id));
        let introduction = Introduction::new(&config.timing);
        let mut node = Self {
            config,
            random,
            outbox,
            wall_ms: 0,
            member: Some(member),
            introduction,
            rider: Rider::default(),
            farewells: Farewells::default(),
            joins: crate::backoff::Backoff::new(ttl / 60, ttl / 8),
            leaving: false,
            leases: Leases::new(),
            leader: None,
            sweep: Sweep::new(Random::new(writer)),
            index: reads::Index::default(),
        };
        if node.config.membership {
            node.stand_for_cluster(now);
        }
        node
    }

    /// Does all that is due. To be called after every input and at [`Self::wake_at`].
    pub fn poll(&mut self, now: Moment) {
        self.time_out(now);
        self.drive_member(now);
        self.farewells.poll(now, &mut self.outbox);
        self.with_leases(|leases, owner| leases.poll(now, owner));
        // An incarnation without trust has ended by now, and its leading with it.
        if let Some(leader) = &mut self.leader {
            leader.poll(now, &self.config, &mut self.outbox);
        }
        self.drive_index(now);
        self.drive_sweep(now);
        self.finish_leaving(now);
    }

    /// When [`Self::poll`] has something to do by itself.
    #[must_use]
    pub fn wake_at(&self) -> Moment {
        let deadline = Some(self.outbox.wake_at());
        let farewell = Some(self.farewells.wake_at());
        let leases = Some(self.leases.wake_at());
        let leader = self.leader.as_ref().map(Leading::wake_at);
        let index = self.index.wake_at();
        let alive = self.own_id().is_some();
        let profile = alive.then(|| self.introduction.wake_at());
        let sweep = (alive && !self.leaving).then(|| self.sweep.wake_at());
        let member = self.member.as_ref().map(|member| member.wake_at(self.config.planted));
        [deadline, farewell, leases, leader, index, sweep, profile, member]
            .into_iter()
            .flatten()
            .min()
            .unwrap_or(Moment::NEVER)
    }

    fn drive_member(&mut self, now: Moment) {
        // A step may end one incarnation, and the next has a step of its own.
        for _ in 0..2 {
            let planted = self.config.planted;
            let Some(member) = &mut self.member else { return };
            let Some(step) = member.step(now, &self.config.timing, &mut self.random, planted)
            else {
                break;
            };
            let key = keys::member(&member.id);
            match step {
                MemberStep::Create(record) => {
                    let put = self.outbox.put(key, Expect::Absent, record.bytes(), true);
                    self.outbox.send(now, Lane::Beat, vec![put], Vec::new(), Purpose::Create);
                }
                MemberStep::Beat(record, expect) => {
                    let hint = member.take_urgency();
                    let put = self.outbox.put(key, expect, record.bytes(), hint);
                    let mut reads = Vec::new();
                    if self.rider.along.is_some() || self.index.is_due(now, &self.config) {
                        reads.push(self.index.board_read(now));
                        reads.extend(self.rider.along.clone());
                    }
                    self.outbox.send(now, Lane::Beat, vec![put], reads, Purpose::Beat);
                }
                MemberStep::ReadBack => {
                    let reads = vec![Read::Key { key, unless: None }];
                    self.outbox.ask(now, Lane::Beat, reads, Purpose::ReadBack);
                }
                MemberStep::End(ending) => self.end(now, ending),
            }
        }
        self.drive_profile(now);
    }

    /// Writes what this member says about itself, after the lists that it names.
    fn drive_profile(&mut self, now: Moment) {
        let Some(id) = self.own_id().cloned().filter(|_| self.trusted(now)) else { return };
        if self.introduction.is_due() && !self.rider.unlisted {
            let families = self.rider.families.clone();
            let profile = Profile { families, ..self.config.profile.clone() };
            self.introduction.say(profile, self.wall_ms);
        }
        self.introduction.poll(now, &id, &mut self.outbox);
    }

    /// Ends this incarnation: all trust is over now.
    fn end(&mut self, now: Moment, why: Ending) {
        let Some(member) = self.member.take() else { return };
        self.outbox.sends_for(None);
        self.introduction.end(&self.config.timing);
        self.rider.end();
        self.with_leases(|leases, owner| leases.end(now, why, owner));
        self.outbox.say(ElectionEvent::Ended { member: member.id.clone(), why });
        if let Some(version) = member.version() {
            let record = member.closing(&self.config.timing);
            let give_up = now + self.config.timing.ttl * 2;
            self.farewells.add(record, version.clone(), give_up);
        }
        self.release_farewells(now);
        if !self.leaving {
            self.join_again(now, member.id);
        }
    }

    fn join_again(&mut self, now: Moment, former: MemberId) {
        let drawn = MemberId::draw(&mut self.random);
        let id = fault!(self.config.planted, MemberIdReused => former, drawn);
        let at = now + self.joins.pause(&mut self.random);
        self.outbox.sends_for(Some(&id));
        self.member = Some(Membership::new(id, &self.config.timing, at));
    }

    /// Lets former incarnations go whose work has stopped.
    fn release_farewells(&mut self, now: Moment) {
        let early = self.config.planted.is(Mutant::LeftBeforeStopped);
        let leases = &self.leases;
        self.farewells.release(now, |id| leases.works_for(id) && !early);
    }

    /// Work → leases → member: the last step of leaving, once all work has stopped.
    fn finish_leaving(&mut self, now: Moment) {
        if !self.leaving {
            return;
        }
        if let Some(member) = &self.member {
            let works = self.leases.works_for(&member.id);
            let early = self.config.planted.is(Mutant::LeftBeforeStopped);
            let creating = !member.is_alive() && self.outbox.awaits(|it| *it == Purpose::Create);
            if creating || member.is_waiting() || (works && !early) {
                return;
            }
            self.end(now, Ending::Left);
            self.farewells.poll(now, &mut self.outbox);
        }
        if self.farewells.is_empty() && !self.outbox.has_said(&ElectionEvent::Left) {
            self.leaving = false;
            self.leases.clear();
            self.outbox.say(ElectionEvent::Left);
        }
    }

    /// A write with a stamp of its own.
    pub fn put(&mut self, key: Key, expect: Expect, value: Vec<u8>, hint: bool) -> Write {
        self.outbox.put(key, expect, value, hint)
    }

    /// Has something done about leases, and follows what comes of it: whether this node leads the
    /// cluster, and what operators ask of terms that only now are ours.
    fn with_leases<T>(&mut self, act: impl FnOnce(&mut Leases, &mut Owner<'_>) -> T) -> T {
        let mut owner = Owner {
            config: &self.config,
            member: self.member.as_mut(),
            preferred: &self.index.preferred,
            wall_ms: self.wall_ms,
            leaving: self.leaving,
            random: &mut self.random,
            outbox: &mut self.outbox,
        };
        let done = act(&mut self.leases, &mut owner);
        if self.leader.as_ref().map(Leading::term) != self.leases.leads() {
            self.leader = self.leases.leads().map(Leading::new);
        }
        if self.leases.take_won() {
            self.index.reread_intents();
        }
        done
    }

    fn own_id(&self) -> Option<&MemberId> {
        self.member.as_ref().filter(|member| member.is_alive()).map(|member| &member.id)
    }

    fn trusted(&self, now: Moment) -> bool {
        self.member.as_ref().is_some_and(|member| member.is_trusted(now))
    }
}
