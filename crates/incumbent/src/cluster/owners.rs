//! Who runs the duties of a family, from memory.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use incumbent_core::Moment;
use incumbent_core::records::MemberState;
use incumbent_duties::DutyId;
use incumbent_duties::duty::check_family;
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;

use super::family::FamilyRecords;
use super::{Cluster, Leader, LeaseState};
use crate::driver::{clock, thread};
use crate::error::ClusterError;
use crate::lead::term::Term;
use crate::node::Node;

/// No longer than this between two looks where the store pushes, and where it doesn't.
const LONGEST: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(1));

/// Leases that are new are looked for when the store gives a hint and when somebody else was seen to run
/// a duty; otherwise so long after the last time, where the store pushes, and where it doesn't.
const LISTING: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(3));

/// After a look the store rests for so many times as long as the look took.
const REST: u32 = 4;

/// Who runs the duties of a family: a copy in memory, which the store's hints keep up to date. Asking
/// it sends no request, takes no lock and waits for nothing.
///
/// Clones share the copy. When the last is dropped it isn't kept any more. One of [`Node::owners`]
/// counts as a handle to the node.
#[derive(Clone, Debug)]
#[must_use = "dropping it ends the copy"]
pub struct Owners {
    copy: Arc<FamilyCopy>,
    /// Which of the changes this handle was told of.
    looked: watch::Receiver<()>,
    node: Option<Node>,
}

/// Who runs a duty, as far as is known without asking; see [`Owners::owner`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KnownOwner {
    /// Who holds the duty's lease; nobody, if it was free.
    pub owner: Option<Leader>,
    /// How long ago the question was sent whose answer says so; zero if it is this node itself.
    pub age: Duration,
}

#[derive(Debug)]
struct FamilyCopy {
    family: String,
    sight: Arc<ArcSwapOption<OwnersSeen>>,
    task: AbortHandle,
}

/// What one look has shown.
#[derive(Debug)]
struct OwnersSeen {
    /// By the names of duties.
    leases: BTreeMap<String, LeaseState>,
    asked: Moment,
    /// For duties that aren't among them.
    listed: Moment,
}

impl Cluster {
    /// Follows who runs the duties of a family, by the store's hints where it pushes and by looking
    /// once a second elsewhere. For clients that send work to the owner of a duty; [`Self::where_is`]
    /// asks the store about a single one.
    ///
    /// A look asks about the leases of the whole family, and while nothing happens the store tells only
    /// what has changed: the beats of those who hold them. That is meant for hundreds of duties; with
    /// many thousands the looks become rarer, so that the store has four times as long to rest as a
    /// look takes, up to ten seconds.
    ///
    /// # Errors
    /// If the family's name can't be one. A store that can't be reached is tried again for as long as
    /// it takes.
    pub fn owners(&self, family: &str) -> Result<Owners, ClusterError> {
        check_family(family)?;
        let sight = Arc::new(ArcSwapOption::empty());
        let (looks, looked) = watch::channel(());
        let following = follow(self.clone(), family.to_owned(), Arc::clone(&sight), looks);
        let task = thread::spawn(following)
            .map_err(|error| ClusterError::Thread(error.to_string()))?
            .abort_handle();
        let copy = FamilyCopy { family: family.to_owned(), sight, task };
        Ok(Owners { copy: Arc::new(copy), looked, node: None })
    }
}

impl Node {
    /// Who runs the duties of a family, from memory, as [`Cluster::owners`]. What this node runs
    /// itself is known for sure: its trust is asked at the moment of the question.
    ///
    /// ```
    /// # use incumbent::family;
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let store = incumbent::open("solo:").await?;
    /// # let node = incumbent::Node::builder().name("a").address("10.0.0.7:80").join(store).await?;
    /// # let run = |duty: incumbent::Duty| async move { duty.lost().await; Ok(()) };
    /// # let _serving = node.serve(family("shard").duties(["7"]).run(run))?;
    /// let shards = node.owners("shard")?; // keep it: it stays up to date by itself
    /// shards.looked().await;              // only the first answer takes a while
    /// # while shards.owner("7").and_then(|known| known.owner).is_none() { tokio::task::yield_now().await; }
    ///
    /// match shards.owner("7").and_then(|known| known.owner) {
    ///     Some(owner) => println!("shard 7 is on {} at {:?}", owner.node, owner.address),
    ///     None => println!("nobody is known to run shard 7: try again later"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Cluster::owners`].
    pub fn owners(&self, family: &str) -> Result<Owners, ClusterError> {
        Ok(Owners { node: Some(self.clone()), ..self.cluster().owners(family)? })
    }

    /// Where others can reach it, as its [builder](crate::Builder::address) said.
    #[must_use]
    pub fn address(&self) -> Option<&str> {
        self.inner.address.as_deref()
    }
}

impl Owners {
    /// Which family.
    #[must_use]
    pub fn family(&self) -> &str {
        &self.copy.family
    }

    /// Waits until the store was looked at, which takes a round trip after the start. Cancel-safe.
    pub async fn looked(&self) {
        let mut looked = self.looked.clone();
        while self.copy.sight.load().is_none() && looked.changed().await.is_ok() {}
    }

    /// Waits until somebody else runs a duty than when this handle was made, or was told so last: what
    /// changed between two calls isn't missed. Cancel-safe.
    pub async fn changed(&mut self) {
        if self.looked.changed().await.is_err() {
            // The process is shutting down.
            std::future::pending().await
        }
    }

