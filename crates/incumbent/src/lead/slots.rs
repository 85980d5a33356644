//! Up to so many holders of a named thing, each with a fence of its own.

mod attempt;
mod gate;

use std::future::Future;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use incumbent_core::LeaseName;
use incumbent_core::names::NameError;
use incumbent_core::random::Random;

use crate::driver::{seed, thread};
use crate::error::{CampaignError, Closed, Unfreed};
use crate::lead::attempt::Attempt;
use crate::lead::campaign::Campaign;
use crate::lead::candidacy::Candidacy;
use crate::lead::leadership::Leadership;
use crate::lead::term::Term;
use crate::node::Node;

pub use attempt::{SlotAttempt, SlotsError};
use gate::Gate;
pub(crate) use gate::{Gates, Release};

/// A semaphore for the whole cluster: up to so many slots of one name may be held at once.
/// Made by [`Node::slots`]. Clones are the same.
///
/// ```
/// # use incumbent::Node;
/// # async fn import(_: u16, _: incumbent::Fence) {}
/// # async fn start(node: Node) -> Result<(), Box<dyn std::error::Error>> {
/// let importers = node.slots("importers", 3)?;
/// let slot = importers.acquire().await?; // waits while three are held elsewhere
/// import(slot.index(), slot.fence()).await;
/// slot.release().await?; // or drop it
/// # Ok(())
/// # }
/// ```
///
/// Each slot is a lease (`incumbent/slot/importers/0` and so on, names that no lease of an
/// application can have). So all that holds for leases holds for slots: at no instant do two
/// members trust that they hold the same one.
///
/// # Who gets one
///
/// A waiter stands for all slots that aren't this node's, and takes the first that is won. If two
/// are freed at once and both are won, the second is given back before anybody hears of it. Within
/// a node, waiters are served in the order in which they asked. Among nodes there is no order. A
/// waiter costs its node as much as standing for that many leases, and each slot that is freed
/// wakes all waiters. Slots are made for dozens of slots and waiters, not for thousands.
///
/// # When nodes don't agree how many there are
///
/// Each node stands for the slots that it knows. While a deploy raises 3 to 5, old nodes compete for the
/// first three and new ones for all five: up to five are held. While one lowers 5 to 3, up to five
/// are held until the old nodes have given back the last two; new ones never take those.
///
/// This counts as a handle to its node: as long as it exists, dropping the [`Node`] doesn't make it leave.
#[derive(Clone, Debug)]
pub struct Slots {
    node: Node,
    leases: Arc<[LeaseName]>,
    gate: Arc<Gate>,
}

/// A slot that is held. Dropping it says that the work under it has ended, and frees it.
///
/// The [`Term`] that it derefs to answers all questions, as with a [`Leadership`].
///
/// **A fence belongs to its slot.** Fences of different slots can't be compared: let the system that
/// the work writes to keep the highest fence for each [index](Self::index).
#[derive(Debug)]
#[must_use = "dropping it frees the slot"]
pub struct Slot {
    index: u16,
    leadership: Leadership,
}

impl Node {
    /// Up to `count` holders of a named thing, of all nodes together, each with a fence of its own.
    ///
    /// # Errors
    /// If the name isn't valid for a lease, or the count isn't from 1 to 1000.
    pub fn slots(&self, name: &str, count: u16) -> Result<Slots, SlotsError> {
        if !(1..=1000).contains(&count) {
            return Err(SlotsError::Count { count });
        }
        let lease = |number| LeaseName::slot(name, number);
        let leases = (0..count).map(lease).collect::<Result<_, NameError>>()?;
        Ok(Slots { node: self.clone(), leases, gate: self.inner.gates.of(name) })
    }
}

impl Slots {
    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u16 {
        u16::try_from(self.leases.len()).unwrap_or(u16::MAX)
    }

    /// The leases of the slots, in the order of their indices.
    #[must_use]
    pub fn leases(&self) -> &[LeaseName] {
        &self.leases
    }

    /// Waits for a slot. Cancel-safe: dropped before it is ready, it gives back what it may have
    /// won, and its place in the line is lost.
    ///
    /// # Errors
    /// If the node has left.
    pub async fn acquire(&self) -> Result<Slot, CampaignError> {
        let _turn = self.gate.turn().await;
        // One after the other at first, so that nobody takes several and gives them back.
        match self.try_each().await? {
            SlotAttempt::Acquired(slot) => Ok(slot),
            SlotAttempt::Full | SlotAttempt::Unavailable { .. } => self.wait().await,
        }
    }

