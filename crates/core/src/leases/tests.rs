//! What leases do with one member, and with what a store answers.

use std::time::Duration;

use super::*;
use crate::mutant::Planted;
use crate::outbox::Request;
use crate::records::{Content, Holder, Profile};
use crate::settings::Timing;
use crate::store::{ErrorKind, Expect, Found, Outcome, Put, Record, Reply, Version, Write};

const TTL: Duration = Duration::from_secs(10);

/// One node that is alive, and what it has sent.
struct Alone {
    now: Moment,
    leases: Leases,
    config: Config,
    member: Membership,
    random: Random,
    outbox: Outbox,
    leaving: bool,
}

fn name() -> LeaseName {
    LeaseName::new("throne").unwrap()
}

fn shown(record: &LeaseRecord, version: &str) -> Found {
    let (key, value) = (keys::lease(&name()), record.bytes());
    Found::Record(Record { key, value, version: Version::new(version), age: None })
}

impl Alone {
    /// A member that wants the lease.
    fn candidate() -> Self {
        let (now, mut random) = (Moment::START + TTL, Random::new(1));
        let timing = Timing::for_ttl(TTL);
        let planted = Planted::default();
        let mut member = Membership::new(MemberId::draw(&mut random), &timing, now);
        member.step(now, &timing, &mut random, planted);
        let applied = Outcome::Applied(Version::new("1"));
        assert!(member.created(now, Ok(&applied), &timing, planted));
        let config = Config {
            profile: Profile::named("heir"),
            timing,
            push: true,
            max_value: 1 << 20,
            membership: false,
            planted,
        };
        let outbox = Outbox::new(1, TTL / 3);
        let leases = Leases::new();
        let mut alone = Self { now, leases, config, member, random, outbox, leaving: false };
        alone.does(|leases, owner| leases.campaign(now, name(), Stance::default(), owner));
        alone
    }

