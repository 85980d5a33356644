//! Watching the processes of those that this node waits for.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use incumbent_core::random::Random;
use incumbent_core::records::{Content, LeaseRecord, Profile};
use incumbent_core::{LeaseName, MemberId, keys};
use incumbent_duties::DutyId;
use tokio::task::JoinHandle;

use crate::cluster::Cluster;
use crate::driver::command::{Command, Commands};
use crate::driver::{seed, thread};
use crate::hint::HintTarget;
use crate::node::witness::{self, DeathVerdict, Ward};

/// A profile comes a moment after its member.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// So often is a profile looked for that isn't there or can't be read.
const LOOKS: u32 = 8;

/// One in so many of those that join looks for what others left behind.
const COLLECTS: u64 = 4;

/// Who waits for whom. One task for each member that holds something wanted here.
pub(super) struct Witnesses {
    enabled: bool,
    /// Whether those who are waited for are told so.
    post: bool,
    /// Whether this node ends with this process, so that a witness of it may close the member.
    proven: bool,
    cluster: Cluster,
    commands: Commands,
    holders: HashMap<LeaseName, MemberId>,
    tasks: HashMap<MemberId, WatchTask>,
    /// How many holders are remembered at most before those are forgotten that nobody waits for.
    most: usize,
    /// For how long the closed stay visible, if no leader of the cluster looks after them.
    visible: Option<Duration>,
    collecting: Option<WatchTask>,
}

/// Below this nothing is gained by forgetting.
const FEW: usize = 64;

struct WatchTask {
    leases: usize,
    /// Where that member is told things, if it can be.
    target: Option<HintTarget>,
    handle: Option<JoinHandle<()>>,
}

impl Drop for WatchTask {
    fn drop(&mut self) {
        if let Some(handle) = &self.handle {
            handle.abort();
        }
    }
}

impl Witnesses {
    pub(super) fn new(
        enabled: bool,
        cluster: Cluster,
        commands: Commands,
        visible: Option<Duration>,
    ) -> Self {
        Self {
            enabled,
            post: false,
            proven: true,
            cluster,
            commands,
            holders: HashMap::new(),
            tasks: HashMap::new(),
            most: FEW,
            visible,
            collecting: None,
        }
    }

    /// Whether the end of this process is the end of all that this node does.
    pub(super) fn of_proven(self, proven: bool) -> Self {
        Self { proven, ..self }
    }

    /// Whether those who are waited for are told so.
    pub(super) fn with_post(self, post: bool) -> Self {
        Self { post, ..self }
    }

    /// Takes in who holds a lease that this node stands for.
    pub(super) fn observed(
        &mut self,
        lease: &LeaseName,
        record: Option<&LeaseRecord>,
        own: Option<&MemberId>,
    ) {
        let holder = record.and_then(|record| record.holder.as_ref()).map(|holder| &holder.member);
        let holder = holder.filter(|holder| (self.enabled || self.post) && Some(*holder) != own);
        if holder == self.holders.get(lease) {
            return;
        }
        self.forget(lease);
        if let Some(holder) = holder {
            self.holders.insert(lease.clone(), holder.clone());
            let (cluster, commands) = (&self.cluster, &self.commands);
            let (post, witness) = (self.post, self.enabled);
            let task = self.tasks.entry(holder.clone()).or_insert_with(|| {
                let watching =
                    watch(cluster.clone(), holder.clone(), commands.clone(), post, witness);
                let handle = thread::spawn_runner(watching).ok();
                WatchTask { leases: 0, target: None, handle }
            });
            task.leases += 1;
        }
    }

    /// Where a member is told things that is waited for. Says whether that is news.
    pub(super) fn met(&mut self, member: &MemberId, target: HintTarget) -> bool {
        let task = self.tasks.get_mut(member);
        task.is_some_and(|task| task.target.replace(target) != Some(target))
    }

    /// Where those are told things that are waited for.
    pub(super) fn targets(&self) -> impl Iterator<Item = HintTarget> {
        self.tasks.values().filter_map(|task| task.target)
    }

    /// This node is a member from now on: whoever sees this process die closes it.
    pub(super) fn joined(&mut self, member: &MemberId) {
        if let Some(url) = self.cluster.store.url.as_deref().filter(|_| self.proven) {
            let (url, cluster) = (url.to_owned(), self.cluster.name().to_owned());
            witness::entrust(&Ward { url, cluster, member: member.as_str().to_owned() });
        }
        if let Some(visible) = self.visible
            && seed::draw().is_multiple_of(COLLECTS)
        {
            let collecting = collect(self.cluster.clone(), member.clone(), visible, self.enabled);
            let handle = thread::spawn_runner(collecting).ok();
            self.collecting = Some(WatchTask { leases: 0, target: None, handle });
        }
    }

