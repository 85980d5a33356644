use std::collections::BTreeMap;
use std::time::Duration;

use incumbent_core::store::{Expect, Key, Outcome, Put, Record, Version};

use super::Mistake;

/// The records of a model store.
#[derive(Clone, Default)]
pub(super) struct Shelf {
    mistake: Option<Mistake>,
    entries: BTreeMap<Place, Entry>,
    writes: u64,
    reads: u64,
}

/// Where a record is: its cluster and its key, unless a mistake mixes them up.
pub(super) type Place = (String, String);

#[derive(Clone)]
struct Entry {
    value: Vec<u8>,
    version: Version,
    written: u64,
    before: Option<(Vec<u8>, Version)>,
}

impl Shelf {
    pub(super) fn new(mistake: Option<Mistake>) -> Self {
        Self { mistake, ..Self::default() }
    }

    pub(super) fn clear(&mut self) {
        self.entries.clear();
    }

    /// Whether what is there is what the write expects.
    pub(super) fn matches(&self, cluster: &str, put: &Put) -> bool {
        let entry = self.entries.get(&self.place(cluster, &put.key));
        match (&put.expect, entry) {
            (Expect::Absent, None) => true,
            (Expect::Absent, Some(_)) => self.makes(Mistake::CreateOverwrites),
            (Expect::Version(_), None) => false,
            (Expect::Version(version), Some(entry)) => {
                entry.version == *version || self.makes(Mistake::SwapIgnoresVersion)
            }
        }
    }

    pub(super) fn write(&mut self, cluster: &str, put: &Put) -> Outcome {
        self.writes = self.writes.saturating_add(1);
        let place = self.place(cluster, &put.key);
        let old = self.entries.remove(&place);
        let written = old.as_ref().map_or(1, |old| old.written.saturating_add(1));
        let version = match (&old, self.mistake) {
            (_, Some(Mistake::VersionsFromContent)) => Version::new(&content_hash(&put.value)),
            (_, Some(Mistake::VersionsRestart)) => Version::new(&written.to_string()),
            (Some(old), Some(Mistake::SameContentKept)) if old.value == put.value => {
                old.version.clone()
            }
            _ => Version::new(&format!("w{}", self.writes)),
        };
        let released = put.value.windows(13).any(|part| part == br#""holder":null"#);
        if !(released && self.makes(Mistake::ReleaseDeletes)) {
            let before = old.map(|old| (old.value, old.version));
            let (value, version) = (self.kept(&put.value), version.clone());
            self.entries.insert(place, Entry { value, version, written, before });
        }
        Outcome::Applied(version)
    }

    pub(super) fn refuse(&mut self, cluster: &str, put: &Put) -> Outcome {
        self.writes = self.writes.saturating_add(1);
        let (version, place) =
            (Version::new(&format!("w{}", self.writes)), self.place(cluster, &put.key));
        if self.makes(Mistake::RefusalTouches)
            && let Some(entry) = self.entries.get_mut(&place)
        {
            entry.version = version;
        }
        Outcome::Refused
    }

    pub(super) fn delete(&mut self, cluster: &str, key: &Key) -> Outcome {
        let gone = self.entries.remove(&self.place(cluster, key));
        if gone.is_none() && self.makes(Mistake::DeleteNeedsRecord) {
            return Outcome::Refused;
        }
        Outcome::Deleted
    }

    pub(super) fn record(&mut self, cluster: &str, key: &Key) -> Option<Record> {
        self.reads = self.reads.saturating_add(1);
        let stale = self.makes(Mistake::StaleReads) && self.reads.is_multiple_of(5);
        let entry = self.entries.get(&self.place(cluster, key))?;
        let (value, version) = match &entry.before {
            Some((value, version)) if stale => (value.clone(), version.clone()),
            _ => (entry.value.clone(), entry.version.clone()),
        };
        Some(Record { key: key.clone(), value, version, age: self.age() })
    }

    pub(super) fn records(&self, cluster: &str, prefix: &Key) -> Vec<Record> {
        let (shelf, start) = self.place(cluster, prefix);
        let own = start.len().saturating_sub(prefix.as_str().len());
        let mut records: Vec<_> = self
            .entries
            .iter()
            .filter(|((other, key), _)| *other == shelf && self.starts(key, &start))
            .filter_map(|((_, key), entry)| {
                let (value, version) = (entry.value.clone(), entry.version.clone());
                Some(Record { key: Key::new(key.get(own..)?), value, version, age: self.age() })
            })
            .collect();
        match self.mistake {
            Some(Mistake::PrefixTruncated) => records.truncate(1_000),
            Some(Mistake::PrefixUnordered) => {
                records.sort_by_key(|record| record.key.as_str().len())
            }
            _ => {}
        }
        records
    }

    fn makes(&self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake)
    }

    fn place(&self, cluster: &str, key: &Key) -> Place {
        match self.mistake {
            Some(Mistake::ClustersShared) => (String::new(), key.to_string()),
            Some(Mistake::ClustersJoined) => (String::new(), format!("{cluster}/{key}")),
            Some(Mistake::KeysFoldCase) => (cluster.to_owned(), key.as_str().to_lowercase()),
            _ => (cluster.to_owned(), key.to_string()),
        }
    }

    fn starts(&self, key: &str, start: &str) -> bool {
        let pattern = self.makes(Mistake::PrefixIsPattern);
        let mut characters = key.chars();
        start.chars().all(|wanted| {
            characters.next().is_some_and(|found| found == wanted || pattern && wanted == '_')
        })
    }

    fn kept(&self, value: &[u8]) -> Vec<u8> {
        let mut value = value.to_vec();
        match self.mistake {
            Some(Mistake::ValuesCut) => value.truncate(65_535),
            Some(Mistake::ValuesReprinted) => value.retain(|byte| *byte != b' '),
            _ => {}
        }
        value
    }

    fn age(&self) -> Option<Duration> {
        self.makes(Mistake::AgeFrozen).then_some(Duration::ZERO)
    }
}

/// FNV-1a, enough for a mistake.
fn content_hash(value: &[u8]) -> String {
    let hash = value.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}
