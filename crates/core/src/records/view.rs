use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Content, Extra, MemberState, fit, size};
use crate::names::MemberId;

/// Room for what says that something is left out.
const OVERHEAD: usize = 100;

/// The members as the cluster's leader sees them, for everyone else to read.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct View {
    /// The format number.
    pub format: u32,
    /// The term of the leader that wrote it.
    pub term: u64,
    /// Members in the order of their numbers.
    pub members: Vec<ViewEntry>,
    /// What is left out, because the store takes no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<String>,
    /// Fields of other versions.
    #[serde(flatten)]
    pub extra: Extra,
}

/// One member in the view.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ViewEntry {
    /// Which member.
    pub id: MemberId,
    /// A small number that stays with it: the lowest that was free.
    pub number: u32,
    /// Its node's name.
    pub node: String,
    /// Where in its life it is.
    pub state: MemberState,
    /// Where it can be reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Whatever operators sort nodes by.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// A list of duties that its profile names is gone: it is to be written again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub missing: bool,
    /// Others hold back for it a little where the cluster needs a leader: it serves all families that
    /// anybody serves, which not everybody does.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub preferred: bool,
    /// When it joined by its own wall clock: for display alone.
    #[serde(default)]
    pub joined_ms: u64,
}

impl View {
    /// How many bytes it takes at the most, found without writing it, which a leader of many would do
    /// at each beat. Nothing if that can't be said.
    fn most_bytes(&self) -> Option<usize> {
        // A byte is written as six at the most; the rest is names of fields, numbers and a state.
        let text = |text: &str| 6 * text.len() + 6;
        let entry = |entry: &ViewEntry| {
            let labels = entry.labels.iter().map(|(name, value)| text(name) + text(value));
            let address = entry.address.as_deref().map_or(0, text);
            text(entry.id.as_str()) + text(&entry.node) + address + labels.sum::<usize>() + 250
        };
        let others = self.left_out.as_deref().map_or(0, text) + 150;
        self.extra.is_empty().then(|| self.members.iter().map(entry).sum::<usize>() + others)
    }

    /// Leaves out what would make the record larger than the store takes: labels first, then
    /// addresses, then members that have ended, then the last ones.
    pub fn cut(&mut self, max_value: usize) {
        let room = max_value.saturating_sub(OVERHEAD);
        if self.most_bytes().is_some_and(|most| most <= room) || size(self) <= room {
            return;
        }
        self.left_out = Some("labels".to_owned());
        self.members.iter_mut().for_each(|entry| entry.labels.clear());
        if size(self) <= room {
            return;
        }
        self.left_out = Some("labels and addresses".to_owned());
        self.members.iter_mut().for_each(|entry| entry.address = None);
        let members = std::mem::take(&mut self.members);
        let mut room = room.saturating_sub(size(self));
        let (alive, ended): (Vec<_>, Vec<_>) =
            members.into_iter().partition(|entry| entry.state == MemberState::Alive);
        let (members, more) = fit(&mut room, alive.into_iter().chain(ended), size);
        self.members = members;
        self.members.sort_by_key(|entry| entry.number);
        if more > 0 {
            self.left_out = Some(format!("labels, addresses and {more} members"));
        }
    }
}

impl Content for View {
    fn format(&self) -> u32 {
        self.format
    }

    fn check(&self) -> Result<(), String> {
        Ok(())
    }
}
