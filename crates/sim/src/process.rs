//! One process: the core, its clock, and the work that it runs under its leases.

use std::collections::BTreeMap;

use incumbent_core::mutant::Planted;
use incumbent_core::records::Profile;
use incumbent_core::{Config, LeaseName, MemberId, Moment};
use incumbent_duties::records::DutySpec;
use incumbent_duties::{DutyNode, Placement};

use crate::clock::Clock;
use crate::duties;
use crate::scenario::NodePlan;

/// A process of the cluster. It lives on through restarts of its core.
#[derive(Debug)]
pub(crate) struct Process {
    /// What the scenario says of it.
    pub(crate) plan: NodePlan,
    /// Its machine's clock.
    pub(crate) clock: Clock,
    /// The core, while the process is up.
    pub(crate) core: Option<DutyNode>,
    /// Counts starts, so that replies to a former life are not heard.
    pub(crate) life: u64,
    /// Stands still until this instant.
    pub(crate) paused_until: u64,
    /// Can't reach the store until this instant.
    pub(crate) isolated_until: u64,
    /// Hears no replies until this instant.
    pub(crate) deaf_until: u64,
    /// Work that runs: its term and the member under which it was started.
    pub(crate) work: BTreeMap<LeaseName, Work>,
    /// Duties that have started, and their terms.
    pub(crate) active: BTreeMap<LeaseName, u64>,
    /// The wake-up that is noted for it.
    pub(crate) wake: u64,
    /// How many of its plans in a row could not be made.
    pub(crate) failed_plans: u32,
    /// It was asked to leave and comes back after so long.
    pub(crate) back_after: Option<u64>,
}

/// Work under a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Work {
    /// The term under which it was started.
    pub(crate) term: u64,
    /// The member under which it was started.
    pub(crate) member: MemberId,
}

impl Process {
    /// A process that isn't up yet.
    #[must_use]
    pub(crate) fn new(plan: NodePlan, confused: bool) -> Self {
        let clock = Clock { offset: plan.offset, ppm: plan.ppm, lost: 0, wall_ms: 0, confused };
        Self {
            plan,
            clock,
            core: None,
            life: 0,
            paused_until: 0,
            isolated_until: 0,
            deaf_until: 0,
            work: BTreeMap::new(),
            active: BTreeMap::new(),
            wake: u64::MAX,
            failed_plans: 0,
            back_after: None,
        }
    }

    /// Starts the process.
    pub(crate) fn start(
        &mut self,
        instant: u64,
        seed: u64,
        push: bool,
        planted: Planted,
        leases: &[LeaseName],
        duties: &[DutySpec],
    ) {
        let cluster_lead = self.plan.cluster_lead;
        let config = Config {
            profile: Profile { cluster_lead, ..Profile::named(&self.plan.name) },
            timing: self.plan.timing.clone(),
            push,
            max_value: 16 << 20,
            membership: self.plan.membership,
            planted,
        };
        let now = self.clock.at(instant);
        let mut core = DutyNode::new(config, Placement::default(), seed, now);
        core.tell_wall(self.clock.wall(instant));
        for (lease, candidacy) in leases.iter().zip(&self.plan.candidacies) {
            if let Some(candidacy) = candidacy {
                core.campaign(now, lease.clone(), candidacy.clone());
            }
        }
        duties::serve(&mut core, now, &self.plan, duties);
        self.life += 1;
        self.core = Some(core);
    }

    /// The term in which it trusts at this instant to hold the lease.
    #[must_use]
    pub(crate) fn trusts(&self, lease: &LeaseName, instant: u64) -> Option<u64> {
        self.core.as_ref()?.trusts(lease, self.clock.at(instant))
    }

    /// The core, and what its clock shows, if it trusts at this instant that it is alive.
    #[must_use]
    pub(crate) fn trusting(&self, instant: u64) -> Option<(&DutyNode, Moment)> {
        let core = self.core.as_ref()?;
        let now = self.clock.at(instant);
        (now < core.trusted_until()).then_some((core, now))
    }

    /// Until when its present member trusts, by its clock.
    #[must_use]
    pub(crate) fn trusted_until(&self) -> Moment {
        self.core.as_ref().map_or(Moment::START, |core| core.trusted_until())
    }

    /// Its present member.
    #[must_use]
    pub(crate) fn member(&self) -> Option<&MemberId> {
        self.core.as_ref()?.member()
    }
}
