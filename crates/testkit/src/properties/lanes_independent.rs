use std::time::Duration;

use incumbent_core::store::{Exchange, Expect, Key, Lane, Write};
use tokio::task::JoinSet;

use crate::violation::ensure;
use crate::{Context, Effect, Handle, Violation};

pub(super) const ABOUT: &str = "Beats go through while many changes are under way (F17, F31)";

const CHANGES: usize = 40;
const BEATS: usize = 5;

/// The default request time-out: a beat that takes longer has failed.
const LIMIT: Duration = Duration::from_secs(5);

pub(super) async fn run(context: Context) -> Result<(), Violation> {
    let handle = context.open().await?;
    let key = Key::new("member/beating");
    let mut version = handle.create(&key, b"{\"beat\":0}").await?;
    let mut changes = JoinSet::new();
    for number in 0..CHANGES {
        changes.spawn(change(handle.clone(), number, context.capabilities().max_operations));
    }
    tokio::task::yield_now().await;
    for beat in 1..=BEATS {
        let content = format!("{{\"beat\":{beat}}}");
        let expect = Expect::Version(version.clone());
        let put = handle.replacement(&key, expect, content.as_bytes());
        let beaten = tokio::time::timeout(LIMIT, handle.attempt(Lane::Beat, put)).await;
        let effect = beaten.map_err(|_| {
            Violation::new(format!("a beat waited over {LIMIT:?} for {CHANGES} changes"))
        })??;
        let Effect::Applied(now) = effect else {
            return Err(Violation::new(format!("{effect:?} came of a beat beside changes")));
        };
        version = now;
    }
    while let Some(change) = changes.join_next().await {
        change.map_err(|error| Violation::new(format!("panic: {error}")))??;
    }
    let listed = handle.list(&Key::new("lease/")).await?.len();
    ensure!(listed >= CHANGES, "of {CHANGES} changes beside beats only {listed} were applied");
    Ok(())
}

async fn change(handle: Handle, number: usize, most: usize) -> Result<(), Violation> {
    let keys = (0..most.clamp(1, 20)).map(|n| Key::new(&format!("lease/{number:02}-{n:02}")));
    let writes = keys.map(|key| Write::Put(handle.creation(&key, b"{}"))).collect();
    handle.exchange(Lane::Change, Exchange { writes, reads: Vec::new() }).await.map(drop)
}
