//! A node in this process that stands for the lease, and writes down what it is told.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use incumbent::blocking::Wait;
use incumbent::store::{Answer, Capabilities, Exchange, HintGuard, Lane, Store, Wake};
use incumbent::{Node, OpenStore};
use incumbent_proving::{Entry, History, Order, stand};

const PATIENCE: Duration = Duration::from_secs(90);

pub(crate) struct Contender {
    name: String,
    node: Node,
    orders: Sender<Order>,
    elections: Receiver<u64>,
    entries: Arc<Mutex<Vec<Entry>>>,
    thread: JoinHandle<()>,
}

impl Contender {
    /// Joins and stands from now on.
    pub(crate) fn start(name: &str, ttl: Duration, store: impl Into<OpenStore>) -> Self {
        let builder = Node::builder().cluster("faults").name(name).allow_short_ttl().ttl(ttl);
        let node = builder.join(store).wait().unwrap();
        let (orders, told) = channel();
        let (elected, elections) = channel();
        let entries = Arc::new(Mutex::new(Vec::new()));
        let (standing, log) = (node.clone(), Arc::clone(&entries));
        let thread = std::thread::spawn(move || {
            let written = stand(&standing, "lease", &told, |entry| {
                log.lock().unwrap().push(entry);
                if let Entry::Elected { term, .. } = entry {
                    let _ = elected.send(term);
                }
                Ok(())
            });
            written.unwrap();
        });
        Self { name: name.to_owned(), node, orders, elections, entries, thread }
    }

    pub(crate) fn is_leader(&self) -> bool {
        self.node.is_leader("lease")
    }

    /// Waits until it is elected, and says in which term.
    pub(crate) fn elected(&self) -> u64 {
        self.elections.recv_timeout(PATIENCE).unwrap_or_else(|_| {
            panic!("{} is not elected within {PATIENCE:?}", self.name);
        })
    }

    /// The term of an election that wasn't asked for yet, if there was one.
    pub(crate) fn news(&self) -> Option<u64> {
        self.elections.try_recv().ok()
    }

    /// Tells it something; if it doesn't lead it takes no notice.
    pub(crate) fn tell(&self, order: Order) {
        let _ = self.orders.send(order);
    }

    /// Lets it leave, and gives back what it wrote down.
    pub(crate) fn stop(self) -> History {
        // Where the store can't be reached it leaves without a word.
        let _ = self.node.leave().wait();
        self.thread.join().unwrap();
        let entries = std::mem::take(&mut *self.entries.lock().unwrap());
        History { process: self.name, entries }
    }
}

/// A store of which the reads go to other servers than the rest: a client that names several
/// servers has a connection for each lane, and each may be with another server.
pub(crate) struct Torn {
    pub(crate) reads: OpenStore,
    pub(crate) rest: OpenStore,
}

impl Store for Torn {
    fn capabilities(&self) -> Capabilities {
        self.rest.capabilities()
    }

    fn exchange<'a>(&'a self, cluster: &'a str, lane: Lane, exchange: Exchange) -> Answer<'a> {
        match lane {
            Lane::Watch => self.reads.exchange(cluster, lane, exchange),
            Lane::Beat | Lane::Change => self.rest.exchange(cluster, lane, exchange),
        }
    }

    fn hints(&self, cluster: &str, wake: Wake) -> Option<HintGuard> {
        self.rest.hints(cluster, wake)
    }
}
