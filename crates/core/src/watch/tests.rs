//! What a watch makes of what it reads.

use super::*;
use crate::names::MemberId;
use crate::store::{Key, Record};

const TTL: Duration = Duration::from_secs(15);
const DUE: Duration = Duration::from_secs(5);

fn at(millis: u64) -> Moment {
    Moment::from_nanos(millis * 1_000_000)
}

fn beat(number: u64, state: MemberState) -> Found {
    let mut record = MemberRecord::joining(MemberId::new("m"), TTL, DUE).closed(state);
    record.beat = number;
    Found::Record(Record {
        key: Key::new("member/m"),
        value: record.bytes(),
        version: Version::new(&number.to_string()),
        age: Some(Duration::from_secs(3600)),
    })
}

fn watching(reads: &[(u64, u64, Found)]) -> Watch {
    let mut watch = Watch::new();
    for (sent, received, found) in reads {
        watch.observe(at(*sent), at(*received), found, Planted::default());
    }
    watch
}

#[test]
fn expiry_counts_from_the_first_reply_that_showed_the_version() {
    let alive = MemberState::Alive;
    let watch = watching(&[
        (0, 100, beat(1, alive)),
        (3000, 3010, beat(1, alive)),
        (4000, 4010, Found::Unchanged),
    ]);
    let verdict = watch.verdict(TTL, Planted::default());
    assert_eq!(verdict, Verdict::AliveUntil(at(15_100)), "nor does the age of an hour matter");
}

#[test]
fn eviction_frees_a_ttl_after_it_was_seen() {
    let watch = watching(&[(0, 100, beat(1, MemberState::Evicted))]);
    assert_eq!(watch.verdict(TTL, Planted::default()), Verdict::EvictedUntil(at(15_100)));
}

#[test]
fn an_eviction_counts_once_a_read_at_its_end_shows_it() {
    let evicted = beat(1, MemberState::Evicted);
    let mut watch = watching(&[(0, 100, evicted), (14_000, 14_010, Found::Unchanged)]);
    assert!(!watch.is_read_since(at(15_100), Planted::default()));
    let mut random = Random::new(1);
    assert_eq!(watch.look_at(at(14_500), true, &mut random), at(15_100), "read just then");
    let mut lives = watch.clone();
    watch.observe(at(15_100), at(15_110), &Found::Absent, Planted::default());
    assert!(watch.is_read_since(at(15_100), Planted::default()), "it was deleted since");
    lives.observe(at(15_100), at(15_110), &beat(2, MemberState::Alive), Planted::default());
    assert_eq!(lives.verdict(TTL, Planted::default()), Verdict::AliveUntil(at(30_110)));
}

#[test]
fn who_is_proven_dead_may_be_closed_at_once() {
    let mut watch = watching(&[(0, 100, beat(1, MemberState::Alive))]);
    watch.proven_dead();
    assert_eq!(watch.verdict(TTL, Planted::default()), Verdict::AliveUntil(Moment::START));
    let mut watch = watching(&[(0, 100, beat(1, MemberState::Evicted))]);
    watch.proven_dead();
    let evicted = Verdict::Closed(MemberState::Evicted);
    assert_eq!(watch.verdict(TTL, Planted::default()), evicted);
    let mut watch = watching(&[]);
    watch.proven_dead();
    assert_eq!(watch.verdict(TTL, Planted::default()), Verdict::Unread, "read it first");
}

fn garbage() -> Found {
    Found::Record(Record {
        key: Key::new("member/m"),
        value: b"{\"format\":1".to_vec(),
        version: Version::new("garbage"),
        age: None,
    })
}

#[test]
fn what_cannot_be_read_is_neither_absent_nor_closed() {
    let watch = watching(&[(0, 1, garbage())]);
    assert_eq!(watch.verdict(TTL, Planted::default()), Verdict::Unreadable);
    let watch = watching(&[(0, 1, Found::Absent)]);
    assert_eq!(watch.verdict(TTL, Planted::default()), Verdict::Absent);
}

#[test]
fn what_was_there_and_is_gone_is_waited_for_unless_it_was_closed() {
    let gone = |before: Found| watching(&[(0, 100, before), (5000, 5010, Found::Absent)]);
    let verdict = |watch: &Watch| watch.verdict(TTL, Planted::default());
    let alive = gone(beat(1, MemberState::Alive));
    assert_eq!(verdict(&alive), Verdict::Vanished, "the store forgot it");
    assert_eq!(alive.vanished(), Some(TTL));
    let evicted = gone(beat(1, MemberState::Evicted));
    assert_eq!(verdict(&evicted), Verdict::EvictedUntil(at(15_100)));
    let left = gone(beat(1, MemberState::Left));
    assert_eq!(verdict(&left), Verdict::Closed(MemberState::Left), "it was cleaned up");
    let alive = (0, 100, beat(1, MemberState::Alive));
    let damaged = [alive, (1000, 1010, garbage()), (2000, 2010, Found::Absent)];
    assert_eq!(verdict(&watching(&damaged)), Verdict::Vanished, "damaged first, then gone");
    let mut unseen = Watch::new();
    unseen.expect(TTL);
    unseen.observe(at(0), at(10), &Found::Absent, Planted::default());
    assert_eq!(verdict(&unseen), Verdict::Vanished, "it took a lease of late");
}

