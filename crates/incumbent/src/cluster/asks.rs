//! What an operator asks for about duties and nodes. It stands until it is taken back, whoever
//! leads the cluster.

use incumbent_core::keys;
use incumbent_core::names;
use incumbent_core::records::{Ask, Content, Intent, IntentState, sift};
use incumbent_core::store::{Expect, Record};
use incumbent_duties::DutyId;
use serde::Serialize;

use super::intents::{ATTEMPTS, Writer, expect};
use super::{Cluster, Leader};
use crate::driver::clock;
use crate::error::ClusterError;

/// What became of something that an operator asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Asked {
    /// The intents that are in force for it now, or that were taken back. None means that there
    /// was nothing to take back.
    pub intents: Vec<String>,
    /// The duties and nodes that were named and that nobody knows at the moment. That is
    /// harmless: what is asked of them holds when they appear.
    pub unknown: Vec<String>,
    /// The leader that is asked to give its lease up, in the term that shall end; a later leader is
    /// not meant. Nobody where something else is asked for.
    pub leader: Option<Leader>,
}

/// How strictly a duty is pinned to a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Strictness {
    /// It runs there if it can, and elsewhere otherwise.
    #[default]
    Preferred,
    /// It runs there or nowhere.
    Required,
}

impl Cluster {
    /// Wants a duty (`family/name`) on the node of this name: there if it can run it, or there and
    /// nowhere else. Replaces a former pin of the duty.
    ///
    /// # Errors
    /// If a name is not valid, or the store can't be reached.
    pub async fn pin(
        &self,
        duty: &str,
        node: &str,
        strictness: Strictness,
    ) -> Result<Asked, ClusterError> {
        let (duty, node) = (duty_name(duty)?, node_name(node)?);
        let required = strictness == Strictness::Required;
        self.ask(Ask::Pin { duty, node, required }).await
    }

    /// Takes the pin of a duty back.
    ///
    /// # Errors
    /// As [`Self::pin`].
    pub async fn unpin(&self, duty: &str) -> Result<Asked, ClusterError> {
        let duty = duty_name(duty)?;
        self.unask(Ask::Pin { duty, node: String::new(), required: false }).await
    }

    /// Stops a duty wherever it runs, until [`Self::resume`].
    ///
    /// # Errors
    /// As [`Self::pin`].
    pub async fn pause(&self, duty: &str) -> Result<Asked, ClusterError> {
        self.ask(Ask::Pause { duty: duty_name(duty)? }).await
    }

    /// Lets a paused duty run again.
    ///
    /// # Errors
    /// As [`Self::pin`].
    pub async fn resume(&self, duty: &str) -> Result<Asked, ClusterError> {
        self.unask(Ask::Pause { duty: duty_name(duty)? }).await
    }

    /// Moves a duty to the node of this name, once. It may move on later: [`Self::pin`] keeps it.
    ///
    /// # Errors
    /// As [`Self::pin`].
    pub async fn move_duty(&self, duty: &str, node: &str) -> Result<Asked, ClusterError> {
        let (duty, node) = (duty_name(duty)?, node_name(node)?);
        self.ask(Ask::Move { duty, node }).await
    }

    /// Gives the nodes of this name no more duties. What they run stays.
    ///
    /// # Errors
    /// As [`Self::pin`].
    pub async fn cordon(&self, node: &str) -> Result<Asked, ClusterError> {
        self.ask(Ask::Cordon { node: node_name(node)? }).await
    }

    /// Takes [`Self::cordon`] back.
    ///
    /// # Errors
    /// As [`Self::pin`].
    pub async fn uncordon(&self, node: &str) -> Result<Asked, ClusterError> {
        self.unask(Ask::Cordon { node: node_name(node)? }).await
    }

    /// Moves all duties away from the nodes of this name, as far as they fit elsewhere, and gives
    /// them no more.
    ///
    /// # Errors
    /// As [`Self::pin`].
    pub async fn drain(&self, node: &str) -> Result<Asked, ClusterError> {
        self.ask(Ask::Drain { node: node_name(node)? }).await
    }

