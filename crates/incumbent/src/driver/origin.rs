//! Telling a process from its forked children.
//!
//! A child that was forked has a copy of all that its parent knew, but none of its threads: what
//! it knows of trust would never end in order, and its parent goes on (O7).

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// The process in which this was made. Cheap to ask: one load where the kernel helps.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Origin {
    /// A page that the kernel gives to children wiped, so that they read false.
    Page(&'static AtomicBool),
    /// Where there is no such page.
    Process(u32),
}

/// The page of this process, or of the one that it was forked from.
static PAGE: Mutex<Option<&'static AtomicBool>> = Mutex::new(None);

impl Origin {
    /// This process.
    pub(crate) fn here() -> Self {
        let mut known = PAGE.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(page) = known.filter(|page| page.load(Ordering::Relaxed)) {
            return Self::Page(page);
        }
        match page::map() {
            Some(page) => {
                page.store(true, Ordering::Relaxed);
                *known = Some(page);
                Self::Page(page)
            }
            None => Self::Process(std::process::id()),
        }
    }

    /// Whether this still is that process.
    #[inline]
    pub(crate) fn is_here(self) -> bool {
        match self {
            // Nothing in a child was there at the time of the fork but the thread that forked, so
            // no order is needed between this and anything else.
            Self::Page(page) => page.load(Ordering::Relaxed),
            Self::Process(process) => process == std::process::id(),
        }
    }
}

#[cfg(target_os = "linux")]
mod page {
    #![allow(unsafe_code, reason = "mapping a page, and referring to it, can't be written without")]

    use std::ptr;
    use std::sync::atomic::AtomicBool;

    use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};
    use rustix::param::page_size;

    /// Maps a page that lives as long as the process and that forked children get wiped. Nothing
    /// with kernels before 4.14.
    pub(super) fn map() -> Option<&'static AtomicBool> {
        let (length, access) = (page_size(), ProtFlags::READ | ProtFlags::WRITE);
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory in use.
        let page =
            unsafe { mmap_anonymous(ptr::null_mut(), length, access, MapFlags::PRIVATE) }.ok()?;
        // SAFETY: this is the whole mapping made above, of which nobody knows yet; the advice
        // changes nothing about it in this process.
        unsafe { madvise(page, length, Advice::LinuxWipeOnFork) }.ok()?;
        // SAFETY: the page is aligned, readable, writable, never unmapped, and all zeroes, which
        // is a valid `AtomicBool`; it is accessed only through this type.
        Some(unsafe { AtomicBool::from_ptr(page.cast()) })
    }
}

#[cfg(not(target_os = "linux"))]
mod page {
    use std::sync::atomic::AtomicBool;

    pub(super) fn map() -> Option<&'static AtomicBool> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_itself() {
        let origin = Origin::here();
        assert!(origin.is_here() && Origin::here().is_here());
        assert!(!Origin::Process(0).is_here());
        #[cfg(target_os = "linux")]
        assert!(matches!(origin, Origin::Page(_)), "one load, and no system call");
    }
}
