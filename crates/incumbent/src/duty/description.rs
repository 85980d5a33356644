use incumbent_duties::records::{DutySpec, LeaderRule};

/// A duty that should run, and where it may.
///
/// Wherever one is asked for, the duty's name alone will do:
///
/// ```
/// # use incumbent::DutyDescription;
/// let plain = DutyDescription::from("orders");
/// let heavy = DutyDescription::named("invoices").weight(3).version("3").selector("disk", "fast");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DutyDescription(pub(crate) DutySpec);

impl DutyDescription {
    /// A duty of this name that runs anywhere. Any text without control characters will do.
    #[must_use]
    pub fn named(name: impl AsRef<str>) -> Self {
        Self(DutySpec::named(name.as_ref()))
    }

    /// How much of a node it takes (1), in the unit of [`Builder::capacity`](crate::Builder::capacity).
    #[must_use]
    pub fn weight(mut self, weight: u64) -> Self {
        self.0.weight = weight;
        self
    }

    /// Runs only on nodes whose family has [this version](crate::Family::version).
    #[must_use]
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.0.version = Some(version.into());
        self
    }

    /// Duties of one group run on one node if the placement is by group affinity.
    #[must_use]
    pub fn group(mut self, group: impl Into<String>) -> Self {
        self.0.group = Some(group.into());
        self
    }

    /// Runs only on nodes with this label. May be repeated: then all are needed.
    #[must_use]
    pub fn selector(mut self, label: impl Into<String>, value: impl Into<String>) -> Self {
        self.0.selector.insert(label.into(), value.into());
        self
    }

    /// No two duties that name the same here run on one node.
    #[must_use]
    pub fn apart(mut self, what: impl Into<String>) -> Self {
        self.0.apart = Some(what.into());
        self
    }

    /// The duties of the family are spread over the values of this label, such as `zone`.
    #[must_use]
    pub fn spread(mut self, label: impl Into<String>) -> Self {
        self.0.spread = Some(label.into());
        self
    }

    /// Runs on the node that leads the cluster, and nowhere else.
    #[must_use]
    pub fn on_leader(mut self) -> Self {
        self.0.leader = LeaderRule::Only;
        self
    }

    /// Runs on the node that leads the cluster only if it fits nowhere else.
    #[must_use]
    pub fn avoid_leader(mut self) -> Self {
        self.0.leader = LeaderRule::Avoid;
        self
    }

    /// Runs on the node of this name if it fits there.
    #[must_use]
    pub fn prefer_node(mut self, node: impl Into<String>) -> Self {
        self.0.prefers = Some(node.into());
        self
    }

    /// Makes it a composite: several parts that run as one, on one node, under one lease. The work
    /// finds them in [`Duty::parts`](crate::Duty::parts).
    #[must_use]
    pub fn parts<P: Into<String>>(mut self, parts: impl IntoIterator<Item = P>) -> Self {
        self.0.parts = parts.into_iter().map(Into::into).collect();
        self
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }
}

impl From<&str> for DutyDescription {
    fn from(name: &str) -> Self {
        Self::named(name)
    }
}

impl From<String> for DutyDescription {
    fn from(name: String) -> Self {
        Self::named(name)
    }
}

impl From<&String> for DutyDescription {
    fn from(name: &String) -> Self {
        Self::named(name)
    }
}

impl From<&DutyDescription> for DutyDescription {
    fn from(description: &DutyDescription) -> Self {
        description.clone()
    }
}
