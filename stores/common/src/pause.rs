use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// How long to wait before the next attempt after so many failures in a row: nothing at first,
/// then ever longer, and never as long as others do.
#[must_use]
pub fn pause(failures: u32, longest: Duration) -> Duration {
    let Some(doublings) = failures.checked_sub(1) else { return Duration::ZERO };
    let span = Duration::from_millis(50).saturating_mul(1 << doublings.min(16)).min(longest);
    // Jitter decides nothing, so any source of chance will do.
    let chance = RandomState::new().hash_one(failures) % 1024;
    span.mul_f64(0.5 + chance as f64 / 2048.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_their_limit_and_differ() {
        let longest = Duration::from_secs(1);
        assert_eq!(pause(0, longest), Duration::ZERO);
        for failures in 1..40 {
            let span = pause(failures, longest);
            assert!(span >= Duration::from_millis(25) && span <= longest, "{span:?}");
        }
        assert!(pause(40, longest) >= longest / 2);
        let first = pause(9, longest);
        assert!((0..100).any(|_| pause(9, longest) != first), "no jitter");
    }
}
