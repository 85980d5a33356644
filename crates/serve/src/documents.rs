//! What is answered and what is asked, as docs/http.md has it.

mod asked;
mod made;

use std::collections::BTreeMap;

use crate::document::answer;

pub(crate) use asked::{
    HoldRequest, NothingRequest, OnClose, PinRequest, ProgressRequest, ReportRequest, Reported,
    ServeRequest, ToRequest, TrustRequest, Wait,
};
pub(crate) use made::millis;

answer! {
    /// A lease with its leader and its last changes.
    LeaseDocument {
        /// Its name.
        lease: String,
        /// Its present or last term; 0 if nobody ever held it.
        term: u64,
        /// Term, and `.free` if nobody holds it: what `after` waits for to change.
        cursor: String,
        /// Who holds it.
        leader: Option<LeaderDocument>,
        /// Its last changes of hands, oldest first.
        changes: Vec<ChangeDocument>,
        /// Why nobody can say who holds it.
        unreadable: Option<UnreadableDocument>,
    }
    /// Who holds a lease.
    LeaderDocument {
        /// Its node's name.
        node: String,
        /// Its member id.
        member: String,
        /// Where it can be reached.
        address: Option<String>,
        /// Its term.
        term: u64,
        /// What it wants others to know.
        payload: Option<String>,
        /// Since when, by its own wall clock.
        since_ms: Option<u64>,
        /// The state of its member.
        state: &'static str,
        /// Whether it wasn't heard of for its ttl, by the store's clock.
        overdue: bool,
        /// How long others wait for it.
        ttl_ms: u64,
        /// How long ago it beat, by the store's clock.
        age_ms: Option<u64>,
    }
    /// A change of hands.
    ChangeDocument {
        /// The term that began or ended.
        term: u64,
        /// Which of the two, and why.
        kind: &'static str,
        /// The node that wrote it.
        node: String,
        /// When, by that node's wall clock.
        at_ms: u64,
    }
    /// A record that can't be read.
    UnreadableDocument {
        /// Where it is.
        key: String,
        /// What is wrong with it.
        reason: String,
    }
    /// All leases.
    LeasesDocument {
        /// In the order of their names.
        leases: Vec<LeaseDocument>,
        /// When they were read.
        as_of_ms: u64,
    }
    /// A member.
    MemberDocument {
        /// Fresh at each join.
        id: String,
        /// The name of its node.
        node: String,
        /// `alive`, `left`, `expired` or `evicted`.
        state: &'static str,
        /// Whether it wasn't heard of for its ttl, by the store's clock.
        overdue: bool,
        /// Where it can be reached.
        address: Option<String>,
        /// Whatever operators sort nodes by.
        labels: BTreeMap<String, String>,
        /// When it joined, by its own wall clock.
        joined_ms: u64,
        /// How long others wait for it.
        ttl_ms: Option<u64>,
        /// How long ago it beat, by the store's clock.
        age_ms: Option<u64>,
        /// The process behind it.
        host: Option<HostDocument>,
        /// The families that it serves, with their versions.
        families: BTreeMap<String, Vec<String>>,
        /// The sum of weights that it may carry.
        capacity: Option<u64>,
        /// How many duties it may run.
        max_duties: Option<u32>,
        /// Whether it gets no more duties.
        cordoned: bool,
        /// Whether it is being emptied.
        drained: bool,
        /// How many duties it has, or is to have.
        duties: usize,
        /// The weight of these, and what it carries beside.
        load: u64,
    }
    /// The process behind a member.
    HostDocument {
        /// The host's name.
        host: String,
        /// The boot that it belongs to.
        boot: Option<String>,
        /// Its process id.
        pid: u32,
    }
    /// All members.
    MembersDocument {
        /// In the order in which they joined.
        members: Vec<MemberDocument>,
        /// When they were read.
        as_of_ms: u64,
    }
    /// A duty.
    DutyDocument {
        /// `family/name`.
        duty: String,
        /// Its family.
        family: String,
        /// Its name.
        name: String,
        /// Where in its life it is.
        state: &'static str,
        /// Why it runs nowhere.
        reason: Option<String>,
        /// Its last error.
        error: Option<String>,
        /// How often it failed in a row.
        failures: Option<u32>,
        /// The node that has it, or is to have it.
        node: Option<String>,
        /// The member behind that node.
        member: Option<String>,
        /// Where that can be reached.
        address: Option<String>,
        /// The term under which it runs, or ran last.
        term: u64,
        /// The version that it runs as.
        version: Option<String>,
        /// What it said last about itself.
        progress: Option<String>,
        /// How much it weighs.
        weight: u64,
        /// Where an operator wants it.
        pinned: Option<PinDocument>,
    }
    /// Where an operator wants a duty.
    PinDocument {
        /// The node's name.
        node: String,
        /// Whether it rather doesn't run than elsewhere.
        required: bool,
    }
    /// All duties, and what operators ask for.
    DutiesDocument {
        /// In the order of their names.
        duties: Vec<DutyDocument>,
        /// What is in force.
        intents: Vec<IntentDocument>,
        /// When they were read.
        as_of_ms: u64,
    }
    /// Why a duty runs where it runs, or why it doesn't.
    ExplanationDocument {
        /// How it stands.
        duty: DutyDocument,
        /// What explains it, one thing a line.
        explanation: Vec<String>,
    }
    /// What an operator asked for.
    IntentDocument {
        /// Its id.
        id: String,
        /// What is asked: `resign`, `pin`, `pause`, `move`, `cordon`, `drain`, `freeze` and others.
        kind: &'static str,
        /// Whether it is in force.
        state: &'static str,
        /// Of which duty.
        duty: Option<String>,
        /// Of which node.
        node: Option<String>,
        /// Of which family.
        family: Option<String>,
        /// Of which version.
        version: Option<String>,
        /// Of which lease.
        lease: Option<String>,
        /// In which term.
        term: Option<u64>,
        /// Who asked.
        by: String,
        /// When, by their wall clock.
        at_ms: u64,
    }
    /// What operators ask for.
    IntentsDocument {
        /// What is in force, oldest first.
        intents: Vec<IntentDocument>,
    }
    /// A move of a duty.
    MoveDocument {
        /// Which duty.
        duty: String,
        /// From which node.
        from: Option<String>,
        /// To which node.
        to: Option<String>,
        /// Why.
        why: String,
        /// When; null if it is only planned.
        at_ms: Option<u64>,
    }
    /// A duty that would run nowhere.
    UnplacedDocument {
        /// Which.
        duty: String,
        /// Why.
        reason: String,
    }
    /// What the leader would do if it planned now.
    PlanDocument {
        /// The duties that would move.
        moves: Vec<MoveDocument>,
        /// The duties that would run nowhere.
        unplaced: Vec<UnplacedDocument>,
        /// What the leader goes by that can't be known here.
        unknown: Option<String>,
    }
    /// Who led when, and where duties moved.
    HistoryDocument {
        /// Each lease with its last changes.
        leases: Vec<LeaseDocument>,
        /// The last moves, oldest first.
        moves: Vec<MoveDocument>,
        /// When they were read.
        as_of_ms: u64,
    }
    /// This server, and the cluster that is asked about.
    ClusterDocument {
        /// The cluster's name.
        cluster: String,
        /// The cluster that this server's node has joined: holds and duties are served there.
        joined: String,
        /// The kind of store.
        store: String,
        /// The name of this server's node.
        node: String,
        /// Its member id.
        member: Option<String>,
        /// The version of this program.
        version: &'static str,
        /// Whether nothing can be changed through it.
        read_only: bool,
        /// How much longer this node may trust without another beat.
        trust_left_ms: u64,
        /// How long ago the last beat was sent that was acknowledged.
        last_beat_ms: u64,
        /// What the store says, if it fails.
        store_fails: Option<String>,
        /// The clusters that can be looked at here, and first the joined one.
        clusters: Vec<String>,
        /// How many holds there are.
        holds: usize,
    }
    /// All clusters that can be looked at here.
    ClustersDocument {
        /// First the one that this server's node has joined.
        clusters: Vec<ClusterStateDocument>,
    }
    /// How a cluster stands.
    ClusterStateDocument {
        /// Its name.
        cluster: String,
        /// Whether this server's node has joined it.
        joined: bool,
        /// `ok`, `busy`, `warn`, `bad`, `empty` or `unknown`.
        state: &'static str,
        /// The same in words.
        says: String,
    }
    /// Whether a lease is held here.
    RoleDocument {
        /// Which lease.
        lease: String,
        /// Whether it is held here.
        here: bool,
        /// Its term, as far as is known.
        term: Option<u64>,
        /// The node that holds it, as far as is known.
        node: Option<String>,
        /// Its member.
        member: Option<String>,
        /// Where it can be reached.
        address: Option<String>,
        /// Since when, by the holder's wall clock.
        since_ms: Option<u64>,
        /// How much longer it is trusted here without another beat.
        trusted_for_ms: u64,
        /// How old that knowledge is; null if nothing is known yet.
        known_ms_ago: Option<u64>,
    }
    /// The name of who holds a lease.
    NameDocument {
        /// The node's name; empty if nobody does.
        name: String,
    }
    /// Whether all is well.
    HealthDocument {
        /// `ok` or what is wrong.
        status: &'static str,
        /// What it was judged by.
        checks: ChecksDocument,
    }
    /// What health is judged by.
    ChecksDocument {
        /// How long ago the thread that beats last looked after this node.
        driver_turned_ms_ago: u64,
        /// Whether the store answers: `answers` or `fails`. It isn't judged by.
        store: String,
    }
    /// How long a hold may be trusted.
    TrustDocument {
        /// What was sent.
        nonce: String,
        /// The hold.
        hold: String,
        /// Its lease.
        lease: String,
        /// Its term; null while it waits.
        term: Option<u64>,
        /// `waiting`, `held` or `stopping`.
        state: &'static str,
        /// To be counted from before the question was sent.
        trusted_for_ms: u64,
    }
    /// A hold.
    HoldDocument {
        /// Its id.
        hold: String,
        /// Its lease.
        lease: String,
        /// Its term; null while it waits.
        term: Option<u64>,
        /// Its member; null while it waits.
        member: Option<String>,
        /// The file that says until when it may be trusted; null where there is none.
        trust_file: Option<String>,
        /// How long others wait for it. A setting, and no trust.
        ttl_ms: u64,
        /// How long its work may take to end. A setting too.
        grace_ms: u64,
        /// How often it has to be heard of elsewhere than on a Unix socket.
        renew_ms: u64,
        /// `waiting`, `serving`, `held` or `stopping`.
        state: &'static str,
    }
    /// What was asked for.
    AskedDocument {
        /// What.
        asked: &'static str,
        /// Of whom.
        target: String,
        /// The intents that are in force for it now, or that were taken back.
        intents: Vec<String>,
        /// Names that nobody knows at the moment.
        unknown: Vec<String>,
        /// Where it can be read how it stands.
        state: String,
    }
    /// The audit log.
    AuditDocument {
        /// The last acts, newest first.
        acts: Vec<ActDocument>,
        /// How many are kept.
        bound: usize,
    }
    /// One act of an operator.
    ActDocument {
        /// When, by the server's wall clock.
        at_ms: u64,
        /// Who.
        who: String,
        /// From where.
        from: String,
        /// What.
        act: String,
        /// Of whom.
        target: String,
        /// With which details.
        detail: String,
        /// What became of it.
        outcome: String,
    }
}
