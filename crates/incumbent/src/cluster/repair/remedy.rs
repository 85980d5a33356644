//! What can be done about a record that can't be read.

use std::collections::BTreeMap;
use std::time::Duration;

use incumbent_core::MemberId;
use incumbent_core::keys::{self, Kind};
use incumbent_core::records::{Content, MemberRecord, MemberState, Profile, newer_format, salvage};
use incumbent_core::settings::MAX_TTL;
use incumbent_core::store::{Key, Record};

use super::{Remedy, RepairOptions};
use crate::driver::clock;

/// So far above what is known of a lost term the lease goes on.
const APART: u64 = 1_000_000;

/// A clock that says less is wrong: the beginning of the year 2024, in milliseconds since 1970.
const EARLIEST: u64 = 1_704_067_200_000;

/// What the records say about the members.
pub(super) struct Members {
    states: BTreeMap<MemberId, MemberStanding>,
    nodes: BTreeMap<MemberId, String>,
    /// The key of a member that may be alive and can't be closed here.
    beyond: Option<String>,
}

enum MemberStanding {
    /// Alive, or evicted with its ttl; nothing else may trust.
    Alive(Duration),
    Evicted(Duration),
    Gone,
    /// It can't be read, and is closed with this ttl.
    Broken(Duration),
}

impl Members {
    pub(super) fn of(records: &[Record], options: &RepairOptions) -> Self {
        let mut members = Self { states: BTreeMap::new(), nodes: BTreeMap::new(), beyond: None };
        for stored in records {
            match Kind::of(&stored.key) {
                Some(Kind::Member) => members.see(stored, options),
                Some(Kind::Profile) => {
                    let profile = Profile::read(stored).ok();
                    let owner = owner(&stored.key);
                    members.nodes.extend(owner.zip(profile.map(|profile| profile.node)));
                }
                _ => {}
            }
        }
        members
    }

    fn see(&mut self, stored: &Record, options: &RepairOptions) {
        let standing = match MemberRecord::read(stored) {
            Ok(record) => match record.state {
                MemberState::Alive => MemberStanding::Alive(record.ttl()),
                MemberState::Evicted => MemberStanding::Evicted(record.ttl()),
                MemberState::Left | MemberState::Expired => MemberStanding::Gone,
            },
            Err(_) => MemberStanding::Broken(salvage::ttl(stored).unwrap_or(options.longest_ttl)),
        };
        let closable = !matches!(standing, MemberStanding::Broken(_)) || !is_left(stored, options);
        match owner(&stored.key).filter(|_| closable) {
            Some(id) => drop(self.states.insert(id, standing)),
            None => self.beyond = Some(stored.key.as_str().to_owned()),
        }
    }

    /// What to do about a record, and what that means.
    pub(super) fn remedy(&self, stored: &Record, options: &RepairOptions) -> (Remedy, String) {
        let leave = |why: &str| (Remedy::Leave, why.to_owned());
        if is_left(stored, options) {
            return leave(
                "A newer version of incumbent has probably written it: repair it with that \
                 version. If none runs here, treat it as damaged with --newer.",
            );
        }
        match Kind::of(&stored.key) {
            Some(Kind::Member) => self.member(stored, options),
            Some(Kind::Lease) => self.lease(stored, options),
            Some(Kind::Profile | Kind::Report) => self.own(stored),
            Some(Kind::Roster) => match self.owner(stored) {
                Some((_, MemberStanding::Alive(_))) => renewed("roster"),
                _ => orphan(),
            },
            Some(Kind::View) => renewed("view"),
            Some(Kind::Catalog) => (
                Remedy::Delete,
                "Nodes that list these duties write it again when the leader misses it.".to_owned(),
            ),
            Some(Kind::Once) => (
                Remedy::Delete,
                "The job counts as one that never ran, so that it runs when it is next asked for."
                    .to_owned(),
            ),
            Some(Kind::Intent) => (
                Remedy::Replace,
                "What an operator asked for here is forgotten; nobody could obey it. `incumbent \
                 intents` lists what is left."
                    .to_owned(),
            ),
            Some(Kind::Board) => (
                Remedy::Replace,
                "All nodes read the view and what operators ask for once more. Until then they \
                 see nothing of either."
                    .to_owned(),
            ),
            Some(Kind::Moves) => (
                Remedy::Replace,
                "The last moves are forgotten, and which nodes duties avoid.".to_owned(),
            ),
            Some(Kind::Audit) => {
                (Remedy::Replace, "The last acts of operators are forgotten.".to_owned())
            }
            Some(Kind::Rollout) => (
                Remedy::Replace,
                "Unless the present leader knows it, it is forgotten which versions were aborted \
                 or promoted, and what came back from them: `incumbent rollout hold` first, if a \
                 version must not be tried again."
                    .to_owned(),
            ),
            Some(_) | None => leave("This version doesn't know what it is."),
        }
    }

    fn owner(&self, stored: &Record) -> Option<(MemberId, &MemberStanding)> {
        let id = owner(&stored.key)?;
        let standing = self.states.get(&id)?;
        Some((id, standing))
    }

