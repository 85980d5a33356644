use crate::demo::stage::Stage;

/// What the keys are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// A lease, by its place in the list: its leader is meant, whoever that is.
    Lease(usize),
    /// A node, by its place in the fleet.
    Node(usize),
}

impl Target {
    /// The one below or above. Nodes that are gone are passed over.
    pub(super) fn next(self, stage: &Stage, forwards: bool) -> Self {
        let leases = (0..stage.recipe.leases.len()).map(Self::Lease);
        let there =
            |place: &usize| stage.process(*place).is_ok_and(|process| process.condition.is_there());
        let nodes = (0..stage.processes.len()).filter(there).map(Self::Node);
        let all: Vec<Self> = leases.chain(nodes).collect();
        let count = all.len().max(1);
        let step = if forwards { 1 } else { count - 1 };
        let next = match all.iter().position(|target| *target == self) {
            Some(place) => (place + step) % count,
            None => 0,
        };
        all.get(next).copied().unwrap_or(self)
    }

    /// The node that is meant, if there is one.
    pub(super) fn node(self, stage: &Stage) -> Option<usize> {
        match self {
            Self::Lease(_) => stage.leader(self.lease(stage)?).map(|(leader, _)| leader),
            Self::Node(place) => {
                let there = stage.process(place).is_ok_and(|it| it.condition.is_there());
                there.then_some(place)
            }
        }
    }

    /// The lease that is picked.
    pub(super) fn lease(self, stage: &Stage) -> Option<&str> {
        match self {
            Self::Lease(number) => stage.recipe.leases.get(number).map(String::as_str),
            Self::Node(_) => None,
        }
    }
}