#[test]
fn each_beat_is_looked_for_when_it_is_due() {
    let alive = MemberState::Alive;
    let mut random = Random::new(1);
    // Beat 2 was written between the sends at 990 and its sight at 1000.
    let mut watch = watching(&[
        (0, 10, beat(1, alive)),
        (990, 995, Found::Unchanged),
        (998, 1000, beat(2, alive)),
    ]);
    let next = watch.look_at(at(1000), true, &mut random);
    assert!(next >= at(6000) && next <= at(6020), "{next:?}");
    // Not there: looked for again soon, then less often.
    watch.observe(at(6010), at(6011), &Found::Unchanged, Planted::default());
    let soon = watch.look_at(at(6011), true, &mut random);
    assert!(soon <= at(6011) + MISSED + Duration::from_millis(13), "{soon:?}");
    for second in 7..20 {
        watch.observe(at(second * 1000), at(second * 1000), &Found::Unchanged, Planted::default());
    }
    let later = watch.look_at(at(20_000), true, &mut random).since(at(20_000));
    assert!(later >= SLOWEST / 2 && later <= SLOWEST + Duration::from_millis(13), "{later:?}");
}

#[test]
fn a_wide_bracket_is_narrowed_by_one_probe() {
    let alive = MemberState::Alive;
    let seen = [
        (60_000, 60_010, beat(1, alive)),
        (63_000, 63_005, Found::Unchanged),
        (64_000, 64_010, beat(2, alive)),
    ];
    let mut watch = watching(&seen);
    let mut random = Random::new(1);
    let probe = watch.look_at(at(64_010), true, &mut random);
    assert!(probe > at(68_000) && probe < at(69_000), "{probe:?}");
    watch.observe(probe, probe, &Found::Unchanged, Planted::default());
    let next = watch.look_at(probe, true, &mut random);
    assert!(next >= at(69_010), "{next:?}");
}

#[test]
fn who_is_seen_for_the_first_time_is_looked_for_all_through_an_interval() {
    let mut watch = watching(&[(60_000, 60_010, beat(1, MemberState::Alive))]);
    let (mut random, mut now, mut looks) = (Random::new(1), at(60_010), 0);
    // The last look is for when the beat is due at the latest.
    while now < at(65_010) {
        let next = watch.look_at(now, true, &mut random);
        assert!(next.since(now) <= Duration::from_millis(1_300), "{:?}", next.since(now));
        watch.observe(next, next, &Found::Unchanged, Planted::default());
        (now, looks) = (next, looks + 1);
    }
    assert!((7..=9).contains(&looks), "{looks}");
}

#[test]
fn without_push_no_more_than_a_second_passes() {
    let mut watch = watching(&[(0, 10, beat(1, MemberState::Alive))]);
    assert!(watch.look_at(at(10), false, &mut Random::new(1)) <= at(1010));
}

#[test]
fn only_a_beat_that_was_written_since_shows_that_a_member_beats() {
    let alive = MemberState::Alive;
    let mut watch = watching(&[(0, 100, beat(1, alive))]);
    assert!(!watch.has_beaten_since(at(100)), "it was there before");
    watch.observe(at(4_000), at(4_010), &Found::Unchanged, Planted::default());
    watch.observe(at(5_000), at(5_010), &beat(2, alive), Planted::default());
    assert!(watch.has_beaten_since(at(4_000)) && !watch.has_beaten_since(at(4_001)));
    watch.observe(at(6_000), at(6_010), &beat(3, MemberState::Expired), Planted::default());
    assert!(!watch.has_beaten_since(at(4_001)), "to be closed is no beat");
}