    /// Takes [`Self::drain`] back.
    ///
    /// # Errors
    /// As [`Self::pin`].
    pub async fn undrain(&self, node: &str) -> Result<Asked, ClusterError> {
        self.unask(Ask::Drain { node: node_name(node)? }).await
    }

    /// Lets nothing move for the sake of evenness. What runs nowhere is still placed.
    ///
    /// # Errors
    /// If the store can't be reached.
    pub async fn freeze(&self) -> Result<Asked, ClusterError> {
        self.ask(Ask::Freeze).await
    }

    /// Takes [`Self::freeze`] back.
    ///
    /// # Errors
    /// As [`Self::freeze`].
    pub async fn thaw(&self) -> Result<Asked, ClusterError> {
        self.unask(Ask::Freeze).await
    }

    /// What operators ask for at the moment, oldest first. What can't be read is not among it, for
    /// nobody obeys it: see [`Self::unreadable`].
    ///
    /// # Errors
    /// If the store can't be reached.
    pub async fn intents(&self) -> Result<Vec<Intent>, ClusterError> {
        let this = self.clone();
        let open = self.run(async move { this.open_intents().await }).await?;
        let mut open: Vec<Intent> = open.into_iter().map(|(intent, _)| intent).collect();
        open.sort_by(oldest_first);
        Ok(open)
    }

    /// Everything that operators asked for and the store still has, oldest first: what is in force,
    /// what is waited for, and for a while what is done.
    ///
    /// # Errors
    /// If the store can't be reached.
    pub async fn all_intents(&self) -> Result<Vec<Intent>, ClusterError> {
        let this = self.clone();
        let stored = self.run(async move { this.read_prefix(keys::intents()).await }).await?;
        let mut intents: Vec<Intent> = sift(&stored, &mut Vec::new());
        intents.sort_by(oldest_first);
        Ok(intents)
    }

    /// Takes back what an operator asked for, by the id of the intent. Says whether there was
    /// anything to take back: what is done already stays done.
    ///
    /// # Errors
    /// If the store can't be reached.
    pub async fn withdraw(&self, id: &str) -> Result<bool, ClusterError> {
        let (this, id) = (self.clone(), id.to_owned());
        self.run(async move {
            let mut writer = Writer::new();
            let taken = this.take_back(&mut writer, |intent| intent.id == id).await?;
            if !taken.is_empty() {
                this.announce(&mut writer).await?;
            }
            Ok(!taken.is_empty())
        })
        .await
    }

    pub(super) async fn ask(&self, ask: Ask) -> Result<Asked, ClusterError> {
        let this = self.clone();
        self.run(async move { this.open_ask(ask).await }).await
    }

    pub(super) async fn unask(&self, ask: Ask) -> Result<Asked, ClusterError> {
        let this = self.clone();
        self.run(async move {
            let unknown = this.unknown(&ask).await?;
            let about = |intent: &Intent| same_subject(&intent.ask, &ask);
            let mut writer = Writer::new();
            let intents = this.take_back(&mut writer, about).await?;
            if !intents.is_empty() {
                this.announce(&mut writer).await?;
            }
            Ok(Asked { intents, unknown, leader: None })
        })
        .await
    }

    async fn open_ask(&self, ask: Ask) -> Result<Asked, ClusterError> {
        let unknown = self.unknown(&ask).await?;
        let open = self.open_intents().await?;
        if let Some((there, _)) = open.iter().find(|(intent, _)| intent.ask == ask) {
            return Ok(Asked { intents: vec![there.id.clone()], unknown, leader: None });
        }
        let mut writer = Writer::new();
        let id = writer.id();
        let intent =
            Intent::open(id.clone(), ask.clone(), crate::node::host::name(), clock::wall_ms());
        let put = writer.put(keys::intent(&id), Expect::Absent, intent.bytes());
        self.write(put).await?;
        // The new one first, so that there is no moment without any.
        let former = |intent: &Intent| intent.id != id && same_subject(&intent.ask, &ask);
        self.take_back(&mut writer, former).await?;
        self.announce(&mut writer).await?;
        Ok(Asked { intents: vec![id], unknown, leader: None })
    }

