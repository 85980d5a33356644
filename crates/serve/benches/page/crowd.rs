//! A large cluster that is nothing but records, and what happens in it.
#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "it ends with the first mistake")]

use std::collections::BTreeMap;

use incumbent::{MemoryStore, Moved, clock};
use incumbent_core::records::{
    Change, ChangeKind, Content, FORMAT, FamilyProfile, Holder, LeaseRecord, MemberRecord,
    MemberState, Profile,
};
use incumbent_core::store::{Exchange, Expect, Key, Lane, Put, Stamp, Store, Version, Write};
use incumbent_core::{LeaseName, MemberId, keys};
use incumbent_duties::DutyId;
use incumbent_duties::records::{Catalog, DutySpec, Moves, Report, Roster};

pub(crate) const NODES: usize = 1000;
pub(crate) const DUTIES: usize = 10_000;
pub(crate) const LEASES: usize = 50;

const CLUSTER: &str = "default";
const FAMILY: &str = "projection";
const ZONES: [&str; 4] = ["east", "north", "south", "west"];

/// Long enough that nobody is missed: nothing beats here.
const TTL: std::time::Duration = std::time::Duration::from_secs(3600);

/// Its records, as they were last written.
pub(crate) struct Crowd {
    store: MemoryStore,
    versions: BTreeMap<Key, Version>,
    batch: Vec<Write>,
    attempts: u64,
    members: Vec<MemberRecord>,
    rosters: Vec<Roster>,
    /// Where each duty is, and in which term.
    places: BTreeMap<DutyId, (usize, u64)>,
    /// The same of the other leases.
    leases: Vec<(usize, u64)>,
    moves: Moves,
}

impl Crowd {
    /// Writes all of it: every node runs ten duties, and some hold a lease.
    pub(crate) async fn new(store: MemoryStore) -> Self {
        let members: Vec<MemberRecord> = (0..NODES).map(member).collect();
        let empty = |it: &MemberRecord| Roster { revision: 1, ..Roster::empty(it.id.clone(), 1) };
        let mut crowd = Self {
            store,
            versions: BTreeMap::new(),
            batch: Vec::new(),
            attempts: 0,
            rosters: members.iter().map(empty).collect(),
            members,
            places: BTreeMap::new(),
            leases: Vec::new(),
            moves: Moves::none(1),
        };
        let specs: Vec<DutySpec> = (0..DUTIES).map(spec).collect();
        let catalogs = Catalog::of(FAMILY, &specs, 1 << 20);
        let hashes: Vec<String> = catalogs.iter().map(Catalog::hash).collect();
        for (catalog, hash) in catalogs.iter().zip(&hashes) {
            crowd.put(keys::catalog(hash), catalog);
        }
        for node in 0..NODES {
            crowd.join(node, &hashes);
        }
        for number in 0..DUTIES {
            crowd.place(&duty(number), number % NODES);
        }
        for node in 0..NODES {
            crowd.put_roster(node);
        }
        crowd.take(&LeaseName::leader(), 0, 1);
        for number in 0..LEASES {
            crowd.leases.push((number, 1));
            crowd.take(&lease(number), number, 1);
        }
        crowd.commit().await;
        crowd
    }

    fn join(&mut self, node: usize, catalogs: &[String]) {
        let id = self.members[node].id.clone();
        let mut profile = Profile::named(&name(node));
        let family = FamilyProfile { catalogs: catalogs.to_vec(), ..FamilyProfile::default() };
        profile.families.insert(FAMILY.to_owned(), family);
        profile.labels.insert("zone".to_owned(), ZONES[node % ZONES.len()].to_owned());
        profile.address = Some(format!("10.0.{}.{}:8080", node / 250, node % 250));
        profile.joined_ms = clock::wall_ms().saturating_sub(3_600_000);
        self.put(keys::profile(&id), &profile);
        let record = self.members[node].clone();
        self.put(keys::member(&id), &record);
        self.put(keys::report(&id), &Report { roster: 1, ..Report::empty(id.clone()) });
    }

    /// A node isn't there any more, and what it ran runs nowhere.
    pub(crate) async fn die(&mut self, node: usize) {
        self.members[node] = self.members[node].closed(MemberState::Expired);
        let record = self.members[node].clone();
        self.put(keys::member(&record.id), &record);
        self.commit().await;
    }

    /// What a dead node ran is taken over by others.
    pub(crate) async fn bury(&mut self, node: usize) {
        let orphans: Vec<DutyId> = self.rosters[node].duties.iter().cloned().collect();
        let heirs: Vec<usize> = (1..NODES).map(|step| (node + step * 7) % NODES).collect();
        let mut heirs = heirs.into_iter().filter(|heir| self.is_alive(*heir)).collect::<Vec<_>>();
        heirs.truncate(orphans.len());
        for (orphan, heir) in orphans.iter().zip(&heirs) {
            self.shift(orphan, *heir, "its node is gone");
        }
        self.plan([node].into_iter().chain(heirs)).await;
    }