    fn called(&self, id: &MemberId) -> String {
        let short = id.as_str().get(..8).unwrap_or(id.as_str());
        self.nodes.get(id).map_or_else(|| short.to_owned(), |node| format!("{node} ({short})"))
    }

    fn member(&self, stored: &Record, options: &RepairOptions) -> (Remedy, String) {
        let Some((id, MemberStanding::Broken(ttl))) = self.owner(stored) else {
            return (
                Remedy::Leave,
                "Whose record it is can't be told, so that nobody can be closed by it.".to_owned(),
            );
        };
        let node = self.called(&id);
        let known = *ttl < MAX_TTL || options.longest_ttl < MAX_TTL;
        let hint = if known {
            ""
        } else {
            " Its own ttl can't be read: if all nodes have a shorter one, say so with \
             --longest-ttl."
        };
        let meaning = format!(
            "{node} is closed as evicted. If it still runs it stops and joins again. What it holds \
             is free {} after the others see this.{hint}",
            seconds(*ttl)
        );
        (Remedy::Close { ttl: *ttl }, meaning)
    }

    /// What a member says about itself.
    fn own(&self, stored: &Record) -> (Remedy, String) {
        match self.owner(stored) {
            Some((id, MemberStanding::Alive(_))) => {
                let meaning = format!(
                    "Only {} itself can write it again. It does so when it joins again, and a \
                     report with its next change as well.",
                    self.called(&id)
                );
                (Remedy::Evict { member: id }, meaning)
            }
            _ => orphan(),
        }
    }

    fn lease(&self, stored: &Record, options: &RepairOptions) -> (Remedy, String) {
        if let Some(kept) = salvage::lease(stored) {
            let holder = kept.holder.map(|holder| holder.node);
            let who =
                holder.as_ref().map_or("held by nobody".to_owned(), |it| format!("held by {it}"));
            let meaning = format!(
                "Its term {} can be read, and that it is {who}: these stay. Its history is cut to \
                 what can be read.",
                kept.term
            );
            return (Remedy::Keep { term: kept.term, holder }, meaning);
        }
        if keys::name_in(&stored.key).is_none() {
            return (
                Remedy::Leave,
                "The lease's name is too long for its key, and can't be read: nothing safe can be \
                 done. Use another name, or restore the record from a backup."
                    .to_owned(),
            );
        }
        if let Some(key) = &self.beyond {
            let meaning = format!(
                "Whoever holds it has to be closed first, and that may be the member under {key}, \
                 which can't be."
            );
            return (Remedy::Leave, meaning);
        }
        self.raised(stored, options)
    }

    fn raised(&self, stored: &Record, options: &RepairOptions) -> (Remedy, String) {
        let known = salvage::term(&stored.value).map_or(0, |known| known.saturating_add(APART));
        let above = options.term_above.unwrap_or_else(|| clock::wall_ms().max(EARLIEST)).max(known);
        let mut evicting = Vec::new();
        let mut wait = Duration::ZERO;
        for (id, standing) in &self.states {
            let (MemberStanding::Alive(ttl)
            | MemberStanding::Evicted(ttl)
            | MemberStanding::Broken(ttl)) = standing
            else {
                continue;
            };
            wait = wait.max(*ttl);
            if matches!(standing, MemberStanding::Alive(_)) {
                evicting.push(id.clone());
            }
        }
        let names: Vec<String> = evicting.iter().map(|id| self.called(id)).collect();
        let first = if names.is_empty() {
            String::new()
        } else {
            format!(
                "Any member may hold it, so that all are evicted, stop their work and join again: \
                 {}. Or stop them all and repair then. ",
                names.join(", ")
            )
        };
        let free = if wait.is_zero() {
            "It is free at once".to_owned()
        } else {
            format!("It is free {} after the others see this", seconds(wait))
        };
        let meaning = format!(
            "Neither its term nor its holder can be read. {first}{free}, and goes on above term \
             {above}; if a higher one was ever given, name that with --term-above."
        );
        (Remedy::Raise { above, evicting, wait }, meaning)
    }
}

fn orphan() -> (Remedy, String) {
    (Remedy::Delete, "Its member is gone: nobody needs it.".to_owned())
}

fn renewed(what: &str) -> (Remedy, String) {
    let meaning = format!(
        "The leader of the cluster is asked to resign, and the next one writes the {what} anew. \
         Until then the nodes go by the last one that they could read."
    );
    (Remedy::Renew, meaning)
}

/// Whether it is of a newer format, and not to be touched.
fn is_left(stored: &Record, options: &RepairOptions) -> bool {
    !options.newer && newer_format(&stored.value).is_some()
}

/// The member that a record is about, by its key.
fn owner(key: &Key) -> Option<MemberId> {
    keys::name_in(key).map(|id| MemberId::new(&id))
}

fn seconds(span: Duration) -> String {
    if span.as_secs() < 120 {
        format!("{} s", span.as_secs_f64())
    } else {
        format!("{} min", span.as_secs() / 60)
    }
}
