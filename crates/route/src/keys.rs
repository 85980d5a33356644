/// Which duty a key belongs to: always the same one, in every process and every version.
///
/// Rendezvous hashing: a duty that is added takes its share of the keys from all others and moves no
/// other key; one that is removed leaves its keys to all others. What a key belongs to says nothing
/// about where that duty runs: [`Owners`](incumbent::Owners) knows.
///
/// ```
/// use incumbent_route::KeyRouter;
///
/// let shards = KeyRouter::over((0..64).map(|shard| shard.to_string()));
/// assert_eq!(shards.duty("customer 4711"), Some("22"));
/// ```
#[derive(Clone, Debug)]
pub struct KeyRouter {
    /// Each duty with the hash of its name.
    duties: Vec<(u64, String)>,
}

impl KeyRouter {
    /// Over the duties of these names. All who route must name the same ones, in any order.
    pub fn over<N: Into<String>>(duties: impl IntoIterator<Item = N>) -> Self {
        let mut duties: Vec<(u64, String)> = duties
            .into_iter()
            .map(|name| {
                let name = name.into();
                (hash(name.as_bytes()), name)
            })
            .collect();
        duties.sort();
        duties.dedup();
        Self { duties }
    }

    /// The duty that a key belongs to; nothing if there are no duties.
    pub fn duty(&self, key: impl AsRef<[u8]>) -> Option<&str> {
        let key = hash(key.as_ref());
        let most = self.duties.iter().max_by_key(|(name, _)| mix(name ^ key));
        most.map(|(_, duty)| duty.as_str())
    }
}

/// FNV-1a, mixed: public, simple, and the same for ever.
fn hash(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    mix(bytes.iter().fold(0xcbf2_9ce4_8422_2325, step))
}

/// The end of splitmix64: each bit of the input changes about half of the output's.
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn shards(count: u32) -> KeyRouter {
        KeyRouter::over((0..count).map(|shard| shard.to_string()))
    }

    #[test]
    fn a_key_never_changes_its_duty() {
        // Computed by another program. Clients of other versions compute the same.
        let shards = shards(64);
        for (key, duty) in PINNED {
            assert_eq!(shards.duty(key), Some(duty), "{key:?}");
        }
        let other_order = KeyRouter::over((0..64).rev().map(|shard| shard.to_string()));
        assert_eq!(other_order.duty("a"), shards.duty("a"));
        assert_eq!(KeyRouter::over(Vec::<String>::new()).duty("a"), None);
    }

    const PINNED: [(&str, &str); 4] =
        [("", "17"), ("a", "21"), ("customer 4711", "22"), ("☃", "28")];

    #[test]
    fn keys_are_spread_evenly() {
        let (shards, mut counts) = (shards(64), BTreeMap::new());
        for key in 0..64_000 {
            *counts.entry(shards.duty(format!("key {key}")).unwrap()).or_insert(0) += 1;
        }
        assert_eq!(counts.len(), 64);
        assert!(counts.values().all(|count| (850..1150).contains(count)), "{counts:?}");
    }

    #[test]
    fn a_new_duty_moves_only_the_keys_that_it_gets() {
        let (before, after) = (shards(64), shards(65));
        let mut moved = 0;
        for key in 0..10_000 {
            let key = format!("key {key}");
            let (old, new) = (before.duty(&key), after.duty(&key));
            if old != new {
                assert_eq!(new, Some("64"), "{key} goes to nobody else");
                moved += 1;
            }
        }
        assert!((100..220).contains(&moved), "a 65th of the keys moves, and not {moved}");
    }
}
