//! Records that can't be read, and what can safely be done about them.
//!
//! A record that can't be read is never taken for absent, closed or free, so it stays until
//! somebody repairs it. The rules of doing that are those of the protocol: a term never goes back, and
//! nobody takes a lease from a member that may still trust that it holds it.

mod remedy;

use std::time::Duration;

use incumbent_core::keys::{self, Kind};
use incumbent_core::records::{
    Ask, Audit, Board, Content, Holder, Intent, IntentState, LeaseRecord, MemberRecord,
    MemberState, Profile, Unreadable, salvage,
};
use incumbent_core::settings::MAX_TTL;
use incumbent_core::store::{Exchange, Expect, Key, Lane, Record, Write};
use incumbent_core::{LeaseName, MemberId};
use incumbent_duties::records::{Moves, Rollout, flaw};

use super::Cluster;
use super::intents::{Writer, expect};
use crate::driver::clock;
use crate::error::ClusterError;

/// The name of the node that holds a repaired lease until it may be taken.
const NODE: &str = "store-repair";

/// A record that can't be read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Damage {
    /// Which, and what is wrong with it.
    pub unreadable: Unreadable,
    /// How many bytes it has.
    pub bytes: usize,
    /// What repairing it does.
    pub remedy: Remedy,
    /// What that means for whoever depends on it, in a sentence or two.
    pub meaning: String,
}

/// What is done to repair a record.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Remedy {
    /// Nothing: there is no safe repair, or none is needed.
    Leave,
    /// It is deleted.
    Delete,
    /// It is replaced by one that says nothing.
    Replace,
    /// The member is closed as evicted: what it holds is free when this time has passed.
    Close {
        /// The ttl that is written into its record.
        ttl: Duration,
    },
    /// Its member, which is alive, is evicted; its process joins anew and writes it again.
    Evict {
        /// Which member.
        member: MemberId,
    },
    /// The leader of the cluster is asked to resign, and the next one writes it again.
    Renew,
    /// A lease keeps its term and holder, which can be read, and loses the rest.
    Keep {
        /// The term.
        term: u64,
        /// The node that holds it.
        holder: Option<String>,
    },
    /// A lease goes on above this term, when everybody who may hold it has stopped.
    Raise {
        /// No term up to this one is given again.
        above: u64,
        /// The members that are evicted, since each of them may hold it.
        evicting: Vec<MemberId>,
        /// How long nobody takes it, counted from when the others see that.
        wait: Duration,
    },
}

/// What became of a damaged record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mended {
    /// It was repaired.
    Done,
    /// Somebody has changed it meanwhile: look again.
    Changed,
    /// It needs an eviction, which [`RepairOptions::evict`] didn't allow.
    Withheld,
    /// It was left as it is.
    Left,
}

/// How to repair.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepairOptions {
    /// Whether members that are alive may be evicted where there is no gentler way.
    pub evict: bool,
    /// The longest ttl of any node of the cluster: so long is waited for a member whose own can't be
    /// read. An hour, which no ttl exceeds, unless somebody knows better.
    pub longest_ttl: Duration,
    /// A lease whose term can't be read goes on above this; by default above the number of
    /// milliseconds since 1970, since no lease changes hands that often.
    pub term_above: Option<u64>,
    /// Whether records of a newer format are taken for damaged: only where no newer version runs.
    pub newer: bool,
}

impl Default for RepairOptions {
    fn default() -> Self {
        Self { evict: false, longest_ttl: MAX_TTL, term_above: None, newer: false }
    }
}

impl Remedy {
    /// The word that people use.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Leave => "leave",
            Self::Delete => "delete",
            Self::Replace => "replace",
            Self::Close { .. } => "close",
            Self::Evict { .. } => "evict",
            Self::Renew => "renew",
            Self::Keep { .. } => "keep",
            Self::Raise { .. } => "raise",
        }
    }

    /// Whether somebody who is alive has to be evicted for it.
    #[must_use]
    pub fn evicts(&self) -> bool {
        match self {
            Self::Evict { .. } => true,
            Self::Raise { evicting, .. } => !evicting.is_empty(),
            Self::Leave
            | Self::Delete
            | Self::Replace
            | Self::Close { .. }
            | Self::Renew
            | Self::Keep { .. } => false,
        }
    }
}

