use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks. What is kept under these locks is whole after every statement, so a panic elsewhere
/// leaves nothing half-done and poisoning says nothing.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
