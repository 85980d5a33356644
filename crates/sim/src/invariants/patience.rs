//! 13. Nothing retries in a tight loop: a node sends only so many requests in a second.

use std::collections::BTreeMap;

use super::{Invariant, Verdict};

/// A node that waits for three leases and eight duties, leads the cluster and is hit by the hints of
/// five nodes that join at once needs fewer.
const MOST_A_SECOND: u64 = 200;
const SECOND: u64 = 1_000_000_000;

#[derive(Default)]
pub(super) struct Patience {
    /// For each node: which second, and how many requests in it.
    counts: BTreeMap<usize, (u64, u64)>,
}

impl Invariant for Patience {
    fn sent(&mut self, now: u64, node: usize) -> Verdict {
        let second = now / SECOND;
        let (at, count) = self.counts.entry(node).or_insert((second, 0));
        if *at != second {
            (*at, *count) = (second, 0);
        }
        *count += 1;
        if *count > MOST_A_SECOND {
            return Err(format!("node {} sent {count} requests in a second", node + 1));
        }
        Ok(())
    }
}