impl Mended {
    /// The word that people use.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Done => "repaired",
            Self::Changed => "changed",
            Self::Withheld => "withheld",
            Self::Left => "left",
        }
    }
}

impl Cluster {
    /// All records that can't be read, in the order of their keys.
    ///
    /// # Errors
    /// If the store can't be reached.
    pub async fn unreadable(&self) -> Result<Vec<Unreadable>, ClusterError> {
        let damaged = self.damage(&RepairOptions::default()).await?;
        Ok(damaged.into_iter().map(|damage| damage.unreadable).collect())
    }

    /// All records that can't be read, and what [`Self::repair`] would do about each. Nothing is
    /// changed.
    ///
    /// # Errors
    /// If the store can't be reached.
    pub async fn damage(&self, options: &RepairOptions) -> Result<Vec<Damage>, ClusterError> {
        let (this, options) = (self.clone(), options.clone());
        let damaged = self.run(async move { this.inspect(&options).await }).await?;
        Ok(damaged.into_iter().map(|(damage, _)| damage).collect())
    }

    /// Repairs the records that can't be read, as far as that is safe: [`Damage`] says how. Each is
    /// changed only if it is still the version that was looked at, so that two who repair at once
    /// and members that beat do no harm.
    ///
    /// # Errors
    /// If the store can't be reached. Some may have been repaired by then; it can be done again.
    pub async fn repair(
        &self,
        options: &RepairOptions,
    ) -> Result<Vec<(Damage, Mended)>, ClusterError> {
        let (this, options) = (self.clone(), options.clone());
        self.run(async move {
            let mut damaged = this.inspect(&options).await?;
            // The board first, by which nodes are asked for anything. Leases last: whoever may hold
            // one has to be closed before anybody is told when it is free.
            damaged.sort_by_key(|(_, stored)| match Kind::of(&stored.key) {
                Some(Kind::Board) => 0,
                Some(Kind::Member) => 1,
                Some(Kind::Lease) => 3,
                _ => 2,
            });
            let mut mended = Vec::with_capacity(damaged.len());
            let mut writer = Writer::new();
            for (damage, stored) in damaged {
                let outcome = this.mend(&mut writer, &damage, &stored, &options).await?;
                mended.push((damage, outcome));
            }
            this.delete_of_evicted(&mut writer, &mut mended, &options).await?;
            mended.sort_by(|(one, _), (other, _)| one.unreadable.key.cmp(&other.unreadable.key));
            Ok(mended)
        })
        .await
    }

    async fn inspect(
        &self,
        options: &RepairOptions,
    ) -> Result<Vec<(Damage, Record)>, ClusterError> {
        let records = self.read_prefix(Key::new("")).await?;
        let members = remedy::Members::of(&records, options);
        let damaged = |stored: Record| {
            let unreadable = flaw(&stored)?;
            let (remedy, meaning) = members.remedy(&stored, options);
            let bytes = stored.value.len();
            Some((Damage { unreadable, bytes, remedy, meaning }, stored))
        };
        Ok(records.into_iter().filter_map(damaged).collect())
    }

    /// What says something about a member can be deleted once that has been evicted.
    async fn delete_of_evicted(
        &self,
        writer: &mut Writer,
        mended: &mut [(Damage, Mended)],
        options: &RepairOptions,
    ) -> Result<(), ClusterError> {
        let evicted = |(damage, how): &(Damage, Mended)| {
            matches!(damage.remedy, Remedy::Evict { .. }) && *how == Mended::Done
        };
        if !mended.iter().any(evicted) {
            return Ok(());
        }
        for (damage, stored) in self.inspect(options).await? {
            let same = |(former, _): &&mut (Damage, Mended)| {
                former.unreadable.key == damage.unreadable.key
            };
            let deletes = damage.remedy == Remedy::Delete;
            if let Some((_, how)) = mended.iter_mut().find(same).filter(|_| deletes) {
                *how = self.mend(writer, &damage, &stored, options).await?;
            }
        }
        Ok(())
    }