    fn does<T>(&mut self, act: impl FnOnce(&mut Leases, &mut Owner<'_>) -> T) -> T {
        let mut owner = Owner {
            config: &self.config,
            member: Some(&mut self.member),
            preferred: &Vec::new(),
            wall_ms: 0,
            leaving: self.leaving,
            random: &mut self.random,
            outbox: &mut self.outbox,
        };
        act(&mut self.leases, &mut owner)
    }

    /// The only request that is sent when all that is due by then is done.
    fn sends(&mut self, after: Duration) -> Request {
        self.now = self.now + after;
        let now = self.now;
        self.does(|leases, owner| leases.poll(now, owner));
        let request = self.outbox.next_request().unwrap();
        assert_eq!(self.outbox.next_request(), None);
        request
    }

    /// The lease as this request writes it.
    fn writes(request: &Request) -> (&Put, LeaseRecord) {
        let [Write::Put(put)] = &request.exchange.writes[..] else { panic!("{request:?}") };
        (put, serde_json::from_slice(&put.value).unwrap())
    }

    fn answer(&mut self, request: &Request, answer: Result<Reply, ErrorKind>) {
        let pending = self.outbox.take(request.id).unwrap();
        let Purpose::Lease(errand) = pending.purpose else { panic!("{request:?}") };
        let (now, answer) = (self.now, answer.as_ref().map_err(|kind| *kind));
        self.does(|leases, owner| {
            leases.replied(now, pending.sent, *errand, true, answer, owner);
        });
    }

    fn shows(&mut self, request: &Request, found: Found) {
        self.answer(request, Ok(Reply { writes: Vec::new(), reads: vec![found] }));
    }

    fn settles(&mut self, request: &Request, outcome: Outcome) {
        self.answer(request, Ok(Reply { writes: vec![outcome], reads: Vec::new() }));
    }

    /// Looks, finds that nobody ever had the lease, and takes it.
    fn takes(&mut self) -> Request {
        let look = self.sends(Duration::ZERO);
        self.shows(&look, Found::Absent);
        self.sends(Duration::ZERO)
    }

    fn elected() -> Self {
        let mut alone = Self::candidate();
        let take = alone.takes();
        alone.settles(&take, Outcome::Applied(Version::new("2")));
        assert_eq!(alone.leases.held(&name()), Some(1));
        alone
    }
}

#[test]
fn a_free_lease_is_read_taken_and_held_once_the_take_is_applied() {
    let mut alone = Alone::candidate();
    let take = alone.takes();
    let (put, record) = Alone::writes(&take);
    assert_eq!((&put.expect, record.term), (&Expect::Absent, 1));
    assert_eq!(record.holder.map(|holder| holder.member), Some(alone.member.id.clone()));
    assert_eq!(alone.leases.held(&name()), None, "it isn't known yet");
    alone.settles(&take, Outcome::Applied(Version::new("2")));
    assert_eq!(alone.leases.held(&name()), Some(1));
    assert!(alone.leases.take_won() && !alone.leases.take_won());
    assert!(alone.leases.works_for(&alone.member.id), "its work may run from now on");
    assert_eq!(alone.leases.wake_at(), Moment::NEVER, "nothing is read of what is held");
}

#[test]
fn a_refused_take_is_followed_by_a_look_and_by_waiting_for_who_was_first() {
    let mut alone = Alone::candidate();
    let take = alone.takes();
    alone.settles(&take, Outcome::Refused);
    assert_eq!(alone.leases.held(&name()), None);
    let look = alone.sends(Duration::ZERO);
    alone.shows(&look, shown(&of_another(), "2"));
    let look = alone.sends(Duration::ZERO);
    let keys: Vec<_> = look.exchange.reads.iter().map(|read| format!("{read:?}")).collect();
    assert!(keys.len() == 2 && keys[1].contains("member/first"), "{keys:?}");
}

#[test]
fn a_lease_is_freed_after_its_work_has_stopped_and_stood_back_from() {
    let mut alone = Alone::elected();
    let now = alone.now;
    alone.does(|leases, owner| leases.stop(now, &name(), LossCause::Resigned, None, owner));
    assert_eq!((alone.leases.held(&name()), alone.leases.term(&name())), (None, Some(1)));
    alone.does(|leases, owner| leases.poll(now, owner));
    assert_eq!(alone.outbox.next_request(), None, "its work still runs");
    alone.does(|leases, owner| leases.stopped(now, &name(), 1, owner.outbox));
    let free = alone.sends(Duration::ZERO);
    let (put, record) = Alone::writes(&free);
    assert_eq!(put.expect, Expect::Version(Version::new("2")));
    assert_eq!((record.term, record.holder), (1, None));
    alone.settles(&free, Outcome::Applied(Version::new("3")));
    assert!(!alone.leases.works_for(&alone.member.id));
    alone.does(|leases, owner| leases.poll(now, owner));
    assert_eq!(alone.outbox.next_request(), None, "others may have it first");
    assert!(alone.leases.wake_at() >= now + TTL / 3, "and hints tell of them sooner");
}

#[test]
fn a_take_in_doubt_is_adopted_if_a_read_shows_that_it_landed() {
    let mut alone = Alone::candidate();
    let take = alone.takes();
    let (_, record) = Alone::writes(&take);
    alone.answer(&take, Err(ErrorKind::Unknown));
    assert_eq!(alone.leases.held(&name()), None);
    let look = alone.sends(Duration::from_secs(2));
    alone.shows(&look, shown(&record, "2"));
    let now = alone.now;
    alone.does(|leases, owner| leases.poll(now, owner));
    assert_eq!((alone.leases.held(&name()), alone.outbox.next_request()), (Some(1), None));

    // The same record without that mark may be of a term that was over long ago.
    let mut alone = Alone::candidate();
    let look = alone.sends(Duration::ZERO);
    let other = record.holder.clone().map(|holder| Holder {
        member: alone.member.id.clone(),
        mark: Some("another".to_owned()),
        ..holder
    });
    alone.shows(&look, shown(&LeaseRecord { holder: other, ..record.clone() }, "2"));
    let free = alone.sends(Duration::ZERO);
    assert_eq!(Alone::writes(&free).1.holder, None);
}

/// A lease of another's, as it is read.
fn of_another() -> LeaseRecord {
    let holder = Holder {
        member: MemberId::new("first"),
        node: "first".to_owned(),
        address: None,
        mark: None,
        unproven: false,
        due_ms: 0,
    };
    LeaseRecord { term: 1, holder: Some(holder), ..LeaseRecord::fresh(&name()) }
}

/// What its holder says with this beat of leases that it freed.
fn beat_of_another(beat: u64, freed: u64) -> Found {
    let joining = MemberRecord::joining(MemberId::new("first"), TTL, TTL / 3);
    let record = MemberRecord { beat, freed, ..joining };
    let (key, value) = (keys::member(&record.id), record.bytes());
    let version = Version::new(&format!("first.{beat}"));
    Found::Record(Record { key, value, version, age: None })
}

fn keys_read(request: &Request) -> Vec<String> {
    let key = |read: &Read| match read {
        Read::Key { key, .. } | Read::Prefix(key) => key.as_str().to_owned(),
    };
    request.exchange.reads.iter().map(key).collect()
}

/// Waits for a lease of another's, of which only the holder is read.
fn covered() -> Alone {
    let mut alone = Alone::candidate();
    let look = alone.sends(Duration::ZERO);
    alone.shows(&look, shown(&of_another(), "2"));
    for (beat, after) in [(1, Duration::ZERO), (2, TTL * 2 / 5)] {
        let look = alone.sends(after);
        assert_eq!(keys_read(&look), ["lease/throne", "member/first"]);
        let reads = vec![Found::Unchanged, beat_of_another(beat, 1)];
        alone.answer(&look, Ok(Reply { writes: Vec::new(), reads }));
    }
    alone
}

#[test]
fn o63_what_made_a_lease_be_read_is_not_forgotten_if_the_read_fails() {
    for hinted in [false, true] {
        let mut alone = covered();
        let seen = alone.leases.leases[&name()].seen;
        let now = alone.now;
        if hinted {
            alone.does(|leases, owner| leases.hint(now, owner));
        } else {
            let look = alone.sends(TTL * 2 / 5);
            assert_eq!(keys_read(&look), ["member/first"], "its holder has freed nothing");
            alone.shows(&look, beat_of_another(3, 2));
        }
        for _ in 0..3 {
            let look = alone.sends(Duration::from_millis(300));
            assert_eq!(keys_read(&look), ["lease/throne", "member/first"], "hint: {hinted}");
            let own = alone.member.id.clone();
            let sight = alone.leases.sighting(&name(), Some(&own), |_| false, &alone.config);
            let shown = if hinted { now } else { seen };
            assert!(sight.unwrap().seen <= shown, "nothing was read of the lease since");
            alone.answer(&look, Err(ErrorKind::Unavailable));
        }
    }
}

#[test]
fn o63_a_mark_that_takes_our_name_away_counts_as_freed_and_no_other_does() {
    for ours in [true, false] {
        let mut alone = Alone::candidate();
        let look = alone.sends(Duration::ZERO);
        alone.shows(&look, shown(&LeaseRecord { term: 6, ..of_another() }, "6"));
        let mut lost = LeaseRecord { term: 5, ..of_another() };
        if let Some(holder) = lost.holder.as_mut().filter(|_| ours) {
            holder.member = alone.member.id.clone();
        }
        let look = alone.sends(Duration::ZERO);
        let reads = vec![shown(&lost, "5"), beat_of_another(1, 1)];
        alone.answer(&look, Ok(Reply { writes: Vec::new(), reads }));
        let before = alone.member.freed();
        let mark = alone.sends(Duration::from_secs(1));
        let (_, record) = Alone::writes(&mark);
        assert_eq!((record.term, record.lost, record.holder.is_none()), (5, 6, ours));
        alone.settles(&mark, Outcome::Applied(Version::new("7")));
        assert_eq!(alone.member.freed() - before, u64::from(ours));
    }
}

#[test]
fn o63_what_a_leaver_frees_survives_a_crash_unless_it_was_the_last() {
    let mut alone = Alone::elected();
    let other = LeaseName::new("other").unwrap();
    let now = alone.now;
    alone.does(|leases, owner| leases.campaign(now, other.clone(), Stance::default(), owner));
    let look = alone.sends(Duration::ZERO);
    alone.shows(&look, Found::Absent);
    let take = alone.sends(Duration::ZERO);
    alone.settles(&take, Outcome::Applied(Version::new("2")));
    assert_eq!(alone.leases.held(&other), Some(1));
    alone.leaving = true;
    for (lease, durable) in [(name(), true), (other, false)] {
        alone.does(|leases, owner| {
            leases.withdraw(now, &lease, LossCause::Leaving, None, owner);
            leases.stopped(now, &lease, 1, owner.outbox);
        });
        let free = alone.sends(Duration::ZERO);
        assert_eq!(Alone::writes(&free).0.durable, durable, "{lease}");
        alone.settles(&free, Outcome::Applied(Version::new("3")));
    }
}
