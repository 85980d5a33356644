//! What an operator asks for. It is kept in the store, so that it works without push.

use incumbent_core::records::{Ask, Board, Content, Intent, MemberState};
use incumbent_core::store::{Exchange, Expect, Key, Lane, Outcome, Put, Record, Stamp, Write};
use incumbent_core::{LeaseName, MemberId, keys};

use super::{Asked, Cluster, lease_name};
use crate::driver::{clock, seed};
use crate::error::ClusterError;

/// A record that changes all the time is tried this often.
pub(super) const ATTEMPTS: u64 = 20;

impl Cluster {
    /// Asks the leader to give a lease up. It does so at its next beat, or at once where the
    /// store pushes; its work has time to end in order.
    ///
    /// # Errors
    /// If nobody leads, or the store can't be reached.
    pub async fn request_resign(&self, lease: &str) -> Result<Asked, ClusterError> {
        let (this, lease) = (self.clone(), lease_name(lease)?);
        self.run(async move { this.ask_to_resign(&lease, None, None).await }).await
    }

    /// As [`Self::request_resign`], or [`Self::request_transfer`] if somebody is named, for this
    /// very term and no later one.
    ///
    /// # Errors
    /// As there, and if the lease has another term by now. Then nothing was asked for.
    pub async fn request_end(
        &self,
        lease: &str,
        term: u64,
        to: Option<&str>,
    ) -> Result<Asked, ClusterError> {
        let (this, lease) = (self.clone(), lease_name(lease)?);
        let successor = match to {
            Some(node) => Some(self.live_member(node).await?),
            None => None,
        };
        self.run(async move { this.ask_to_resign(&lease, successor, Some(term)).await }).await
    }

    /// Asks the leader to give a lease up in favour of the node of this name, or the member of
    /// this id.
    ///
    /// # Errors
    /// If nobody leads, no live member or several are called that (F2), or the store can't be
    /// reached.
    pub async fn request_transfer(&self, lease: &str, node: &str) -> Result<Asked, ClusterError> {
        let (this, lease) = (self.clone(), lease_name(lease)?);
        let successor = self.live_member(node).await?;
        self.run(async move { this.ask_to_resign(&lease, Some(successor), None).await }).await
    }

    /// Throws out the live member of this id, or of the node of this name. Its next beat fails
    /// and it stops everything; its leases are free when its ttl has passed, or as soon as it
    /// says that it has stopped. Its process joins anew by itself, so stop it first if it should not;
    /// a command under `incumbent run` ends, unless it was started with `--restart`.
    ///
    /// # Errors
    /// If no live member or several are called that (F2), or the store can't be reached.
    pub async fn evict(&self, member: &str) -> Result<MemberId, ClusterError> {
        let id = self.live_member(member).await?;
        let this = self.clone();
        self.run(async move {
            let evicted = this.close_as(id, MemberState::Evicted).await;
            this.hint_leader().await;
            evicted
        })
        .await
    }

