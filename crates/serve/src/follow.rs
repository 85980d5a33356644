//! Following leases that somebody asks about, so that the next question is answered from memory.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use incumbent::{Cluster, LeaseState, LeaseWatch, Moment, clock};

use crate::problem::Problem;

/// So many leases are followed for those who ask; of more, those are forgotten that nobody asked
/// about for the longest time.
const MOST: usize = 256;

/// Nobody asked for so long: it isn't followed any more.
const IDLE: Duration = Duration::from_secs(60);

/// The leases that are followed.
#[derive(Debug, Default)]
pub(crate) struct Follows(Arc<Mutex<HashMap<Place, Arc<Followed>>>>);

/// The cluster, and the lease in it.
type Place = (String, String);

/// A lease that is followed for as long as somebody has this.
#[derive(Debug)]
pub(crate) struct Followed {
    watch: LeaseWatch,
    asked: AtomicU64,
}

impl Follows {
    /// Follows a lease, if it isn't followed already.
    pub(crate) fn follow(&self, cluster: &Cluster, lease: &str) -> Result<Arc<Followed>, Problem> {
        let mut follows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = clock::now().as_nanos();
        let place = (cluster.name().to_owned(), lease.to_owned());
        if let Some(known) = follows.get(&place) {
            known.asked.store(now, Ordering::Relaxed);
            return Ok(Arc::clone(known));
        }
        let followed =
            Arc::new(Followed { watch: cluster.watch_lease(lease)?, asked: AtomicU64::new(now) });
        if follows.len() >= MOST {
            let oldest = follows.iter().min_by_key(|(_, it)| it.asked.load(Ordering::Relaxed));
            if let Some(oldest) = oldest.map(|(place, _)| place.clone()) {
                follows.remove(&oldest);
            }
        }
        follows.insert(place, Arc::clone(&followed));
        Ok(followed)
    }

    /// Forgets a lease that was followed for one who waits for it no more, unless others follow it too.
    pub(crate) fn release(&self, followed: Arc<Followed>) {
        let mut follows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // This one and the table's own.
        let last = Arc::strong_count(&followed) == 2;
        follows.retain(|_, known| !(last && Arc::ptr_eq(known, &followed)));
    }

    /// Forgets now and then what nobody has asked about for a while, because following costs the store
    /// reads. Ready once this is gone.
    pub(crate) fn forget_idle(&self) -> impl Future<Output = ()> + Send + use<> {
        let follows = Arc::downgrade(&self.0);
        async move {
            loop {
                tokio::time::sleep(IDLE / 6).await;
                let Some(follows) = follows.upgrade() else { return };
                let mut follows = follows.lock().unwrap_or_else(PoisonError::into_inner);
                follows.retain(|_, followed| !followed.is_idle());
            }
        }
    }
}

impl Followed {
    fn is_idle(self: &Arc<Self>) -> bool {
        let asked = Moment::from_nanos(self.asked.load(Ordering::Relaxed));
        Arc::strong_count(self) == 1 && clock::now().since(asked) > IDLE
    }

    /// What was last seen, and how long ago that was asked for.
    pub(crate) fn known(&self) -> Option<(LeaseState, Duration)> {
        self.watch.known()
    }

    /// Waits for a state that passes the test.
    pub(crate) async fn when(&self, test: impl Fn(&LeaseState) -> bool) -> Option<LeaseState> {
        self.watch.when(test).await
    }
}