    /// Marks intents as done; says which.
    async fn take_back(
        &self,
        writer: &mut Writer,
        which: impl Fn(&Intent) -> bool,
    ) -> Result<Vec<String>, ClusterError> {
        let mut ids = Vec::new();
        for _ in 0..ATTEMPTS {
            let open = self.open_intents().await?;
            let mut refused = false;
            for (mut intent, stored) in open.into_iter().filter(|(intent, _)| which(intent)) {
                intent.state = IntentState::Done;
                let id = intent.id.clone();
                let put = writer.put(stored.key.clone(), expect(&stored), intent.bytes());
                if self.write(put).await? {
                    ids.push(id);
                } else {
                    refused = true;
                }
            }
            if !refused {
                return Ok(ids);
            }
        }
        Err(ClusterError::Contended { key: keys::intents().as_str().to_owned() })
    }

    /// What is asked for. What can't be read is not among it.
    async fn open_intents(&self) -> Result<Vec<(Intent, Record)>, ClusterError> {
        let stored = self.read_prefix(keys::intents()).await?.into_iter();
        let read = stored.filter_map(|stored| Some((Intent::read(&stored).ok()?, stored)));
        Ok(read.filter(|(intent, _)| intent.state == IntentState::Open).collect())
    }

    /// What an ask names that nobody knows.
    async fn unknown(&self, ask: &Ask) -> Result<Vec<String>, ClusterError> {
        let (duty, node) = match ask {
            Ask::Resign { .. } | Ask::Freeze => return Ok(Vec::new()),
            Ask::Hold { family }
            | Ask::Canary { family, .. }
            | Ask::Promote { family, .. }
            | Ask::Abort { family, .. } => {
                let picture = self.read_picture().await?;
                let known = picture.lineages.contains_key(family);
                return Ok(if known { Vec::new() } else { vec![family.clone()] });
            }
            Ask::Pin { duty, node, .. } | Ask::Move { duty, node } => (Some(duty), Some(node)),
            Ask::Pause { duty } => (Some(duty), None),
            Ask::Cordon { node } | Ask::Drain { node } => (None, Some(node)),
        };
        let picture = self.read_picture().await?;
        let duty = duty.filter(|duty| !picture.knows_duty(duty));
        let node = node.filter(|node| !node.is_empty() && !picture.knows_node(node));
        Ok(duty.into_iter().chain(node).cloned().collect())
    }
}

/// Something as if somebody had asked for it: for plans alone.
pub(super) fn supposed(ask: Ask) -> Intent {
    Intent::open(String::new(), ask, String::new(), u64::MAX)
}

/// By the clocks of those who asked.
pub(super) fn oldest_first(one: &Intent, other: &Intent) -> std::cmp::Ordering {
    (one.at_ms, &one.id).cmp(&(other.at_ms, &other.id))
}

/// Whether one ask replaces, or takes back, the other.
fn same_subject(one: &Ask, other: &Ask) -> bool {
    match (one, other) {
        (Ask::Pin { duty: one, .. }, Ask::Pin { duty: other, .. })
        | (Ask::Pause { duty: one }, Ask::Pause { duty: other })
        | (Ask::Move { duty: one, .. }, Ask::Move { duty: other, .. })
        | (Ask::Cordon { node: one }, Ask::Cordon { node: other })
        | (Ask::Drain { node: one }, Ask::Drain { node: other }) => one == other,
        (Ask::Freeze, Ask::Freeze) => true,
        (Ask::Canary { family: one, .. }, Ask::Canary { family: other, .. })
        | (
            Ask::Hold { family: one }
            | Ask::Promote { family: one, .. }
            | Ask::Abort { family: one, .. },
            Ask::Hold { family: other }
            | Ask::Promote { family: other, .. }
            | Ask::Abort { family: other, .. },
        ) => one == other,
        _ => false,
    }
}

fn duty_name(duty: &str) -> Result<String, ClusterError> {
    Ok(DutyId::parse(duty)?.as_str().to_owned())
}

fn node_name(node: &str) -> Result<String, ClusterError> {
    names::check("node", node)?;
    Ok(node.to_owned())
}