#[test]
fn what_was_refused_is_read_at_once_and_once_for_each_beat() {
    let (mut random, alive, sound) = (Random::new(1), MemberState::Alive, Planted::default());
    let mut watch = watching(&[(0, 100, beat(1, alive))]);
    watch.proven_dead();
    assert_eq!(watch.close_refused(&mut random, sound), Duration::ZERO, "there is something new");
    assert_eq!(watch.verdict(TTL, sound), Verdict::Unread, "and nothing is concluded before");
    watch.observe(at(110), at(120), &Found::Unchanged, sound);
    let pause = watch.close_refused(&mut random, sound);
    assert!(pause >= pace::CONFLICT.0 / 2, "that read was stale: {pause:?}");
    watch.observe(at(140), at(150), &beat(3, alive), sound);
    assert_eq!(watch.close_refused(&mut random, sound), Duration::ZERO);
    // Reads that go back and forth are no news.
    for (number, found) in [beat(1, alive), beat(3, alive), beat(1, alive)].iter().enumerate() {
        let sent = 200 + number as u64 * 100;
        watch.observe(at(sent), at(sent + 10), found, sound);
        assert!(watch.close_refused(&mut random, sound) > Duration::ZERO, "{number}");
    }
}

#[test]
fn the_first_beat_of_a_new_holder_is_looked_for_when_it_was_foretold() {
    let (mut random, sound) = (Random::new(1), Planted::default());
    let mut watch = Watch::new();
    watch.foretell(at(1100));
    watch.observe(at(100), at(101), &beat(1, MemberState::Alive), sound);
    let mut look = |watch: &Watch, now| watch.clone().look_at(at(now), true, &mut random);
    let first = look(&watch, 101);
    assert!(first > at(1100) && first <= at(1112), "{first:?}");
    watch.observe(at(1105), at(1106), &Found::Unchanged, sound);
    let again = look(&watch, 1106);
    assert!(again <= at(1106 + 62), "it may be on its way: {again:?}");
    watch.observe(at(1160), at(1161), &beat(2, MemberState::Alive), sound);
    let next = look(&watch, 1161);
    assert!(next > at(1161 + 2000), "from now on its own word counts: {next:?}");
    // Of a member that was seen before, more is known than that.
    watch.foretell(at(1200));
    assert!(look(&watch, 1161) > at(1161 + 2000));
    // Nothing that it says puts a look off.
    let mut watch = Watch::new();
    watch.foretell(at(1_000_000));
    watch.observe(at(100), at(101), &beat(1, MemberState::Alive), sound);
    assert!(look(&watch, 101) <= at(5113));
}

/// Watches a holder for 2,000 beats whose clock runs so many millionths faster than ours; says how late a
/// beat was seen at worst, in milliseconds, and how many reads that took for each.
fn lateness(faster: i64) -> (u64, f64) {
    const READ: u64 = 1_000_000;
    let mut random = Random::new(7);
    let mut written: Vec<(u64, Duration)> = Vec::new();
    let mut now = 1_000_000_000;
    for _ in 0..2_000 {
        let due = random.span(DUE.mul_f64(0.9), DUE.mul_f64(1.1));
        written.push((now, due));
        now += (due.as_nanos() as i64 * (1_000_000 - faster) / 1_000_000) as u64;
    }
    let (mut watch, mut seen, mut worst, mut reads) = (Watch::new(), 0, 0, 0.0);
    let (mut sent, end) = (written[0].0 + 1, written[1_990].0);
    while sent < end {
        reads += 1.0;
        let received = sent + READ;
        let last = written.partition_point(|(at, _)| *at <= sent);
        let (at, due) = written[last - 1];
        let mut record = MemberRecord::joining(MemberId::new("m"), TTL, due);
        record.beat = last as u64;
        let found = Found::Record(Record {
            key: Key::new("member/m"),
            value: record.bytes(),
            version: Version::new(&last.to_string()),
            age: None,
        });
        let moment = Moment::from_nanos;
        watch.observe(moment(sent), moment(received), &found, Planted::default());
        if last != seen && last > 50 {
            worst = worst.max((received - at) / 1_000_000);
        }
        seen = last;
        sent = watch.look_at(moment(received), true, &mut random).as_nanos().max(received + 1);
    }
    (worst, reads / 1_990.0)
}

#[test]
fn beats_are_seen_soon_however_the_clocks_run_apart() {
    // A bracket that is shifted and doesn't double ran behind a faster holder by a whole interval (O60).
    for (faster, most) in [
        (0, 100),
        (100, 100),
        (-100, 100),
        (3_000, 150),
        (10_000, 400),
        (50_000, 1_300),
        (-50_000, 400),
    ] {
        let (worst, reads) = lateness(faster);
        assert!(
            worst <= most,
            "{faster} millionths: {worst} ms late, with {reads:.2} reads a beat"
        );
    }
    assert!(lateness(0).1 < 1.5, "a steady holder takes little more than one look a beat");
}

#[test]
fn no_number_of_a_beat_ends_who_watches() {
    let watch = watching(&[
        (0, 100, beat(u64::MAX, MemberState::Alive)),
        (5_000, 5_010, beat(0, MemberState::Alive)),
    ]);
    assert_eq!(watch.verdict(TTL, Planted::default()), Verdict::AliveUntil(at(20_010)));
}