    /// Many duties move at once, each to another node.
    pub(crate) async fn shuffle(&mut self, many: usize, seed: usize) {
        let moving: Vec<DutyId> =
            (0..many).map(|at| duty((seed * 131 + at * 97) % DUTIES)).collect();
        let mut touched = Vec::new();
        for one in &moving {
            let (from, _) = self.places[one];
            let mut to = (from + 13) % NODES;
            while !self.is_alive(to) {
                to = (to + 1) % NODES;
            }
            touched.extend([from, to]);
            self.shift(one, to, "nodes become more even");
        }
        self.plan(touched.into_iter()).await;
    }

    /// A lease goes to another node.
    pub(crate) async fn hand_over(&mut self, number: usize) {
        let (holder, term) = self.leases[number];
        let mut next = (holder + 31) % NODES;
        while !self.is_alive(next) {
            next = (next + 1) % NODES;
        }
        self.leases[number] = (next, term + 1);
        self.take(&lease(number), next, term + 1);
        self.commit().await;
    }

    fn is_alive(&self, node: usize) -> bool {
        self.members[node].state == MemberState::Alive
    }

    fn shift(&mut self, duty: &DutyId, to: usize, why: &str) {
        let (from, _) = self.places[duty];
        let at_ms = clock::wall_ms();
        let (from, to_name, why) = (Some(name(from)), Some(name(to)), why.to_owned());
        self.moves.remember([Moved { duty: duty.clone(), from, to: to_name, why, at_ms }]);
        self.place(duty, to);
    }

    /// A duty runs there, and nowhere else.
    fn place(&mut self, duty: &DutyId, node: usize) {
        let (from, term) = self.places.get(duty).copied().unwrap_or((node, 0));
        self.rosters[from].duties.remove(duty);
        self.rosters[node].duties.insert(duty.clone());
        self.places.insert(duty.clone(), (node, term + 1));
        self.take(&duty.lease(), node, term + 1);
    }

    async fn plan(&mut self, touched: impl Iterator<Item = usize>) {
        touched.for_each(|node| self.put_roster(node));
        let moves = self.moves.clone();
        self.put(keys::moves(), &moves);
        self.commit().await;
    }

    fn put_roster(&mut self, node: usize) {
        let roster = self.rosters[node].clone();
        self.put(keys::roster(&roster.member), &roster);
    }

    fn take(&mut self, lease: &LeaseName, node: usize, term: u64) {
        let kind = if term == 1 { ChangeKind::Taken } else { ChangeKind::Inherited };
        let change = Change { term, kind, node: name(node), at_ms: clock::wall_ms() };
        let holder = Holder {
            member: self.members[node].id.clone(),
            node: name(node),
            address: None,
            mark: None,
            unproven: false,
            due_ms: 0,
        };
        let record = LeaseRecord {
            format: FORMAT,
            name: lease.as_str().to_owned(),
            term,
            holder: Some(holder),
            payload: None,
            successor: None,
            lost: 0,
            changes: vec![change],
            extra: BTreeMap::new(),
        };
        self.put(keys::lease(lease), &record);
    }

    fn put(&mut self, key: Key, content: &impl Content) {
        self.attempts += 1;
        let stamp = Stamp { writer: 1, attempt: self.attempts };
        let expect = self.versions.insert(key.clone(), stamp.version());
        let expect = expect.map_or(Expect::Absent, Expect::Version);
        self.batch.push(Write::Put(Put {
            key,
            expect,
            value: content.bytes(),
            stamp,
            hint: true,
            durable: true,
        }));
    }

    /// Writes what was put, all at once.
    async fn commit(&mut self) {
        let exchange = Exchange { writes: std::mem::take(&mut self.batch), reads: Vec::new() };
        let reply = self.store.exchange(CLUSTER, Lane::Change, exchange).await;
        assert!(reply.is_ok(), "{reply:?}");
    }
}

fn name(node: usize) -> String {
    format!("worker-{node:04}")
}

fn duty(number: usize) -> DutyId {
    DutyId::new(FAMILY, &format!("tenant-{number:05}")).expect("a name")
}

fn lease(number: usize) -> LeaseName {
    LeaseName::new(&format!("job-{number:02}")).expect("a name")
}

fn member(node: usize) -> MemberRecord {
    MemberRecord::joining(MemberId::new(&format!("{:032x}", node + 1)), TTL, TTL / 3)
}

fn spec(number: usize) -> DutySpec {
    let duty = duty(number);
    let name = duty.as_str().split_once('/').map_or("", |(_, name)| name);
    serde_json::from_value(serde_json::json!({ "name": name })).expect("a duty")
}
