//! What a client was told about how long it may trust. What was told is kept.

use std::sync::{Mutex, MutexGuard, PoisonError};

use incumbent::Moment;

use crate::trust_file::TrustFile;

/// One for each hold. Telling and ending can't happen at once, so that nothing is told after it was
/// decided from when on the lease may be freed.
#[derive(Debug, Default)]
pub(crate) struct Ledger(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    /// The latest end of trust that was ever told.
    told: Option<Moment>,
    /// Nothing more is told.
    closed: bool,
    file: Option<TrustFile>,
}

impl Ledger {
    /// From now on what is told is written to this file too.
    pub(crate) fn keep(&self, file: TrustFile) {
        self.entries().file = Some(file);
    }

    /// The name of the file.
    pub(crate) fn file(&self) -> Option<String> {
        self.entries().file.as_ref().map(|file| file.path().display().to_string())
    }

    /// Tells that trust lasts until then, to whoever reads the file and, if this says so, to who
    /// asked. It counts as told from here on, whether or not it arrives.
    pub(crate) fn tell(&self, until: Moment) -> bool {
        let mut entries = self.entries();
        if entries.closed || until == Moment::START {
            return false;
        }
        entries.told = entries.told.max(Some(until));
        if let Some(file) = &entries.file {
            file.write(until);
        }
        true
    }

    /// Tells nothing more, and that trust is over to whoever reads the file.
    pub(crate) fn close(&self) {
        let mut entries = self.entries();
        entries.closed = true;
        if let Some(file) = &entries.file {
            file.write(Moment::START);
        }
    }

    /// Until when somebody may trust by what they were told; nothing if nobody was told anything.
    /// It may still grow unless this was closed.
    pub(crate) fn told(&self) -> Option<Moment> {
        self.entries().told
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_was_told_is_remembered_and_nothing_is_told_after_the_end() {
        let at = |seconds| Moment::START + Duration::from_secs(seconds);
        let ledger = Ledger::default();
        assert_eq!(ledger.told(), None);
        assert!(ledger.tell(at(20)) && ledger.tell(at(10)));
        assert_eq!(ledger.told(), Some(at(20)), "the earlier end doesn't take the later one back");
        assert!(!ledger.tell(Moment::START), "that is the end, and no trust");
        ledger.close();
        assert!(!ledger.tell(at(30)));
        assert_eq!(ledger.told(), Some(at(20)));
    }
}
