//! Tells subscribers that another connection, of this process or another, changed something.
//!
//! A connection of its own, idle otherwise, looks whether anything was committed at all (SQLite's
//! data version) and then whether a cluster's hint counter moved, which beats never move.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::thread;
use std::time::Duration;

use incumbent_core::store::{Access, HintGuard, Lane, Wake};
use incumbent_store_common::locked;

use crate::bell::Bell;
use crate::database::Database;
use crate::error::During;
use crate::options::SqliteOptions;

/// Starts a thread at the first subscription and ends it when dropped.
pub(crate) struct Watcher {
    options: Arc<SqliteOptions>,
    watch: Mutex<Option<Arc<Watch>>>,
}

impl Watcher {
    pub(crate) fn new(options: &Arc<SqliteOptions>) -> Self {
        Self { options: Arc::clone(options), watch: Mutex::new(None) }
    }

    /// Calls `wake` from now on after each change of this cluster that asks for it.
    pub(crate) fn subscribe(&self, cluster: &str, wake: Wake) -> io::Result<HintGuard> {
        let mut started = locked(&self.watch);
        let watch = match &*started {
            Some(watch) => Arc::clone(watch),
            None => Arc::clone(started.insert(Watch::start(&self.options)?)),
        };
        drop(started);
        Ok(Box::new(watch.subscribe(cluster, wake)))
    }

    /// Lets go of files that are no longer there, as the lanes do.
    pub(crate) fn check(&self) {
        if let Some(watch) = &*locked(&self.watch) {
            watch.bell.ring();
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        if let Some(watch) = &*locked(&self.watch) {
            watch.ended.store(true, Ordering::Release);
            watch.bell.ring();
        }
    }
}

struct Watch {
    bell: Bell,
    ended: AtomicBool,
    state: Mutex<State>,
}

struct State {
    /// Never makes a file: if it is gone, the watcher waits for a lane to make it anew.
    options: SqliteOptions,
    busy: Duration,
    database: Option<Database>,
    data_version: Option<i64>,
    interval: Duration,
    subscribers: BTreeMap<u64, Subscriber>,
    next: u64,
}

struct Subscriber {
    cluster: String,
    /// None if it couldn't be read: then the first look that can wakes, to be safe.
    counter: Option<i64>,
    wake: Wake,
}

impl Watch {
    fn start(options: &Arc<SqliteOptions>) -> io::Result<Arc<Self>> {
        let state = State {
            options: SqliteOptions::clone(options).create(false),
            busy: options.busy_of(Lane::Watch),
            database: None,
            data_version: None,
            interval: Duration::ZERO,
            subscribers: BTreeMap::new(),
            next: 0,
        };
        let watch = Arc::new(Self {
            bell: Bell::new(options.hints)?,
            ended: AtomicBool::new(false),
            state: Mutex::new(state),
        });
        let running = Arc::clone(&watch);
        thread::Builder::new()
            .name("incumbent-sqlite-hints".to_owned())
            .spawn(move || running.run())?;
        Ok(watch)
    }

    fn subscribe(self: &Arc<Self>, cluster: &str, wake: Wake) -> Subscription {
        let mut state = locked(&self.state);
        // Read here and now, so that no change after this call is missed and none before it
        // wakes.
        let counter =
            state.open(&self.bell).and_then(|database| database.hint_counter(cluster).ok());
        let id = state.next;
        state.next += 1;
        state.subscribers.insert(id, Subscriber { cluster: cluster.to_owned(), counter, wake });
        drop(state);
        // The thread may be waiting without end, as it does while there is nobody to wake.
        self.bell.ring();
        Subscription { id, watch: Arc::downgrade(self) }
    }

    fn run(&self) {
        while !self.ended.load(Ordering::Acquire) {
            let (wakes, longest) = locked(&self.state).look(&self.bell);
            // The lock is free by now: a wake may subscribe or unsubscribe.
            for wake in wakes {
                wake();
            }
            self.bell.wait(longest);
        }
        // Subscriptions may outlive the store; the connection doesn't.
        locked(&self.state).database = None;
    }
}

impl State {
    /// Whom to wake, and how long to wait at most before the next look.
    fn look(&mut self, bell: &Bell) -> (Vec<Wake>, Option<Duration>) {
        if self.subscribers.is_empty() {
            return (Vec::new(), None);
        }
        if self.database.as_ref().is_some_and(|database| database.check().is_err()) {
            // Counters of another file say nothing.
            self.forget();
        }
        let wakes = self.moved(bell).unwrap_or_else(|| {
            self.forget();
            Vec::new()
        });
        (wakes, Some(self.interval))
    }

    fn moved(&mut self, bell: &Bell) -> Option<Vec<Wake>> {
        let database = self.open(bell)?;
        let version = data_version(database).ok()?;
        // A subscriber without a counter is looked after in any case.
        let known = self.subscribers.values().all(|subscriber| subscriber.counter.is_some());
        if known && self.data_version == Some(version) {
            return Some(Vec::new());
        }
        let database = self.database.as_ref()?;
        let mut wakes = Vec::new();
        for subscriber in self.subscribers.values_mut() {
            let counter = database.hint_counter(&subscriber.cluster).ok()?;
            if subscriber.counter != Some(counter) {
                subscriber.counter = Some(counter);
                wakes.push(Arc::clone(&subscriber.wake));
            }
        }
        self.data_version = Some(version);
        Some(wakes)
    }

    fn open(&mut self, bell: &Bell) -> Option<&Database> {
        if self.database.is_none() {
            // Until it succeeds, try as often as the bell would look anyway.
            self.interval = Duration::from_secs(1);
            let (options, busy) = (&self.options, self.busy);
            let database = match options.access {
                // One that nobody has open doesn't change, until somebody opens it.
                Access::Look => {
                    let found = Database::look(options, busy, During::Work).ok().flatten();
                    found.filter(Database::is_live)?
                }
                _ => Database::open(options, busy, During::Work).ok()?,
            };
            self.interval = bell.watch(&database.paths.log);
            self.data_version = None;
            self.database = Some(database);
        }
        self.database.as_ref()
    }

    fn forget(&mut self) {
        self.database = None;
        for subscriber in self.subscribers.values_mut() {
            subscriber.counter = None;
        }
    }
}

/// Unsubscribes when dropped.
struct Subscription {
    id: u64,
    watch: Weak<Watch>,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some(watch) = self.watch.upgrade() {
            let removed = locked(&watch.state).subscribers.remove(&self.id);
            // What the wake captured may itself come back here when dropped, so the lock goes
            // first.
            drop(removed);
        }
    }
}

fn data_version(database: &Database) -> rusqlite::Result<i64> {
    let mut statement = database.connection.prepare_cached("PRAGMA data_version")?;
    statement.query_row([], |row| row.get(0))
}