    /// Who runs the duty of this name, from memory. Nothing before the store was looked at for the
    /// first time.
    ///
    /// Where the store pushes, a change is known within a few round trips; otherwise within about a
    /// second. [`KnownOwner::age`] says how old the answer is, and grows while the store fails. An
    /// owner whose process died is named until others have seen its ttl pass. What must not reach a
    /// former owner has to carry [`Leader::term`], for the receiver to compare.
    #[must_use]
    pub fn owner(&self, duty: &str) -> Option<KnownOwner> {
        if let Some(owner) = self.own(duty) {
            return Some(KnownOwner { owner: Some(owner), age: Duration::ZERO });
        }
        let sight = self.copy.sight.load();
        let sight = sight.as_ref()?;
        let lease = sight.leases.get(duty);
        let owner = lease.and_then(|lease| lease.leader.as_ref());
        let owner = owner.filter(|owner| !self.is_own(owner)).cloned();
        let asked = if lease.is_some() { sight.asked } else { sight.listed };
        Some(KnownOwner { owner, age: clock::now().since(asked) })
    }

    /// The term under which this node itself runs the duty, if it does and these are the owners of
    /// [`Node::owners`].
    #[must_use]
    pub fn term(&self, duty: &str) -> Option<Term> {
        let lease = DutyId::new(&self.copy.family, duty).ok()?.lease();
        self.node.as_ref()?.term(lease.as_str())
    }

    /// The node that asks, if these are the owners of [`Node::owners`].
    #[must_use]
    pub fn node(&self) -> Option<&Node> {
        self.node.as_ref()
    }

    /// Whether that is this node, or a former incarnation of it. It would know that it runs a duty.
    fn is_own(&self, owner: &Leader) -> bool {
        self.node.as_ref().is_some_and(|node| {
            let same = owner.node == node.name() && owner.address.as_deref() == node.address();
            same || node.member().as_ref() == Some(&owner.member)
        })
    }

    fn own(&self, duty: &str) -> Option<Leader> {
        let node = self.node.as_ref()?;
        let term = self.term(duty)?;
        Some(Leader {
            node: node.name().to_owned(),
            member: term.member().clone(),
            address: node.address().map(ToOwned::to_owned),
            term: term.fence().as_u64(),
            payload: None,
            since_ms: None,
            state: MemberState::Alive,
            age: None,
            ttl: node.timing().ttl,
        })
    }
}

impl Drop for FamilyCopy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn follow(
    cluster: Cluster,
    family: String,
    sight: Arc<ArcSwapOption<OwnersSeen>>,
    looked: watch::Sender<()>,
) {
    let hints = Arc::new(Notify::new());
    let wake = Arc::clone(&hints);
    // Subscribed before the first look, so that nothing falls in between.
    let _guard = cluster.store.hints(&cluster.name, Arc::new(move || wake.notify_one()));
    let push = cluster.store.capabilities().push;
    let (longest, listing) = if push { (LONGEST.0, LISTING.0) } else { (LONGEST.1, LISTING.1) };
    let (mut records, mut list, mut failing) = (None, true, false);
    loop {
        let asked = clock::now();
        match look(&cluster, &family, records.take(), list).await {
            Ok(seen) => {
                failing = false;
                let former = sight.load_full();
                let latest = OwnersSeen::new(&family, &seen, former.as_deref());
                let news = former.is_none_or(|former| !former.is_same(&latest));
                sight.store(Some(Arc::new(latest)));
                if news {
                    looked.send_replace(());
                }
                list = news || clock::now().since(seen.listed()) + longest >= listing;
                records = Some(seen);
            }
            Err(error) if !failing => {
                failing = true;
                tracing::warn!(cluster = %cluster.name, family, action = "owners", %error, "can't look at the leases of duties");
            }
            Err(_) => {}
        }
        let took = clock::now().since(asked);
        tokio::time::sleep((took * REST).min(Duration::from_secs(10))).await;
        tokio::select! {
            () = hints.notified() => list = true,
            () = tokio::time::sleep(longest) => {}
        }
    }
}

/// All leases, or what has changed of those that are known. After a failure nothing is known.
async fn look(
    cluster: &Cluster,
    family: &str,
    known: Option<FamilyRecords>,
    list: bool,
) -> Result<FamilyRecords, ClusterError> {
    let Some(mut known) = known.filter(|_| !list) else {
        return FamilyRecords::list(cluster, family).await;
    };
    known.refresh(cluster).await?;
    Ok(known)
}

impl OwnersSeen {
    /// A look after a former one. Terms only grow, so what shows a lower one is older than what is
    /// known already, and names nobody.
    fn new(family: &str, seen: &FamilyRecords, former: Option<&Self>) -> Self {
        let mut known = BTreeMap::new();
        for mut lease in seen.states() {
            let Some(duty) = DutyId::under(&lease.lease).filter(|it| it.family() == family) else {
                continue;
            };
            if let Some(former) = former.and_then(|former| former.leases.get(duty.name()))
                && former.term > lease.term
            {
                lease = LeaseState { leader: None, ..former.clone() };
            }
            known.insert(duty.name().to_owned(), lease);
        }
        Self { leases: known, asked: seen.asked(), listed: seen.listed() }
    }

    fn is_same(&self, other: &Self) -> bool {
        let owner =
            |lease: &LeaseState| lease.leader.as_ref().map(|it| (it.member.clone(), it.term));
        let owned = |sight: &Self| -> Vec<_> {
            sight
                .leases
                .iter()
                .filter_map(|(duty, lease)| Some((duty.clone(), owner(lease)?)))
                .collect()
        };
        owned(self) == owned(other)
    }
}