    async fn mend(
        &self,
        writer: &mut Writer,
        damage: &Damage,
        stored: &Record,
        options: &RepairOptions,
    ) -> Result<Mended, ClusterError> {
        if damage.remedy.evicts() && !options.evict {
            return Ok(Mended::Withheld);
        }
        let content = match &damage.remedy {
            Remedy::Leave => return Ok(Mended::Left),
            Remedy::Delete => {
                let writes = vec![Write::Delete(stored.key.clone())];
                self.exchange(Lane::Change, Exchange { writes, reads: Vec::new() }).await?;
                return Ok(Mended::Done);
            }
            Remedy::Evict { member } => {
                self.evict_if_alive(member).await?;
                return Ok(Mended::Done);
            }
            Remedy::Renew => return self.renew_leader().await,
            Remedy::Replace => blank(&stored.key),
            Remedy::Close { ttl } => closed(&stored.key, *ttl).map(|record| record.bytes()),
            Remedy::Keep { .. } => salvage::lease(stored).map(|record| record.bytes()),
            Remedy::Raise { above, evicting, wait } => {
                for member in evicting {
                    self.evict_if_alive(member).await?;
                }
                let holder = if wait.is_zero() { None } else { Some(*wait) };
                let record = self.raised(writer, &stored.key, *above, holder).await?;
                record.map(|record| record.bytes())
            }
        };
        let Some(content) = content else { return Ok(Mended::Left) };
        let put = writer.put(stored.key.clone(), expect(stored), content);
        Ok(if self.write(put).await? { Mended::Done } else { Mended::Changed })
    }

    /// One that is closed already is what is wanted.
    async fn evict_if_alive(&self, member: &MemberId) -> Result<(), ClusterError> {
        match self.close_as(member.clone(), MemberState::Evicted).await {
            Ok(_) | Err(ClusterError::NoSuchMember { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// What the cluster's leader writes is written anew by the next one.
    async fn renew_leader(&self) -> Result<Mended, ClusterError> {
        match self.ask_to_resign(&LeaseName::leader(), None, None).await {
            Ok(_) => Ok(Mended::Done),
            Err(ClusterError::NobodyLeads { .. } | ClusterError::Unreadable(_)) => Ok(Mended::Left),
            Err(error) => Err(error),
        }
    }

    /// A lease that goes on above a term. If somebody may still hold it, it hangs from a member that
    /// nobody is, evicted with their longest ttl: whoever wants it waits for that one, by the
    /// ordinary rule, and counts from when it sees this.
    async fn raised(
        &self,
        writer: &mut Writer,
        key: &Key,
        term: u64,
        wait: Option<Duration>,
    ) -> Result<Option<LeaseRecord>, ClusterError> {
        let Some(name) = keys::name_in(key) else { return Ok(None) };
        let mut record = LeaseRecord::free(name, term);
        let Some(wait) = wait else { return Ok(Some(record)) };
        let id = MemberId::new(&writer.id());
        let profile = Profile { joined_ms: clock::wall_ms(), ..Profile::named(NODE) };
        let records = [
            (keys::profile(&id), profile.bytes()),
            (keys::member(&id), evicted(id.clone(), wait).bytes()),
        ];
        for (key, content) in records {
            self.write(writer.put(key, Expect::Absent, content)).await?;
        }
        record.holder = Some(Holder {
            member: id,
            node: NODE.to_owned(),
            address: None,
            mark: None,
            unproven: false,
            due_ms: 0,
        });
        Ok(Some(record))
    }
}

fn evicted(id: MemberId, ttl: Duration) -> MemberRecord {
    MemberRecord::joining(id, ttl, ttl / 3).closed(MemberState::Evicted)
}

fn closed(key: &Key, ttl: Duration) -> Option<MemberRecord> {
    Some(evicted(MemberId::new(&keys::name_in(key)?), ttl))
}

/// A record of the kind that says nothing.
fn blank(key: &Key) -> Option<Vec<u8>> {
    Some(match Kind::of(key)? {
        Kind::Intent => {
            let id = keys::name_in(key)?;
            let intent = Intent::open(id, Ask::Freeze, NODE.to_owned(), clock::wall_ms());
            Intent { state: IntentState::Obsolete, ..intent }.bytes()
        }
        // Above whatever it was, so that everybody reads again what it points to.
        Kind::Board => {
            let count = clock::wall_ms();
            Board { view: count, intents: count, ..Board::fresh() }.bytes()
        }
        Kind::Moves => Moves::none(0).bytes(),
        Kind::Rollout => Rollout::none(0).bytes(),
        Kind::Audit => Audit::fresh().bytes(),
        _ => return None,
    })
}
