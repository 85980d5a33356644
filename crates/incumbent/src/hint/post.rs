//! What one node says to others and is told by them.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use incumbent_core::records::{Control, Profile};
use incumbent_core::store::{ErrorKind, Outcome, Reply, StoreError, Write};
use incumbent_core::{Moment, Request, RequestId};

use super::allowance::Allowance;
use super::control::{HintSite, HintTarget};
use super::datagram::{HintAddress, Saying};
use super::inbox::Inbox;
use super::listeners::{AGAIN, Listeners};
use super::registry;
use super::settings::{HintPlace, HintSettings};
use super::socket::Socket;

/// So many datagrams are sent in a turn, and the rest in the turns after it.
const TURN: usize = 64;
/// So many requests that others wait for are on their way at once; some are never heard of again.
const MOST_ASKED: usize = 256;

/// What one node says to others and is told by them.
#[derive(Debug)]
pub(crate) struct Post {
    socket: Arc<Socket>,
    inbox: Arc<Inbox>,
    own: HintAddress,
    here: HintSite,
    listeners: Listeners,
    /// Requests that write what others may wait for.
    asked: BTreeSet<RequestId>,
    /// Something was written that others may wait for, and they have not been told.
    untold: bool,
    telling: Allowance,
    /// Somebody said that something may have changed, and it was not looked for yet.
    unread: bool,
    reading: Allowance,
    again: Moment,
    outgoing: BTreeSet<(HintAddress, Saying)>,
}

impl Post {
    /// Opens it as the settings say. Nothing where that can't be done: the store is looked at all the same.
    pub(crate) fn open(settings: &HintSettings, now: Moment) -> Option<Self> {
        #[cfg(feature = "testing")]
        if crate::testing::here().is_some() {
            // A world of virtual time has no sockets.
            return None;
        }
        let here = HintSite::here();
        let address = match settings.place {
            HintPlace::Nowhere => return None,
            HintPlace::Loopback if !here.is_known() => return None,
            HintPlace::Loopback => SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            HintPlace::At(address) => address,
        };
        let socket = registry::socket(address, settings.key.as_ref())
            .inspect_err(|error| {
                tracing::warn!(action = "hints", %address, %error, "no hints are taken or sent: name an address of this machine that is free");
            })
            .ok()?;
        let inbox = Arc::default();
        let own = socket.add(&inbox);
        Some(Self {
            socket,
            inbox,
            own,
            here,
            listeners: Listeners::default(),
            asked: BTreeSet::new(),
            untold: false,
            telling: Allowance::new(now),
            unread: false,
            reading: Allowance::new(now),
            again: now,
            outgoing: BTreeSet::new(),
        })
    }

    /// What the node's profile says.
    pub(crate) fn control(&self) -> Control {
        self.here.control(self.own)
    }

    /// Where to tell the node of this profile something.
    pub(crate) fn target(&self, profile: &Profile) -> Option<HintTarget> {
        self.here.target(profile, self.socket.is_keyed()).filter(|target| *target != self.own)
    }

    pub(crate) fn inbox(&self) -> &Inbox {
        &self.inbox
    }

    pub(crate) fn dropped(&self) -> u64 {
        self.socket.dropped()
    }

    /// Notes a request that writes what others may wait for.
    pub(crate) fn asks(&mut self, request: &Request) {
        let hints = |write: &Write| matches!(write, Write::Put(put) if put.hint);
        if request.exchange.writes.iter().any(hints) {
            self.asked.insert(request.id);
        }
        if self.asked.len() > MOST_ASKED {
            self.asked.pop_first();
        }
    }

    /// A request was answered, or failed: if it changed something, or may have, others are told.
    pub(crate) fn answered(&mut self, id: RequestId, answer: &Result<Reply, StoreError>) {
        let changed = match answer {
            Ok(reply) => reply.writes.iter().any(|outcome| *outcome != Outcome::Refused),
            Err(error) => error.kind == ErrorKind::Unknown,
        };
        self.untold |= self.asked.remove(&id) && changed;
    }

    /// Requests on their way are those of a core that is no more.
    pub(crate) fn forget_asked(&mut self) {
        self.asked.clear();
    }

    /// Says to a holder that this node waits.
    pub(crate) fn greet(&mut self, holder: HintTarget) {
        self.outgoing.insert((holder, Saying::Waits(self.own)));
    }

    /// Does what is due, and says whether the store is to be looked at. `holders` are those that this node
    /// waits for: they are told that it does, and of what it changes.
    pub(crate) fn turn(
        &mut self,
        now: Moment,
        last: bool,
        holders: impl Fn() -> Vec<HintTarget>,
    ) -> bool {
        let mail = self.inbox.take();
        self.unread |= mail.changed;
        for waiter in mail.waiters {
            self.listeners.note(now, waiter);
        }
        if now >= self.again {
            self.again = now + AGAIN;
            holders().into_iter().for_each(|holder| self.greet(holder));
        }
        if self.untold && (last || self.telling.take(now)) {
            self.untold = false;
            let others = self.listeners.waiting(now).chain(holders());
            self.outgoing.extend(others.map(|other| (other, Saying::Changed)));
        }
        for _ in 0..if last { usize::MAX } else { TURN } {
            let Some((to, saying)) = self.outgoing.pop_first() else { break };
            self.socket.send(to, saying);
        }
        let look = self.unread && self.reading.take(now);
        self.unread &= !look;
        look
    }

