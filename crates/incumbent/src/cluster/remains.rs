//! What members left behind where nobody is there for long enough to sweep.
//!
//! A sweep watches others for their ttl (`sweep.rs` in the core). Where nothing but short runs exists,
//! none of them lives to see the end of that. So some of those that join look once, and do what one
//! look allows. They close members of this machine whose death their evidence proves, by a swap as
//! ever. They delete members that left or expired: that is final, so that no read is too old for it.
//! The store's clock only says how long a closed member was there for others to see. An evicted member
//! is left alone, because it has to be watched for its ttl before it may be deleted.

use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use incumbent_core::random::Random;
use incumbent_core::records::{Content, MemberRecord, MemberState, Profile};
use incumbent_core::store::{Exchange, Found, Lane, Read, Record, Write};
use incumbent_core::{MemberId, keys};

use super::Cluster;
use crate::error::ClusterError;
use crate::node::witness::{self, DeathVerdict};

/// So many silent members are asked about in one look.
const MOST_SILENT: usize = 16;
/// So many closed members are deleted in one look.
const MOST_CLOSED: usize = 24;

/// What one look at all members shows.
#[derive(Debug, Default, PartialEq, Eq)]
struct Remains {
    /// Not closed, and not heard of for their ttl.
    silent: Vec<MemberId>,
    /// Left or expired for a while.
    closed: Vec<MemberId>,
}

impl Cluster {
    /// Looks once for what others left behind, for a member that has just joined.
    pub(crate) async fn collect_remains(
        &self,
        own: &MemberId,
        visible: Duration,
        witness: bool,
        mut random: Random,
    ) -> Result<(), ClusterError> {
        let members = self.read_prefix(keys::members()).await?;
        let Remains { silent, closed } = Remains::of(&members, own, visible);
        if witness {
            self.close_proven(some(silent, MOST_SILENT, &mut random)).await?;
        }
        self.delete_closed(&some(closed, MOST_CLOSED, &mut random)).await
    }

    async fn close_proven(&self, silent: Vec<MemberId>) -> Result<(), ClusterError> {
        if silent.is_empty() {
            return Ok(());
        }
        let profile = |id| Read::Key { key: keys::profile(id), unless: None };
        let reads = silent.iter().map(profile).collect();
        let reply = self.exchange(Lane::Watch, Exchange { writes: Vec::new(), reads }).await?;
        for (id, found) in silent.into_iter().zip(reply.reads) {
            let Found::Record(stored) = found else { continue };
            if Profile::read(&stored).is_ok_and(|profile| is_dead(&profile)) {
                match self.close_as(id, MemberState::Expired).await {
                    Ok(_) | Err(ClusterError::NoSuchMember { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    /// A member's own record goes last, because it is the only way to the others.
    async fn delete_closed(&self, closed: &[MemberId]) -> Result<(), ClusterError> {
        if closed.is_empty() {
            return Ok(());
        }
        let others = |id| [keys::profile(id), keys::roster(id), keys::report(id)];
        let mut writes: Vec<Write> = closed.iter().flat_map(others).map(Write::Delete).collect();
        let exchange = |writes| Exchange { writes, reads: Vec::new() };
        self.exchange(Lane::Change, exchange(writes.clone())).await?;
        // The others once more: what was on its way to them may have landed since.
        writes.extend(closed.iter().map(keys::member).map(Write::Delete));
        self.exchange(Lane::Change, exchange(writes)).await?;
        Ok(())
    }
}

impl Remains {
    fn of(records: &[Record], own: &MemberId, visible: Duration) -> Self {
        let mut remains = Self::default();
        let mut is_sane = false;
        for stored in records {
            let (Ok(record), Some(age)) = (MemberRecord::read(stored), stored.age) else {
                continue;
            };
            if keys::member(&record.id) != stored.key {
                continue;
            }
            if record.id == *own {
                is_sane = age < visible;
                continue;
            }
            match record.state {
                MemberState::Alive if age >= record.ttl() => remains.silent.push(record.id),
                MemberState::Left | MemberState::Expired if age >= visible => {
                    remains.closed.push(record.id);
                }
                MemberState::Alive
                | MemberState::Left
                | MemberState::Expired
                | MemberState::Evicted => {}
            }
        }
        // Its own record is new. Where that looks old, the store's clock has jumped.
        if is_sane { remains } else { Self::default() }
    }
}

/// So many of them, beginning anywhere: those about whom nothing can be known don't stand in the way
/// of the others for ever.
fn some(mut all: Vec<MemberId>, most: usize, random: &mut Random) -> Vec<MemberId> {
    if all.len() > most {
        let first = random.below(all.len() as u64) as usize;
        all.rotate_left(first);
        all.truncate(most);
    }
    all
}

/// Whether all processes of a member are dead by now. Who lives isn't waited for.
fn is_dead(profile: &Profile) -> bool {
    let Some(host) = &profile.host else { return false };
    let death = pin!(witness::death(host));
    death.poll(&mut Context::from_waker(Waker::noop())) == Poll::Ready(DeathVerdict::Dead)
}

#[cfg(test)]
mod tests {
    use incumbent_core::store::{Key, Version};

    use super::*;

    const VISIBLE: Duration = Duration::from_secs(90);

    fn stored(key: &str, id: &str, state: MemberState, age: Option<u64>) -> Record {
        let ttl = Duration::from_secs(15);
        let record = MemberRecord::joining(MemberId::new(id), ttl, ttl / 3).closed(state);
        let age = age.map(Duration::from_secs);
        Record { key: Key::new(key), value: record.bytes(), version: Version::new("1"), age }
    }

    fn look(own_age: u64) -> Remains {
        use MemberState::{Alive, Evicted, Expired, Left};
        let member = |id: &str, state, age| stored(&format!("member/{id}"), id, state, age);
        let records = [
            member("own", Alive, Some(own_age)),
            member("beats", Alive, Some(14)),
            member("silent", Alive, Some(15)),
            member("ageless", Alive, None),
            member("left", Left, Some(90)),
            member("just-left", Left, Some(89)),
            member("expired", Expired, Some(1_000_000)),
            member("evicted", Evicted, Some(1_000_000)),
            stored("member/other", "wrong-key", Left, Some(1_000_000)),
        ];
        Remains::of(&records, &MemberId::new("own"), VISIBLE)
    }

    #[test]
    fn o42_only_what_is_final_is_deleted_and_only_the_silent_are_asked_about() {
        let ids = |names: &[&str]| names.iter().map(|name| MemberId::new(name)).collect();
        let expected = Remains { silent: ids(&["silent"]), closed: ids(&["left", "expired"]) };
        assert_eq!(look(1), expected);
    }

    #[test]
    fn o42_a_clock_that_has_jumped_says_nothing() {
        assert_eq!(look(90), Remains::default());
        let none = Remains::of(&[], &MemberId::new("own"), VISIBLE);
        assert_eq!(none, Remains::default(), "nor does a read that doesn't show this node");
    }

    #[test]
    fn o42_nobody_stands_in_the_way_of_the_others() {
        let all: Vec<MemberId> = (0..40).map(|number| MemberId::new(&number.to_string())).collect();
        let mut random = Random::new(1);
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..100 {
            let some = some(all.clone(), 16, &mut random);
            assert_eq!(some.len(), 16);
            seen.extend(some);
        }
        assert_eq!(seen.len(), 40);
    }
}
