//! The connections of a path.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::wire::{Ear, Wire};
use super::{Mood, Traffic};

/// How many pieces are on their way in one direction before the sender has to wait.
const ON_THE_WAY: usize = 1024;

/// What all connections of a path have in common.
pub(super) struct Shared {
    wire: Wire,
    target: u16,
    settings: watch::Sender<Settings>,
    state: Mutex<State>,
}

/// How it is with a path now.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Settings {
    pub(super) mood: Mood,
    /// How long everything takes in one direction.
    pub(super) delay: Duration,
    /// Connections up to this number carry nothing.
    pub(super) forgotten: u64,
}

#[derive(Default)]
struct State {
    traffic: Traffic,
    words: BTreeMap<&'static str, u64>,
    /// Connections that are open, by their age.
    open: BTreeMap<u64, AbortHandle>,
}

impl Shared {
    pub(super) fn new(wire: Wire, target: u16) -> Self {
        Self { wire, target, settings: watch::Sender::default(), state: Mutex::default() }
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut Settings)) {
        self.settings.send_modify(change);
    }

    pub(super) fn traffic(&self) -> Traffic {
        self.state().traffic
    }

    pub(super) fn sent(&self, word: &str) -> u64 {
        assert!(self.wire.words.contains(&word), "nobody counts {word:?}");
        self.state().words.get(word).copied().unwrap_or(0)
    }

    pub(super) fn cut_oldest(&self) -> bool {
        let oldest = self.state().open.pop_first();
        if let Some((_, path)) = &oldest {
            path.abort();
        }
        oldest.is_some()
    }

    /// Begins to carry what a client sends and gets.
    pub(super) fn carry(self: &Arc<Self>, client: TcpStream) {
        if self.settings.borrow().mood == Mood::Closed {
            return;
        }
        let mut state = self.state();
        state.traffic.connections += 1;
        let number = state.traffic.connections;
        let connection = Connection {
            number,
            settings: self.settings.subscribe(),
            ear: Mutex::new(Ear::new(self.wire)),
            shared: Arc::clone(self),
        };
        let shared = Arc::clone(self);
        let path = Handle::current().spawn(async move {
            connection.carry(client).await;
            shared.state().open.remove(&number);
        });
        state.open.insert(number, path.abort_handle());
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Connection {
    number: u64,
    settings: watch::Receiver<Settings>,
    ear: Mutex<Ear>,
    shared: Arc<Shared>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Up,
    Down,
}

impl Connection {
    /// Carries both directions until one of them ends. Both sockets close with it.
    async fn carry(&self, client: TcpStream) {
        // Where it is far to the server, connecting to it takes a round trip as well. The client
        // is connected with this path by now, and waits for it when it sends.
        tokio::time::sleep(self.delay() * 2).await;
        let target = ("127.0.0.1", self.shared.target);
        let Ok(server) = TcpStream::connect(target).await else { return };
        let _ = client.set_nodelay(true);
        let _ = server.set_nodelay(true);
        let (from_client, to_client) = client.into_split();
        let (from_server, to_server) = server.into_split();
        tokio::select! {
            () = self.direction(Way::Up, from_client, to_server) => {}
            () = self.direction(Way::Down, from_server, to_client) => {}
        }
    }

    async fn direction(&self, way: Way, mut from: OwnedReadHalf, mut to: OwnedWriteHalf) {
        let (sender, mut receiver) = mpsc::channel::<(Instant, Vec<u8>)>(ON_THE_WAY);
        let reading = async move {
            let mut buffer = vec![0; 65_536];
            while let Ok(count @ 1..) = from.read(&mut buffer).await {
                self.speech().await;
                let bytes = buffer.get(..count).unwrap_or_default();
                if !self.passes(way, bytes) {
                    return;
                }
                if sender.send((now() + self.delay(), bytes.to_vec())).await.is_err() {
                    return;
                }
            }
        };
        let writing = async move {
            while let Some((due, bytes)) = receiver.recv().await {
                tokio::time::sleep_until(due).await;
                self.speech().await;
                if to.write_all(&bytes).await.is_err() {
                    return;
                }
            }
        };
        tokio::join!(reading, writing);
    }

    /// Waits for the end of a silence, if there is one.
    async fn speech(&self) {
        let speaks = |it: &Settings| it.mood != Mood::Silent && it.forgotten < self.number;
        // There are settings for as long as there is a path.
        let _ = self.settings.clone().wait_for(speaks).await;
    }

    /// Counts what is carried, and says whether it arrives.
    fn passes(&self, way: Way, bytes: &[u8]) -> bool {
        let mut ear = self.ear.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.shared.state();
        if way == Way::Down {
            let is_answer = ear.hears_answer(bytes);
            if is_answer && self.settings.borrow().mood == Mood::LoseAnswers {
                return false;
            }
            state.traffic.bytes_down += bytes.len() as u64;
            return true;
        }
        state.traffic.bytes_up += bytes.len() as u64;
        state.traffic.requests += ear.hears_requests(bytes);
        for (word, count) in ear.hears_words(bytes) {
            *state.words.entry(word).or_default() += count;
        }
        true
    }

    fn delay(&self) -> Duration {
        self.settings.borrow().delay
    }
}

/// Nothing but the delay of a test's path hangs on it.
#[allow(clippy::disallowed_methods)]
fn now() -> Instant {
    Instant::now()
}
