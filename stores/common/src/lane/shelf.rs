//! The connections of a lane, and what is known of each.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use incumbent_core::store::StoreError;
use tokio_util::sync::CancellationToken;

/// A connection on the shelf, or on its way off it.
pub(super) struct Held<S> {
    pub(super) session: S,
    /// Whether it was used since it was last asked.
    pub(super) used: AtomicBool,
    /// It is lost or replaced: nobody waits any more for what was given up on it.
    pub(super) retired: CancellationToken,
}

impl<S> Held<S> {
    pub(super) fn new(session: S) -> Arc<Self> {
        let (used, retired) = (AtomicBool::new(true), CancellationToken::new());
        Arc::new(Self { session, used, retired })
    }
}

/// A connection of a lane, used beside its jobs.
pub struct Lent<S>(pub(super) Arc<Held<S>>);

impl<S> Lent<S> {
    /// The connection.
    #[must_use]
    pub fn session(&self) -> &S {
        &self.0.session
    }

    /// Ready once the lane doesn't use it any more: it is lost, or another was made in its place.
    pub async fn retired(&self) {
        self.0.retired.cancelled().await;
    }
}

/// What a lane has. A connection that is on neither list is lost.
pub(super) struct Shelf<S> {
    /// How many there should be.
    full: usize,
    /// Those that requests may use, the first of them first.
    sound: VecDeque<Arc<Held<S>>>,
    /// Those on which so many requests were given up and haven't been answered. What was given
    /// up may still run, so nothing new is sent over them.
    doubtful: Vec<(Arc<Held<S>>, usize)>,
    /// An attempt to connect is under way.
    connecting: bool,
    /// Somebody waited for a connection since that attempt began.
    asked: bool,
    /// How many attempts in a row have failed.
    failures: u32,
    /// How many attempts have ever failed, and how the last of them did.
    failed: u64,
    error: Option<StoreError>,
}

impl<S> Shelf<S> {
    pub(super) fn new(full: usize) -> Self {
        Self {
            full,
            sound: VecDeque::new(),
            doubtful: Vec::new(),
            connecting: false,
            asked: false,
            failures: 0,
            failed: 0,
            error: None,
        }
    }

    /// Forgets all connections, for instance because their runtime has ended.
    pub(super) fn clear(&mut self) {
        let Self { full, failed, .. } = *self;
        for held in self.sound.drain(..).chain(self.doubtful.drain(..).map(|(held, _)| held)) {
            held.retired.cancel();
        }
        *self = Self { failed, ..Self::new(full) };
    }

    /// A connection that can be relied on, as far as anybody knows.
    pub(super) fn first(&self) -> Option<Arc<Held<S>>> {
        self.sound.front().cloned()
    }

    /// The same, and the next time another one, if there is one.
    pub(super) fn next(&mut self) -> Option<Arc<Held<S>>> {
        let held = self.first();
        self.sound.rotate_left(usize::from(held.is_some()));
        held
    }

    pub(super) fn is_sound(&self, held: &Arc<Held<S>>) -> bool {
        self.sound.iter().any(|sound| Arc::ptr_eq(sound, held))
    }

    /// Notes that somebody waits for a connection.
    pub(super) fn ask(&mut self) {
        self.asked = true;
    }

    /// How many attempts have failed so far, and how the last one did.
    pub(super) fn failed(&self) -> (u64, Option<&StoreError>) {
        (self.failed, self.error.as_ref())
    }

    /// Begins an attempt to connect if one is needed: how many have failed before it, and whether
    /// anybody could be waiting for it.
    ///
    /// A lane that nobody uses tries once when its connection is lost. If that fails it waits
    /// until it is asked, so that a server that is gone isn't troubled for nothing.
    pub(super) fn begin(&mut self) -> Option<(u32, bool)> {
        let useful = self.failures == 0 || self.asked || !self.sound.is_empty();
        if self.connecting || self.sound.len() >= self.full || !useful {
            return None;
        }
        self.connecting = true;
        self.asked = false;
        Some((self.failures, self.sound.is_empty()))
    }

    /// The attempt ended with a connection. Returns whether there was room for it.
    pub(super) fn connected(&mut self, held: Arc<Held<S>>) -> bool {
        self.connecting = false;
        self.failures = 0;
        self.error = None;
        self.offer(held)
    }

    /// The attempt failed.
    pub(super) fn unconnected(&mut self, error: StoreError) {
        self.connecting = false;
        self.failures = self.failures.saturating_add(1);
        self.failed += 1;
        self.error = Some(error);
    }

    /// Puts a sound connection to the others, unless there are enough. Once there are, nobody
    /// waits for the doubtful ones any more.
    pub(super) fn offer(&mut self, held: Arc<Held<S>>) -> bool {
        if self.sound.len() >= self.full {
            held.retired.cancel();
            return false;
        }
        self.sound.push_back(held);
        if self.sound.len() >= self.full {
            for (held, _) in self.doubtful.drain(..) {
                held.retired.cancel();
            }
        }
        true
    }

    /// A request was given up in the middle. Returns whether nothing is sound since then.
    pub(super) fn doubt(&mut self, held: &Arc<Held<S>>) -> bool {
        if let Some((_, count)) = self.entry(held) {
            *count += 1;
        }
        let was_sound = self.remove(held);
        if was_sound {
            self.doubtful.push((Arc::clone(held), 1));
        }
        was_sound && self.sound.is_empty()
    }

    /// What was given up was answered after all.
    pub(super) fn clean(&mut self, held: &Arc<Held<S>>) {
        let Some((_, count)) = self.entry(held) else { return };
        *count -= 1;
        if *count == 0 {
            self.doubtful.retain(|(doubtful, _)| !Arc::ptr_eq(doubtful, held));
            self.offer(Arc::clone(held));
        }
    }

    /// The connection is not to be used for anything new. Returns whether nothing is sound since
    /// then.
    pub(super) fn lose(&mut self, held: &Arc<Held<S>>) -> bool {
        held.retired.cancel();
        self.doubtful.retain(|(doubtful, _)| !Arc::ptr_eq(doubtful, held));
        self.remove(held) && self.sound.is_empty()
    }

    /// Takes a connection from the sound ones, and says whether it was one.
    fn remove(&mut self, held: &Arc<Held<S>>) -> bool {
        let before = self.sound.len();
        self.sound.retain(|sound| !Arc::ptr_eq(sound, held));
        self.sound.len() < before
    }

    fn entry(&mut self, held: &Arc<Held<S>>) -> Option<&mut (Arc<Held<S>>, usize)> {
        self.doubtful.iter_mut().find(|(doubtful, _)| Arc::ptr_eq(doubtful, held))
    }
}
