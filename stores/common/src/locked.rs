use std::sync::{Mutex, MutexGuard, PoisonError};

/// Takes a lock. Nothing below these locks calls foreign code, so a poisoned one still guards
/// sound data.
pub fn locked<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
