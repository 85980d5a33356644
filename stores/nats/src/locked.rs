use std::sync::{Mutex, MutexGuard, PoisonError};

/// Nothing below these locks calls foreign code, so a poisoned one still guards sound data.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
