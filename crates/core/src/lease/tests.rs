//! What a lease makes of what is read and written.

use super::*;
use crate::records::Holder;
use crate::store::{Key, Record};

const TTL: Duration = Duration::from_secs(10);

fn at(millis: u64) -> Moment {
    Moment::from_nanos(millis * 1_000_000)
}

fn name() -> LeaseName {
    LeaseName::new("any").unwrap()
}

fn held(term: u64, member: &str) -> Found {
    let holder = Holder {
        member: MemberId::new(member),
        node: member.to_owned(),
        address: None,
        mark: None,
        unproven: false,
        due_ms: 0,
    };
    let record = LeaseRecord { term, holder: Some(holder), ..LeaseRecord::fresh(&name()) };
    Found::Record(Record {
        key: Key::new("lease/any"),
        value: record.bytes(),
        version: Version::new(&format!("{term} {member}")),
        age: None,
    })
}

fn until(lease: &Lease) -> Option<Moment> {
    lease.loss.as_ref().map(|loss| loss.until)
}

#[test]
fn what_is_lost_twice_is_waited_for_twice() {
    let mut lease = Lease::new(name(), at(0));
    lease.observe(&held(3, "a"), at(0), None, TTL, Planted::default()).unwrap();
    lease.observe(&Found::Absent, at(1_000), None, TTL, Planted::default()).unwrap();
    assert_eq!((until(&lease), lease.is_marked()), (Some(at(11_000)), false));
    lease.wrote(LeaseRecord::fresh(&name()), Version::new("mark"), at(1_100), Planted::default());
    lease.observe(&Found::Unchanged, at(5_000), None, TTL, Planted::default()).unwrap();
    assert_eq!((until(&lease), lease.is_marked()), (Some(at(11_100)), true));
    assert_eq!(lease.next_term(0, Planted::default()), 1_003);
    lease.observe(&Found::Absent, at(9_000), None, TTL, Planted::default()).unwrap();
    assert_eq!((until(&lease), lease.is_marked()), (Some(at(19_000)), false), "once more");
    assert_eq!(lease.next_term(0, Planted::default()), 2_003, "above who may have been elected");
    assert_eq!(lease.next_term(4, Planted::default()), 4, "the clock is above all that was seen");
}

#[test]
fn what_is_lost_after_another_has_written_is_lost_once_more() {
    let marked = |version: &str| {
        let record = LeaseRecord { lost: 3, ..LeaseRecord::fresh(&name()) };
        let (key, value) = (Key::new("lease/any"), record.bytes());
        Found::Record(Record { key, value, version: Version::new(version), age: None })
    };
    let mut lease = Lease::new(name(), at(0));
    lease.observe(&held(3, "a"), at(0), None, TTL, Planted::default()).unwrap();
    lease.observe(&marked("of another"), at(1_000), None, TTL, Planted::default()).unwrap();
    assert_eq!(lease.next_term(0, Planted::default()), 1_003);
    lease.observe(&Found::Absent, at(2_000), None, TTL, Planted::default()).unwrap();
    assert_eq!(until(&lease), Some(at(12_000)), "waiting begins anew");
    assert_eq!(lease.next_term(0, Planted::default()), 2_003, "and what was taken is lost too");

    // Who saw no more than what is lost knows that it was there.
    let mut newcomer = Lease::new(name(), at(0));
    newcomer.observe(&marked("of another"), at(0), None, TTL, Planted::default()).unwrap();
    assert_eq!((until(&newcomer), newcomer.next_term(0, Planted::default())), (None, 1_003));
    newcomer.observe(&Found::Absent, at(1_000), None, TTL, Planted::default()).unwrap();
    assert_eq!(
        (until(&newcomer), newcomer.next_term(0, Planted::default())),
        (Some(at(11_000)), 1_003)
    );
}

#[test]
fn what_others_lead_on_after_a_loss_follows_the_ordinary_rules_after_a_ttl() {
    let mut lease = Lease::new(name(), at(0));
    lease.observe(&held(3, "a"), at(0), None, TTL, Planted::default()).unwrap();
    lease.observe(&Found::Absent, at(1_000), None, TTL, Planted::default()).unwrap();
    assert_eq!(lease.lost_holder(), Some(&MemberId::new("a")));
    lease.observe(&held(1, "newcomer"), at(2_000), None, TTL, Planted::default()).unwrap();
    assert_eq!((until(&lease), lease.lost_holder()), (Some(at(12_000)), None));
    for second in [6, 10, 12] {
        lease
            .observe(&Found::Unchanged, at(second * 1_000), None, TTL, Planted::default())
            .unwrap();
    }
    assert_eq!(until(&lease), None);
    assert_eq!(lease.next_term(0, Planted::default()), 1_003, "above what was lost");
    lease.observe(&held(2, "another"), at(13_000), None, TTL, Planted::default()).unwrap();
    assert_eq!(until(&lease), None);
}

