//! Where randomness comes from.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

/// Draws a seed from the system.
#[allow(clippy::disallowed_methods, reason = "only the runtime makes seeds, and this is the place")]
pub(crate) fn draw() -> u64 {
    #[cfg(feature = "testing")]
    if let Some(seed) = crate::testing::draw() {
        return seed;
    }
    let mut bytes = [0_u8; 8];
    match getrandom::fill(&mut bytes) {
        Ok(()) => u64::from_ne_bytes(bytes),
        // The system's generator is known to fail only in sandboxes. Hash keys are drawn at
        // random once a process and differ from one to the next, and the clock does the rest.
        Err(_) => RandomState::new().hash_one((crate::driver::clock::now(), std::process::id())),
    }
}
