//! What a node knows of its leases.

use super::{
    Config, Known, Lease, LeaseKind, LeaseName, LeaseRecord, Leases, MemberId, Moment, Sighting,
    Stage, Verdict, Watch,
};

impl Leases {
    /// The term in which a lease is held, if trust lasts.
    pub(crate) fn held(&self, name: &LeaseName) -> Option<u64> {
        self.leases.get(name)?.held()
    }

    /// The term under which work at a lease may still run, if trust lasts.
    pub(crate) fn term(&self, name: &LeaseName) -> Option<u64> {
        self.leases.get(name)?.term()
    }

    /// All of these terms.
    pub(crate) fn terms(&self) -> impl Iterator<Item = (&LeaseName, u64)> {
        self.leases.values().filter_map(|lease| Some((&lease.name, lease.term()?)))
    }

    /// All that are held.
    pub(crate) fn holdings(&self) -> impl Iterator<Item = (&LeaseName, u64)> {
        self.leases.values().filter_map(|lease| Some((&lease.name, lease.held()?)))
    }

    /// The leases of duties that are neither held nor free of this node.
    pub(crate) fn ending(&self) -> impl Iterator<Item = &LeaseName> {
        let ending = |lease: &&Lease| match lease.stage {
            Stage::Seeking | Stage::Taking | Stage::Proving(..) => {
                self.running.contains_key(&lease.name)
            }
            Stage::Held(_) => false,
            Stage::Stopping(_) | Stage::ToFree(_) | Stage::Freeing(_) => true,
        };
        let leases = self.leases.values().map(Box::as_ref);
        let duties = leases.filter(|lease| lease.name.kind() == LeaseKind::Duty);
        duties.filter(ending).map(|lease| &lease.name)
    }

    /// Who else holds a lease, as far as is known, and until when that member is waited for.
    pub(crate) fn rival(
        &self,
        name: &LeaseName,
        own: Option<&MemberId>,
        config: &Config,
    ) -> Option<(&LeaseRecord, Option<Moment>)> {
        let lease = self.leases.get(name)?;
        let Known::Record(record, _) = &lease.known else { return None };
        let holder = lease.holder().filter(|holder| Some(*holder) != own)?;
        match self.watches.get(holder)?.verdict(config.timing.ttl, config.planted) {
            Verdict::Unread | Verdict::Absent | Verdict::Closed(_) => None,
            Verdict::Unreadable | Verdict::Vanished => Some((record, None)),
            Verdict::AliveUntil(at) | Verdict::EvictedUntil(at) => Some((record, Some(at))),
        }
    }

    /// Who leads a lease, as far as is known; `was_own` says which members this node was.
    pub(crate) fn sighting(
        &self,
        name: &LeaseName,
        own: Option<&MemberId>,
        was_own: impl Fn(&MemberId) -> bool,
        config: &Config,
    ) -> Option<Sighting<'_>> {
        let lease = self.leases.get(name)?;
        let record = match &lease.known {
            Known::Unread | Known::Unreadable => return None,
            Known::Absent => None,
            Known::Record(record, _) => Some(record.as_ref()),
        };
        let mut seen = lease.seen;
        if self.has_freed_nothing(lease) {
            // By its last beat its holder had not freed it.
            let watch = lease.holder().and_then(|holder| self.watches.get(holder));
            seen = seen.max(watch.map_or(Moment::START, Watch::beaten));
        }
        let free = Sighting { leader: None, own: false, seen };
        let Some(holder) = lease.holder() else { return Some(free) };
        if own == Some(holder) {
            let leader = record.filter(|_| lease.held().is_some()).map(|record| (record, None));
            return Some(Sighting { leader, own: leader.is_some(), ..free });
        }
        if was_own(holder) {
            // Its work has ended or is ending.
            return Some(free);
        }
        let watch = self.watches.get(holder)?;
        let leader = match watch.verdict(config.timing.ttl, config.planted) {
            Verdict::Unread => return None,
            Verdict::Absent | Verdict::Closed(_) => None,
            // It was looked for when its time was over, and had not beaten; nobody closed it yet.
            Verdict::AliveUntil(at) | Verdict::EvictedUntil(at) if watch.read() >= at => {
                return Some(Sighting { seen: watch.read(), ..free });
            }
            Verdict::Unreadable
            | Verdict::Vanished
            | Verdict::AliveUntil(_)
            | Verdict::EvictedUntil(_) => {
                record.map(|record| (record, watch.seen().map(|(member, _)| member)))
            }
        };
        Some(Sighting { leader, ..free })
    }
}
