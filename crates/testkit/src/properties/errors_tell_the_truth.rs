use incumbent_core::store::{Expect, Key, Lane};
use tokio::task::JoinSet;

use crate::violation::ensure;
use crate::{Context, Effect, Handle, Violation};

pub(super) const ABOUT: &str =
    "What was acknowledged is there, and what was refused or unavailable never is";

pub(super) async fn run(context: Context) -> Result<(), Violation> {
    let (handle, judge) = (context.open().await?, context.open_clean().await?);
    let mut disturbances = JoinSet::new();
    let key = Key::new("lease/truth");
    for round in 0..context.rounds() * 3 {
        if round % 5 == 0 {
            let context = context.clone();
            disturbances.spawn(async move { context.disturb().await });
        }
        let lane = if round % 2 == 0 { Lane::Change } else { Lane::Beat };
        told_truly(&context, &handle, &judge, &key, lane, round).await?;
        let fresh = Key::new(&format!("lease/truth-{round}"));
        told_truly(&context, &handle, &judge, &fresh, lane, round).await?;
    }
    while disturbances.join_next().await.is_some() {}
    Ok(())
}

/// Writes once over what is there, and compares what was told with what is.
async fn told_truly(
    context: &Context,
    handle: &Handle,
    judge: &Handle,
    key: &Key,
    lane: Lane,
    round: usize,
) -> Result<(), Violation> {
    let expect = match judge.read(key).await? {
        Some(record) => Expect::Version(record.version),
        None => Expect::Absent,
    };
    let content = format!("{{\"round\":{round}}}");
    let effect = handle.attempt(lane, handle.replacement(key, expect, content.as_bytes())).await?;
    context.quiet().await;
    let found = judge.read(key).await?;
    let there = found.as_ref().is_some_and(|record| record.value == content.as_bytes());
    match &effect {
        Effect::Applied(version) => ensure!(
            there && found.is_some_and(|record| record.version == *version),
            "the write of {key} was acknowledged as {version:?}, but isn't there"
        ),
        Effect::Refused | Effect::Unavailable => {
            ensure!(!there, "the write of {key} was told {effect:?}, but is there");
        }
        Effect::Unknown => {}
    }
    Ok(())
}