    /// Waits for a slot, but not for longer than this. Nothing if none was to be had.
    ///
    /// # Errors
    /// If the node has left.
    pub async fn acquire_within(&self, span: Duration) -> Result<Option<Slot>, CampaignError> {
        tokio::select! {
            biased;
            slot = self.acquire() => slot.map(Some),
            () = thread::rest(span) => Ok(None),
        }
    }

    /// Tries once to get a slot, one after the other, and says how that went. Others of this node
    /// who wait come first. Cancel-safe as [`Self::acquire`].
    ///
    /// # Errors
    /// If the node has left.
    pub async fn try_acquire(&self) -> Result<SlotAttempt, CampaignError> {
        // Who waits can't stand for what is being tried here, and must know when that is over.
        let _release = Release::new(&self.gate);
        self.try_each().await
    }

    async fn try_each(&self) -> Result<SlotAttempt, CampaignError> {
        let count = self.leases.len();
        // From anywhere, so that not all who start together go for the same one.
        let first = Random::new(seed::draw()).below(count as u64) as usize;
        let mut unavailable = None;
        for number in (first..count).chain(0..first) {
            let Some(lease) = self.leases.get(number) else { continue };
            match self.node.try_lead(Candidacy::own(lease.clone())).await? {
                Attempt::Elected(leadership) => {
                    return Ok(SlotAttempt::Acquired(self.slot(number, leadership)));
                }
                Attempt::OtherLeader(_) | Attempt::AlreadyLeader { .. } | Attempt::Conflict => {}
                Attempt::Unavailable { why } => {
                    unavailable = Some(why);
                    // The next would take as long, and say the same.
                    break;
                }
            }
        }
        Ok(unavailable.map_or(SlotAttempt::Full, |why| SlotAttempt::Unavailable { why }))
    }

    /// Stands for all slots until one is won. The others are withdrawn then.
    async fn wait(&self) -> Result<Slot, CampaignError> {
        let mut campaigns: Vec<(usize, Campaign)> = Vec::new();
        loop {
            for (number, lease) in self.leases.iter().enumerate() {
                if campaigns.iter().any(|(known, _)| *known == number) {
                    continue;
                }
                match self.node.campaign(Candidacy::own(lease.clone())) {
                    Ok(campaign) => campaigns.push((number, campaign)),
                    // This node holds it already. It says so when it has given it back.
                    Err(CampaignError::Duplicate { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
            let won = tokio::select! {
                biased;
                won = first(&mut campaigns) => Some(won),
                () = self.gate.released() => None,
            };
            if let Some(won) = won {
                let (index, leadership) = won.map_err(|Closed| CampaignError::Left)?;
                let (number, campaign) = campaigns.swap_remove(index);
                return Ok(self.slot(number, leadership.with_campaign(campaign)));
            }
        }
    }

    fn slot(&self, number: usize, leadership: Leadership) -> Slot {
        let leadership = leadership.with_release(Release::new(&self.gate));
        Slot { index: u16::try_from(number).unwrap_or(u16::MAX), leadership }
    }
}

/// The first campaign that is won, by its index. Cancel-safe, because each of them is.
async fn first(campaigns: &mut [(usize, Campaign)]) -> Result<(usize, Leadership), Closed> {
    type Election<'a> = Pin<Box<dyn Future<Output = Result<Leadership, Closed>> + Send + 'a>>;
    let mut elections: Vec<Election<'_>> = campaigns
        .iter_mut()
        .map(|(_, campaign)| -> Election<'_> { Box::pin(campaign.elected()) })
        .collect();
    std::future::poll_fn(|context| {
        for (index, election) in elections.iter_mut().enumerate() {
            if let Poll::Ready(won) = election.as_mut().poll(context) {
                return Poll::Ready(won.map(|leadership| (index, leadership)));
            }
        }
        Poll::Pending
    })
    .await
}

impl Slot {
    /// Which of the slots it is, from 0.
    #[must_use]
    pub fn index(&self) -> u16 {
        self.index
    }

    /// Frees the slot and waits until the store has confirmed it; as [`Leadership::release`].
    ///
    /// # Errors
    /// As there.
    pub async fn release(self) -> Result<(), Unfreed> {
        self.leadership.release().await
    }

    /// The leadership of the slot's lease, for whoever treats all leases alike.
    pub fn into_leadership(self) -> Leadership {
        self.leadership
    }
}

impl Deref for Slot {
    type Target = Term;

    fn deref(&self) -> &Term {
        &self.leadership
    }
}
