use serde::{Deserialize, Serialize};

/// The processes whose death proves that nothing of a member runs any more.
///
/// The numbers mean something only on the same boot of the same machine, in the same namespaces.
/// Whoever finds anything else than it expects concludes nothing, and waits the ttl.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Evidence {
    /// The inode of the PID namespace in which the process ids count.
    pub pid_namespace: u64,
    /// The inode of the time namespace in which the start times count.
    pub time_namespace: u64,
    /// The addresses of the machine's network cards. A copy of a virtual machine shares its boot,
    /// its namespaces and its process ids, but hardly ever these; where they aren't told, nothing
    /// is proven.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cards: Option<Vec<String>>,
    /// All of these must be dead.
    pub processes: Vec<ProcessEvidence>,
    /// And this must be there, if it is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<Mark>,
}

/// One process, so that no other can be taken for it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProcessEvidence {
    /// Its id.
    pub pid: u32,
    /// When it started, in the kernel's ticks since boot.
    pub start: u64,
    /// The inode of a pidfd of it, which newer kernels never use twice.
    pub inode: u64,
}

/// A file that the last of the processes leaves behind once nothing below it lives.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Mark {
    /// Where it is.
    pub path: String,
    /// The user whose file it must be.
    pub owner: u32,
}
