//! Saying that a store may forget.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use crate::open::OpenStore;

/// The stores of which that was said.
static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Warns of a store that says it may lose what it acknowledged: once for each in this process.
/// What lives in this process alone ends with it, and with all that could be misled.
pub(crate) fn warn_once(store: &OpenStore) {
    if let Some(warning) = warning(store)
        && SAID.lock().unwrap_or_else(PoisonError::into_inner).insert(key(store))
    {
        tracing::warn!(store = store.capabilities().kind, action = "join", "{warning}");
    }
}

/// Which store that is, as far as it can be told apart.
fn key(store: &OpenStore) -> String {
    format!("{} {}", store.capabilities().kind, store.url.as_deref().unwrap_or_default())
}

fn warning(store: &OpenStore) -> Option<String> {
    let capabilities = store.capabilities();
    if capabilities.durable || !capabilities.shared {
        return None;
    }
    let known = store.warnings();
    let advice = if known.is_empty() {
        "Let it write through to its disk before it acknowledges.".to_owned()
    } else {
        known.join(" ")
    };
    Some(format!(
        "This store may lose what it acknowledged when it crashes, terms included, and then two \
         may lead for a while. {advice}"
    ))
}

#[cfg(test)]
mod tests {
    use incumbent_core::store::{
        Answer, Capabilities, Exchange, HintGuard, Lane, Store, StoreError, Wake,
    };

    use super::*;

    struct Forgetful {
        durable: bool,
        shared: bool,
    }

    impl Store for Forgetful {
        fn capabilities(&self) -> Capabilities {
            let memory = incumbent_memory::MemoryStore::new().capabilities();
            Capabilities { durable: self.durable, shared: self.shared, ..memory }
        }

        fn exchange<'a>(&'a self, _: &'a str, _: Lane, _: Exchange) -> Answer<'a> {
            Box::pin(async { Err(StoreError::unavailable("nobody asks it")) })
        }

        fn hints(&self, _: &str, _: Wake) -> Option<HintGuard> {
            None
        }

        fn warnings(&self) -> Vec<String> {
            vec!["Set appendfsync always.".to_owned()]
        }
    }

    #[test]
    fn o6_only_a_shared_store_that_may_forget_is_warned_of() {
        let of = |durable, shared| warning(&Forgetful { durable, shared }.into());
        assert!(of(false, true).is_some_and(|said| said.contains("Set appendfsync always.")));
        assert_eq!(of(true, true), None);
        assert_eq!(of(false, false), None);
    }
}
