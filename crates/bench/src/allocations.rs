//! Counts what this thread allocates.
#![allow(unsafe_code, reason = "a global allocator can't be written without it; it only counts")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

#[global_allocator]
static COUNTING: Counting = Counting;

thread_local! {
    // Neither lazy nor dropped, so that counting allocates nothing itself.
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call is passed on to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps the rules of this very function.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the rules of this very function.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// How many allocations a call makes on this thread.
pub(crate) fn during(call: impl FnOnce()) -> u64 {
    let before = COUNT.with(Cell::get);
    call();
    COUNT.with(Cell::get) - before
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_allocation_is_counted() {
        assert_eq!(during(|| {}), 0);
        assert_eq!(during(|| drop(std::hint::black_box(Box::new(7)))), 1);
    }
}