#[test]
fn what_is_written_down_in_the_term_that_was_lost_ends_no_wait() {
    let (lost, own) = (MemberId::new("lost"), MemberId::new("own"));
    let mut lease = Lease::new(name(), at(0));
    lease.observe(&held(2, "lost"), at(0), Some(&own), TTL, Planted::default()).unwrap();
    lease.observe(&held(1, "former"), at(1_000), Some(&own), TTL, Planted::default()).unwrap();
    assert_eq!((until(&lease), lease.lost_holder()), (Some(at(11_000)), Some(&lost)));
    // A take of our own lands that was on its way, in the term that is lost.
    lease.observe(&held(2, "own"), at(2_000), Some(&own), TTL, Planted::default()).unwrap();
    assert_eq!((until(&lease), lease.lost_holder()), (Some(at(12_000)), Some(&lost)));
    let mut mark = lease.record();
    (mark.holder, mark.lost) = (None, 2);
    lease.wrote(mark.clone(), Version::new("mark"), at(2_100), Planted::default());
    assert_eq!((until(&lease), lease.lost_holder()), (Some(at(12_100)), Some(&lost)));
    assert!(lease.next_term(0, Planted::default()) > 1_000);

    // Another that knew the lost holder waits for it too; who didn't goes on far above.
    let read = |lease: &mut Lease, now| {
        let (key, value) = (Key::new("lease/any"), mark.bytes());
        let found = Found::Record(Record { key, value, version: Version::new("mark"), age: None });
        lease.observe(&found, at(now), None, TTL, Planted::default()).unwrap();
    };
    let mut other = Lease::new(name(), at(0));
    other.observe(&held(2, "lost"), at(0), None, TTL, Planted::default()).unwrap();
    other.observe(&held(1, "former"), at(1_000), None, TTL, Planted::default()).unwrap();
    other.observe(&held(2, "own"), at(2_000), None, TTL, Planted::default()).unwrap();
    assert_eq!(other.lost_holder(), None, "one that could not know might lead on");
    read(&mut other, 3_000);
    assert_eq!(other.lost_holder(), Some(&lost), "but nobody does");
    let mut newcomer = Lease::new(name(), at(0));
    read(&mut newcomer, 3_000);
    assert!(newcomer.next_term(0, Planted::default()) > 1_000);
}

#[test]
fn a_lost_lease_is_waited_for_on_the_very_version_that_a_take_replaces() {
    let marked = |version: &str| {
        let record = LeaseRecord { lost: 6, ..LeaseRecord::fresh(&name()) };
        let (key, value) = (Key::new("lease/any"), record.bytes());
        Found::Record(Record { key, value, version: Version::new(version), age: None })
    };
    let mut lease = Lease::new(name(), at(0));
    let read = |lease: &mut Lease, found: &Found, now| {
        lease.observe(found, at(now), None, TTL, Planted::default()).unwrap();
        until(lease)
    };
    read(&mut lease, &held(6, "a"), 0);
    assert_eq!(read(&mut lease, &Found::Absent, 1_000), Some(at(11_000)));
    assert_eq!(read(&mut lease, &marked("mark"), 2_000), Some(at(12_000)));
    assert!(lease.is_marked(), "another has written it down, and that is enough");
    assert_eq!(read(&mut lease, &Found::Unchanged, 4_500), Some(at(12_000)), "the same");
    // Somebody took it, the store lost that too, and another that missed it wrote the same again.
    assert_eq!(read(&mut lease, &marked("second mark"), 5_000), Some(at(15_000)));
    assert_eq!(read(&mut lease, &Found::Unchanged, 9_000), Some(at(15_000)), "once");
    assert!(lease.is_marked() && lease.next_term(0, Planted::default()) > 2_000);
    // The store went back to the first mark.
    assert_eq!(read(&mut lease, &marked("mark"), 10_000), Some(at(20_000)));
}

#[test]
fn what_is_taken_over_what_others_have_written_down_follows_a_loss() {
    let record = LeaseRecord { lost: 6, ..LeaseRecord::fresh(&name()) };
    let (key, value) = (Key::new("lease/any"), record.bytes());
    let found = Found::Record(Record { key, value, version: Version::new("mark"), age: None });
    let mut newcomer = Lease::new(name(), at(0));
    newcomer.observe(&Found::Absent, at(0), None, TTL, Planted::default()).unwrap();
    assert!(!newcomer.follows_loss(), "nothing ever was there");
    newcomer.observe(&found, at(1), None, TTL, Planted::default()).unwrap();
    assert!(newcomer.loss.is_none() && newcomer.follows_loss());
}
