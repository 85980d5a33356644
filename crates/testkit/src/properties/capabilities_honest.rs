use std::sync::Arc;

use incumbent_core::store::Key;

use crate::violation::ensure;
use crate::{Context, Violation};

pub(super) const ABOUT: &str =
    "The store declares the same on every handle, enough to work with, and means it";

/// The largest record that incumbent writes.
const NEEDED: usize = 64 * 1024;

/// The largest value that the kit tries, however much more a store declares.
const TRIED: usize = 1024 * 1024;

pub(super) async fn run(context: Context) -> Result<(), Violation> {
    let handle = context.open().await?;
    let declared = handle.store().capabilities();
    ensure!(declared == *context.capabilities(), "another handle declares {declared:?}");
    ensure!(!declared.kind.is_empty(), "the store has no name for its kind");
    ensure!(declared.max_operations >= 1, "the store takes no operations at all");
    ensure!(
        declared.max_value >= NEEDED,
        "values may be {} bytes, but incumbent writes up to {NEEDED}",
        declared.max_value
    );
    let guard = handle.store().hints(handle.cluster(), Arc::new(|| {}));
    ensure!(
        guard.is_some() == declared.push,
        "push is declared {}, but hints() gave {} guard",
        declared.push,
        if guard.is_some() { "a" } else { "no" }
    );
    let key = Key::new("lease/large");
    let size = declared.max_value.min(TRIED);
    let value = format!("\"{}\"", "x".repeat(size.saturating_sub(2)));
    handle.create(&key, value.as_bytes()).await?;
    let found = handle.read(&key).await?;
    ensure!(
        found.as_ref().is_some_and(|record| record.value == value.as_bytes()),
        "a value of {size} bytes, declared as possible, came back as another"
    );
    ensure!(
        found.is_some_and(|record| record.age.is_some() == declared.clock),
        "a clock is declared {}, but the age of a record says otherwise",
        declared.clock
    );
    Ok(())
}
