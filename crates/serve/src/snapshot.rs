//! The whole cluster, as it was read.

use std::sync::OnceLock;

use axum::body::Bytes;
use incumbent::{Ask, Cluster, ClusterError, LeaseState, Member, Workload, clock};
use serde_json::json;

use crate::call::text;

use crate::documents::{
    DutiesDocument, DutyDocument, IntentDocument, LeaseDocument, LeasesDocument, MemberDocument,
    MembersDocument,
};

/// The whole cluster, as it was read.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) leases: Vec<LeaseState>,
    pub(crate) members: Vec<Member>,
    pub(crate) work: Workload,
    pub(crate) at_ms: u64,
    texts: Texts,
}

/// What is answered with it, made for the first who asks and shared by all: however many don't read what
/// they have asked for, it is there once.
#[derive(Debug, Default)]
struct Texts {
    leases: OnceLock<Bytes>,
    members: OnceLock<Bytes>,
    duties: OnceLock<Bytes>,
    whole: OnceLock<Bytes>,
}

impl Snapshot {
    /// Reads all of it.
    pub(crate) async fn read(cluster: &Cluster) -> Result<Self, ClusterError> {
        let at_ms = clock::wall_ms();
        let (leases, members, work) =
            tokio::join!(cluster.leases(), cluster.members(), cluster.workload());
        let (leases, work) = (leases?, work?);
        // One that has no name yet has only just joined.
        let members = members?.into_iter().filter(|member| !member.node.is_empty()).collect();
        Ok(Self::of(leases, members, work, at_ms))
    }

    pub(crate) fn of(
        leases: Vec<LeaseState>,
        members: Vec<Member>,
        work: Workload,
        at_ms: u64,
    ) -> Self {
        Self { leases, members, work, at_ms, texts: Texts::default() }
    }

    pub(crate) fn leases_text(&self) -> Bytes {
        self.texts.leases.get_or_init(|| text(&self.leases_document())).clone()
    }

    pub(crate) fn members_text(&self) -> Bytes {
        self.texts.members.get_or_init(|| text(&self.members_document())).clone()
    }

    pub(crate) fn duties_text(&self) -> Bytes {
        self.texts.duties.get_or_init(|| text(&self.duties_document())).clone()
    }

    /// All of it, of the cluster of this name, as an event that begins so: it is the same for all.
    pub(crate) fn whole_event(&self, cluster: &str, head: impl FnOnce() -> String) -> Bytes {
        let whole = || {
            let document = json!({
                "cluster": cluster,
                "leases": self.lease_documents(),
                "members": self.member_documents(),
                "duties": self.duty_documents(),
                "intents": self.intent_documents(),
                "as_of_ms": self.at_ms,
            });
            Bytes::from(format!("{}{document}\n\n", head()))
        };
        self.texts.whole.get_or_init(whole).clone()
    }

    pub(crate) fn lease_documents(&self) -> Vec<LeaseDocument> {
        self.leases.iter().map(LeaseDocument::from).collect()
    }

    pub(crate) fn leases_document(&self) -> LeasesDocument {
        LeasesDocument { leases: self.lease_documents(), as_of_ms: self.at_ms }
    }

    pub(crate) fn member_documents(&self) -> Vec<MemberDocument> {
        let wished: Vec<&Ask> = self.work.intents.iter().map(|intent| &intent.ask).collect();
        let mut carried = std::collections::HashMap::new();
        for duty in &self.work.duties {
            if let Some(member) = &duty.member {
                let entry: &mut (usize, u64) = carried.entry(member).or_default();
                *entry = (entry.0 + 1, entry.1.saturating_add(duty.weight));
            }
        }
        let document = |member: &Member| {
            let (duties, weight) = carried.get(&member.id).copied().unwrap_or_default();
            let beside = self.work.loads.get(&member.id).copied().unwrap_or_default();
            MemberDocument::new(member, duties, weight.saturating_add(beside), &wished)
        };
        self.members.iter().map(document).collect()
    }

    pub(crate) fn members_document(&self) -> MembersDocument {
        MembersDocument { members: self.member_documents(), as_of_ms: self.at_ms }
    }

    pub(crate) fn duty_documents(&self) -> Vec<DutyDocument> {
        self.work.duties.iter().map(DutyDocument::from).collect()
    }

    pub(crate) fn intent_documents(&self) -> Vec<IntentDocument> {
        self.work.intents.iter().map(IntentDocument::from).collect()
    }

    pub(crate) fn duties_document(&self) -> DutiesDocument {
        let (duties, intents) = (self.duty_documents(), self.intent_documents());
        DutiesDocument { duties, intents, as_of_ms: self.at_ms }
    }
}