    /// When [`Self::turn`] has something to do by itself.
    pub(crate) fn wake_at(&self) -> Moment {
        let read = if self.unread { self.reading.next() } else { Moment::NEVER };
        let tell = if self.untold { self.telling.next() } else { Moment::NEVER };
        let send = if self.outgoing.is_empty() { Moment::NEVER } else { Moment::START };
        read.min(tell).min(send)
    }
}

impl Drop for Post {
    fn drop(&mut self) {
        self.socket.remove(self.own);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use incumbent_core::records::HostIdentity;
    use incumbent_core::store::{Exchange, Expect, Key, Lane, Put, Stamp, Version};

    use super::*;
    use crate::driver::{clock, thread};
    use crate::hint::HintKey;

    fn keyed() -> HintSettings {
        HintSettings::default().with_key(HintKey::new(b"0123456789abcdef").unwrap())
    }

    fn open(settings: &HintSettings) -> Post {
        Post::open(settings, clock::now()).unwrap()
    }

    fn profile(post: &Post) -> Profile {
        let host: Option<HostIdentity> = crate::node::host::identity();
        Profile { host, control: Some(post.control()), ..Profile::named("a") }
    }

    fn written(post: &mut Post, answer: Result<Outcome, ErrorKind>) {
        let stamp = Stamp { writer: 1, attempt: 1 };
        let (key, expect) = (Key::new("lease/a"), Expect::Absent);
        let put = Put { key, expect, value: Vec::new(), stamp, hint: true, durable: true };
        let exchange = Exchange { writes: vec![Write::Put(put)], reads: Vec::new() };
        let id = RequestId(7);
        post.asks(&Request { id, lane: Lane::Change, exchange, deadline: Moment::NEVER });
        let reply = |outcome| Reply { writes: vec![outcome], reads: Vec::new() };
        let error = |kind| StoreError { kind, message: String::new() };
        post.answered(id, &answer.map(reply).map_err(error));
    }

    /// Takes turns until the store is to be looked at, or for so long.
    fn looks(post: &mut Post, within: Duration) -> bool {
        let end = clock::now() + within;
        while clock::now() < end {
            if post.turn(clock::now(), false, Vec::new) {
                return true;
            }
            std::thread::park_timeout(Duration::from_millis(1));
        }
        false
    }

    /// Says that `waiter` waits for `holder`, and sees that it was heard.
    fn greet(waiter: &mut Post, holder: &mut Post) {
        waiter.greet(waiter.target(&profile(holder)).unwrap());
        waiter.turn(clock::now(), false, Vec::new);
        let end = clock::now() + LONG;
        while holder.listeners.waiting(clock::now()).count() == 0 && clock::now() < end {
            holder.turn(clock::now(), false, Vec::new);
            std::thread::park_timeout(Duration::from_millis(1));
        }
    }

    const LONG: Duration = Duration::from_secs(20);
    const SHORT: Duration = Duration::from_millis(200);

    #[test]
    fn who_waits_is_told_of_what_was_written_and_of_what_is_in_doubt() {
        thread::start().unwrap();
        for settings in [HintSettings::default(), keyed()] {
            let (mut holder, mut waiter) = (open(&settings), open(&settings));
            greet(&mut waiter, &mut holder);
            for answer in [Ok(Outcome::Applied(Version::new("1"))), Err(ErrorKind::Unknown)] {
                written(&mut holder, answer);
                holder.turn(clock::now(), false, Vec::new);
                assert!(looks(&mut waiter, LONG));
            }
            for answer in [Ok(Outcome::Refused), Err(ErrorKind::Unavailable)] {
                written(&mut holder, answer);
                holder.turn(clock::now(), false, Vec::new);
                assert!(!looks(&mut waiter, SHORT), "nothing has changed");
            }
        }
    }

    #[test]
    fn who_waits_tells_its_holder_of_its_own_changes() {
        thread::start().unwrap();
        let (mut leader, mut member) =
            (open(&HintSettings::default()), open(&HintSettings::default()));
        let target = member.target(&profile(&leader)).unwrap();
        written(&mut member, Ok(Outcome::Applied(Version::new("1"))));
        member.turn(clock::now(), false, || vec![target]);
        assert!(looks(&mut leader, LONG));
    }

    #[test]
    fn a_repetition_is_a_hint_and_another_key_is_none() {
        thread::start().unwrap();
        let mut waiter = open(&keyed());
        let other = HintKey::new(b"fedcba9876543210").unwrap();
        let stranger = open(&HintSettings::default().with_key(other));
        let before = waiter.dropped();
        stranger.socket.send(waiter.own, Saying::Changed);
        assert!(!looks(&mut waiter, SHORT));
        assert!(waiter.dropped() > before);
        let again = open(&keyed());
        for _ in 0..1000 {
            again.socket.send(waiter.own, Saying::Changed);
        }
        let end = clock::now() + Duration::from_secs(1);
        let mut looked = 0;
        while clock::now() < end {
            looked += u32::from(looks(&mut waiter, Duration::from_millis(10)));
        }
        assert!((1..=20).contains(&looked), "{looked}");
    }

    #[test]
    fn who_has_left_is_told_nothing() {
        thread::start().unwrap();
        let (sender, gone) = (open(&HintSettings::default()), open(&HintSettings::default()));
        let (to, before) = (gone.own, sender.dropped());
        drop(gone);
        sender.socket.send(to, Saying::Changed);
        let end = clock::now() + LONG;
        while sender.dropped() == before && clock::now() < end {
            std::thread::park_timeout(Duration::from_millis(1));
        }
        assert!(sender.dropped() > before);
    }
}
