//! What a server says about itself.

/// What a connection found out, for people and for `doctor`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Facts {
    /// The server's version as a number: 150004 is 15.4.
    pub version: i32,
    /// Whether a pooler in transaction mode stands in between: then nothing is pushed.
    pub pooled: bool,
    /// Whether the server writes through to its disk. Without it a crash of its machine may undo
    /// acknowledged writes, or more.
    pub fsync: bool,
    /// The server's own `synchronous_commit`. Where it is `off`, incumbent turns it on for its
    /// own writes.
    pub synchronous_commit: String,
    /// Which standbys a commit waits for, if any.
    pub synchronous_standby_names: String,
    /// How many standbys are attached.
    pub standbys: i64,
}

impl Facts {
    /// What an operator should know, each a whole sentence.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if !self.fsync {
            warnings.push(
                "fsync is off: a crash of the server's machine may undo terms and let a stale \
                 leader pass its fence. Turn it on."
                    .to_owned(),
            );
        }
        if self.synchronous_commit == "off" {
            warnings.push(
                "synchronous_commit is off; incumbent turns it on for its own writes, but what \
                 the application commits under a lease may be lost in a crash."
                    .to_owned(),
            );
        }
        if self.synchronous_standby_names.is_empty() {
            if self.standbys > 0 {
                warnings.push(
                    "No standby is synchronous: if one is promoted, the last acknowledged writes \
                     may be gone, terms included. Set synchronous_standby_names."
                        .to_owned(),
                );
            }
        } else if self.synchronous_commit == "local" {
            warnings.push(
                "synchronous_commit is local, so commits don't wait for the synchronous standbys: \
                 promoting one may undo acknowledged writes."
                    .to_owned(),
            );
        }
        if self.pooled {
            warnings.push(
                "A pooler stands in between: changes are noticed by polling, and \
                 statement_timeout has to be set at the role (ALTER ROLE … SET)."
                    .to_owned(),
            );
        }
        warnings
    }
}