    /// Closes a member of which nothing runs any more. One that is closed already is left alone.
    ///
    /// Others wait for this, and whoever calls it has just opened the store: all goes over the lane whose
    /// connection is there by then, because each of the others would have to make one first.
    pub(crate) async fn close_dead(&self, id: MemberId) -> Result<(), ClusterError> {
        let this = self.clone();
        let closing =
            async move { this.close_over(Lane::Beat, Lane::Beat, id, MemberState::Expired).await };
        match self.run(closing).await {
            Ok(_) | Err(ClusterError::NoSuchMember { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    pub(super) async fn ask_to_resign(
        &self,
        lease: &LeaseName,
        successor: Option<MemberId>,
        meant: Option<u64>,
    ) -> Result<Asked, ClusterError> {
        let state = self.read_lease(lease).await?;
        if let Some(meant) = meant.filter(|meant| *meant != state.term) {
            let (lease, term) = (lease.clone(), state.term);
            return Err(ClusterError::OtherTerm { lease, meant, term });
        }
        let Some(leader) = state.leader else {
            return Err(ClusterError::NobodyLeads { lease: lease.clone() });
        };
        let term = leader.term;
        let mut writer = Writer::new();
        let id = writer.id();
        let ask = Ask::Resign { lease: lease.as_str().to_owned(), term, successor };
        let intent = Intent::open(id.clone(), ask, crate::node::host::name(), clock::wall_ms());
        let put = writer.put(keys::intent(&id), Expect::Absent, intent.bytes());
        // The intent first: whoever reads the board must find it.
        self.write(put).await?;
        let raised = self.raise_board(&mut writer).await;
        // Also in doubt: the request may be there.
        self.hint_member(&leader.member).await;
        raised?;
        Ok(Asked { intents: vec![id], unknown: Vec::new(), leader: Some(leader) })
    }

    /// Lets every node know that there is something new among the intents, and the leader of the cluster
    /// as soon as can be.
    pub(super) async fn announce(&self, writer: &mut Writer) -> Result<(), ClusterError> {
        let raised = self.raise_board(writer).await;
        self.hint_leader().await;
        raised
    }

    async fn raise_board(&self, writer: &mut Writer) -> Result<(), ClusterError> {
        for _ in 0..ATTEMPTS {
            let stored = self.read_key(keys::board()).await?;
            let (mut board, expect) = match &stored {
                Some(stored) => (Board::read(stored)?, expect(stored)),
                None => (Board::fresh(), Expect::Absent),
            };
            board.intents = board.intents.saturating_add(1);
            if self.write(writer.put(keys::board(), expect, board.bytes())).await? {
                return Ok(());
            }
        }
        Err(ClusterError::Contended { key: keys::board().as_str().to_owned() })
    }

    pub(super) async fn close_as(
        &self,
        id: MemberId,
        state: MemberState,
    ) -> Result<MemberId, ClusterError> {
        self.close_over(Lane::Watch, Lane::Change, id, state).await
    }

    async fn close_over(
        &self,
        reading: Lane,
        writing: Lane,
        id: MemberId,
        state: MemberState,
    ) -> Result<MemberId, ClusterError> {
        let mut writer = Writer::new();
        // Each beat in between changes the version, so this may take several attempts.
        for _ in 0..ATTEMPTS {
            let alive = self.read_member(reading, &id).await?;
            let alive = alive.filter(|(record, _)| record.state == MemberState::Alive);
            let Some((record, stored)) = alive else {
                return Err(ClusterError::NoSuchMember { name: id.as_str().to_owned() });
            };
            let closed = record.closed(state).bytes();
            let put = writer.put(keys::member(&id), expect(&stored), closed);
            let put = Put { durable: !state.is_final(), ..put };
            if self.write_over(writing, put).await? {
                return Ok(id);
            }
        }
        Err(ClusterError::Contended { key: keys::member(&id).as_str().to_owned() })
    }

    /// Says whether the write applied.
    pub(super) async fn write(&self, put: Put) -> Result<bool, ClusterError> {
        self.write_over(Lane::Change, put).await
    }

    async fn write_over(&self, lane: Lane, put: Put) -> Result<bool, ClusterError> {
        let writes = vec![Write::Put(put)];
        let reply = self.exchange(lane, Exchange { writes, reads: Vec::new() }).await?;
        Ok(matches!(reply.writes.first(), Some(Outcome::Applied(_))))
    }
}

/// Stamps the writes of one request.
pub(super) struct Writer {
    writer: u64,
    attempt: u64,
}

impl Writer {
    pub(super) fn new() -> Self {
        Self { writer: seed::draw(), attempt: 0 }
    }

    /// An id that nobody else has.
    pub(super) fn id(&self) -> String {
        format!("{:016x}{:016x}", self.writer, seed::draw())
    }

    pub(super) fn put(&mut self, key: Key, expect: Expect, value: Vec<u8>) -> Put {
        self.attempt += 1;
        let stamp = Stamp { writer: self.writer, attempt: self.attempt };
        Put { key, expect, value, stamp, hint: true, durable: true }
    }
}

pub(super) fn expect(stored: &Record) -> Expect {
    Expect::Version(stored.version.clone())
}