    /// This member is over.
    pub(super) fn ended(&self, member: &MemberId) {
        witness::release(member.as_str());
    }

    /// Forgets the holders of duties that this node doesn't want any more. The core doesn't say
    /// when that is, but what it wants. Done when the number has doubled, so that it costs next to
    /// nothing.
    pub(super) fn forget_unwanted<'a>(&mut self, wanted: impl Iterator<Item = &'a DutyId>) {
        if self.holders.len() <= self.most {
            return;
        }
        let wanted: HashSet<LeaseName> = wanted.map(DutyId::lease).collect();
        let unwanted =
            self.holders.keys().filter(|lease| lease.is_duty() && !wanted.contains(*lease));
        for lease in unwanted.cloned().collect::<Vec<_>>() {
            self.forget(&lease);
        }
        self.most = FEW.max(self.holders.len() * 2);
    }

    /// All is to be learned anew.
    pub(super) fn forget_all(&mut self) {
        self.holders.clear();
        self.tasks.clear();
    }

    /// Nobody wants the lease any more, or somebody else has it.
    pub(super) fn forget(&mut self, lease: &LeaseName) {
        let Some(holder) = self.holders.remove(lease) else { return };
        if let Some(task) = self.tasks.get_mut(&holder) {
            task.leases -= 1;
            if task.leases == 0 {
                self.tasks.remove(&holder);
            }
        }
    }
}

async fn watch(cluster: Cluster, member: MemberId, commands: Commands, post: bool, witness: bool) {
    let Some(profile) = profile(&cluster, &member).await else { return };
    let host = profile.host.clone();
    if post && profile.control.is_some() {
        commands.send(Command::Met { member: member.clone(), profile: Box::new(profile) });
    }
    let Some(host) = host.filter(|_| witness) else { return };
    if witness::death(&host).await == DeathVerdict::Dead {
        tracing::info!(cluster = cluster.name(), %member, action = "witness", "its processes are dead");
        commands.send(Command::Dead { member });
    }
}

/// Never a reason to wait: what isn't done is left to the next.
async fn collect(cluster: Cluster, own: MemberId, visible: Duration, witness: bool) {
    let random = Random::new(seed::draw());
    if let Err(error) = cluster.collect_remains(&own, visible, witness, random).await {
        tracing::debug!(cluster = cluster.name(), action = "collect", %error, "left to others");
    }
}

async fn profile(cluster: &Cluster, member: &MemberId) -> Option<Profile> {
    for look in 0..LOOKS {
        if let Ok(Some(stored)) = cluster.read_key(keys::profile(member)).await {
            return Profile::read(&stored).ok();
        }
        tokio::time::sleep(FIRST_PAUSE * (1 << look)).await;
    }
    None
}

#[cfg(test)]
mod tests {
    use incumbent_core::records::Holder;

    use super::*;

    #[test]
    fn o13_holders_of_duties_that_nobody_wants_are_forgotten() {
        let store = incumbent_memory::MemoryStore::new();
        let cluster = Cluster::new(store, "test").unwrap();
        let mut witnesses = Witnesses::new(true, cluster, Commands::channel().0, None);
        let duty = |number: u32| DutyId::new("work", &format!("d{number}")).unwrap();
        let record = held();
        // In the end it wants the last ten, of all that it ever contended for.
        for number in 0..10_000_u32 {
            let wanted: Vec<DutyId> = (number.saturating_sub(9)..=number).map(duty).collect();
            witnesses.observed(&duty(number).lease(), Some(&record), None);
            witnesses.forget_unwanted(wanted.iter());
            assert!(
                witnesses.holders.len() <= FEW + 1,
                "{} after {number}",
                witnesses.holders.len()
            );
        }
        assert!(witnesses.holders.contains_key(&duty(9_999).lease()));
        assert_eq!(witnesses.tasks.len(), 1, "one for each member that holds something");
    }

    fn held() -> LeaseRecord {
        let holder = Holder {
            member: MemberId::new("m"),
            node: "other".to_owned(),
            address: None,
            mark: None,
            unproven: false,
            due_ms: 0,
        };
        let lease = LeaseName::new("any").unwrap();
        LeaseRecord { term: 1, holder: Some(holder), ..LeaseRecord::fresh(&lease) }
    }
}
