//! What changed between two looks at a cluster.

use incumbent::{Change, ChangeKind, LeaseState, Member, MemberState, Moved, Unreadable, keys};

use crate::command::status::Snapshot;
use crate::out::plain;
use crate::tone::Tone;

/// Something that changed.
#[derive(Clone, Debug)]
pub(crate) enum Item {
    /// A lease changed hands.
    Lease(LeaseState, Change),
    /// A member joined, was closed, or is not visible any more; seen at this time.
    Member(Member, &'static str, u64),
    /// A duty is to run elsewhere.
    Move(Moved),
    /// A record can't be read any more; seen at this time.
    Unreadable(Unreadable, u64),
}

/// All that changed, and was seen to at this time.
pub(crate) fn changes(old: &Snapshot, new: &Snapshot, now_ms: u64) -> Vec<Item> {
    let mut items = Vec::new();
    for member in named(new) {
        let known = named(old).find(|known| known.id == member.id);
        match known {
            None if is_broken(old, member) => {}
            None => items.push(Item::Member(member.clone(), "joined", member.joined_ms)),
            Some(known) if known.state != member.state => {
                items.push(Item::Member(member.clone(), member.state.as_str(), now_ms));
            }
            Some(_) => {}
        }
    }
    for member in named(old) {
        let gone = new.members.iter().all(|known| known.id != member.id);
        // One that was closed before is only forgotten; nothing happens by that.
        if gone && member.is_alive() && !is_broken(new, member) {
            items.push(Item::Member(member.clone(), "gone", now_ms));
        }
    }
    for state in &new.leases {
        let known = old.leases.iter().find(|known| known.lease == state.lease);
        // What can be read again was told before.
        if known.is_some_and(|known| known.unreadable.is_some()) {
            continue;
        }
        let known = known.map_or(&[][..], |known| &known.changes);
        for change in state.changes.iter().filter(|change| !known.contains(change)) {
            items.push(Item::Lease(state.clone(), change.clone()));
        }
    }
    let moves = new.work.moves.iter().filter(|moved| !old.work.moves.contains(moved));
    items.extend(moves.cloned().map(Item::Move));
    let broken = new.unreadable.iter().filter(|it| !old.unreadable.contains(it));
    items.extend(broken.map(|it| Item::Unreadable(it.clone(), now_ms)));
    items
}

/// Whether a member is missing only because its record can't be read.
fn is_broken(snapshot: &Snapshot, member: &Member) -> bool {
    let key = keys::member(&member.id);
    snapshot.unreadable.iter().any(|it| it.key == key.as_str())
}

/// One that has no name yet has only just joined: it is told of when it has.
fn named(snapshot: &Snapshot) -> impl Iterator<Item = &Member> {
    snapshot.members.iter().filter(|member| !member.node.is_empty())
}

impl Item {
    /// When, in milliseconds since 1970: for display alone.
    pub(crate) fn at_ms(&self) -> u64 {
        match self {
            Self::Lease(_, change) => change.at_ms,
            Self::Member(_, _, at_ms) => *at_ms,
            Self::Move(moved) => moved.at_ms,
            Self::Unreadable(_, at_ms) => *at_ms,
        }
    }

    /// What it is like.
    pub(crate) fn tone(&self) -> Tone {
        match self {
            Self::Lease(_, change) if change.kind == ChangeKind::Freed => Tone::Plain,
            Self::Lease(..) => Tone::Good,
            Self::Member(member, ..) => match member.state {
                MemberState::Alive | MemberState::Left => Tone::Plain,
                MemberState::Expired | MemberState::Evicted => Tone::Odd,
            },
            Self::Move(moved) if moved.to.is_none() => Tone::Odd,
            Self::Move(_) => Tone::Work,
            Self::Unreadable(..) => Tone::Bad,
        }
    }

    /// In words.
    pub(crate) fn sentence(&self) -> String {
        match self {
            Self::Lease(state, change) => handed(&plain(&state.lease), change),
            Self::Member(member, change, _) => {
                let said = match *change {
                    "evicted" => "was evicted",
                    "gone" => "is gone from the store",
                    other => other,
                };
                format!("{} {said}", plain(&member.node))
            }
            Self::Move(moved) => {
                let (duty, why) = (plain(moved.duty.as_str()), plain(&moved.why));
                let way = match (&moved.from, &moved.to) {
                    (Some(from), Some(to)) => format!("from {} to {}", plain(from), plain(to)),
                    (None, Some(to)) => format!("to {}", plain(to)),
                    (Some(from), None) => format!("away from {}", plain(from)),
                    (None, None) => "nowhere".to_owned(),
                };
                format!("{duty} {way}: {why}")
            }
            Self::Unreadable(it, _) => plain(&it.to_string()),
        }
    }

    /// What few want to know.
    pub(crate) fn detail(&self) -> Option<String> {
        match self {
            Self::Lease(_, change) => Some(format!("term {}", change.term)),
            Self::Member(member, ..) => {
                let id = member.id.as_str();
                Some(format!("member {}", id.get(..8).unwrap_or(id)))
            }
            Self::Move(_) | Self::Unreadable(..) => None,
        }
    }
}

fn handed(lease: &str, change: &Change) -> String {
    let node = plain(&change.node);
    match change.kind {
        ChangeKind::Freed => format!("{node} freed {lease}"),
        ChangeKind::Taken => format!("{node} leads {lease}"),
        ChangeKind::Inherited => format!("{node} leads {lease}: the last had left"),
        ChangeKind::Expired => format!("{node} leads {lease}: the last expired"),
        ChangeKind::Evicted => format!("{node} leads {lease}: the last was evicted"),
    }
}
