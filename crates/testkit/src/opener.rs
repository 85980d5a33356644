use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use incumbent_core::store::{Store, StoreError};

/// The future that gives a freshly opened store.
pub type Opening<'a> =
    Pin<Box<dyn Future<Output = Result<Arc<dyn Store>, StoreError>> + Send + 'a>>;

/// Opens the store under test, as often as the kit asks.
///
/// Any function without arguments that returns a future of `Result<Arc<S>, StoreError>` is one.
pub trait Opener: Send + Sync + 'static {
    /// An independent handle on the same records, such as another process would have: with
    /// connections and caches of its own. A store whose records live in this process gives a
    /// handle that shares them.
    fn open(&self) -> Opening<'_>;

    /// Breaks what connects the open handles to the store at this moment, as a failing network
    /// would: close the sockets, kill the sessions on the server. What comes after may work
    /// again. Answers whether it did anything; by default it can't.
    ///
    /// With it the kit sees the store's own errors, and whether they tell the truth.
    fn disturb(&self) -> Pin<Box<dyn Future<Output = bool> + Send + '_>> {
        Box::pin(async { false })
    }
}

impl<F, O, S> Opener for F
where
    F: Fn() -> O + Send + Sync + 'static,
    O: Future<Output = Result<Arc<S>, StoreError>> + Send + 'static,
    S: Store,
{
    fn open(&self) -> Opening<'_> {
        let opening = self();
        Box::pin(async move { Ok(opening.await? as Arc<dyn Store>) })
    }
}
