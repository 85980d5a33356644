//! Several writers want the same record, and one at most may have it.

use incumbent_core::store::{Expect, Key, Lane, Put, Record};

use crate::violation::ensure;
use crate::{Context, Effect, Handle, Violation, shown};

/// How many writers race.
pub(super) const WRITERS: usize = 8;

/// Lets each handle try to write once, all at the same time, and judges what came of it.
/// Answers whether anyone won.
pub(super) async fn contest(
    context: &Context,
    handles: &[Handle],
    judge: &Handle,
    key: &Key,
    expect: &Expect,
) -> Result<bool, Violation> {
    let before = judge.read(key).await?;
    let puts: Vec<_> = handles.iter().map(|handle| candidacy(handle, key, expect)).collect();
    let writers = handles.iter().zip(&puts).enumerate().map(|(place, (handle, put))| {
        // A beat and the closing of its member race on different lanes.
        let lane = if place % 2 == 0 { Lane::Change } else { Lane::Beat };
        let (handle, put) = (handle.clone(), put.clone());
        async move { handle.attempt(lane, put).await }
    });
    let effects = context.race(writers.collect()).await?;
    context.quiet().await;
    let after = judge.read(key).await?;
    verdict(key, &puts, &effects, before.as_ref(), after.as_ref())
}

/// Fails if so many rounds had no winner that it can't have been bad luck. A few may: a write
/// may be refused because the record was locked too long.
pub(super) fn enough_winners(
    context: &Context,
    won: usize,
    rounds: usize,
) -> Result<(), Violation> {
    ensure!(
        context.faulty() || won * 2 >= rounds,
        "in {} of {rounds} races nobody won, though the record was as all {WRITERS} expected",
        rounds.saturating_sub(won)
    );
    Ok(())
}

fn candidacy(handle: &Handle, key: &Key, expect: &Expect) -> Put {
    let mut put = handle.replacement(key, expect.clone(), b"");
    put.value = format!(r#"{{"winner":"{}"}}"#, put.stamp).into_bytes();
    put
}

fn verdict(
    key: &Key,
    puts: &[Put],
    effects: &[Effect],
    before: Option<&Record>,
    after: Option<&Record>,
) -> Result<bool, Violation> {
    let winners = effects.iter().filter(|effect| matches!(effect, Effect::Applied(_))).count();
    ensure!(winners <= 1, "{winners} of {} racing writers of {key} all won", effects.len());
    let there = after.and_then(|after| {
        let place = puts.iter().position(|put| put.value == after.value)?;
        Some((effects.get(place)?, after))
    });
    let Some((effect, after)) = there else {
        ensure!(winners == 0, "a write of {key} was acknowledged, but its content isn't there");
        ensure!(
            before.map(|record| &record.version) == after.map(|record| &record.version),
            "nobody won, yet {key} went from {} to {}",
            shown::maybe(before),
            shown::maybe(after)
        );
        return Ok(false);
    };
    match effect {
        Effect::Applied(version) => ensure!(
            *version == after.version,
            "the winner of {key} was told version {version:?}, but it is {:?}",
            after.version
        ),
        Effect::Unknown => {
            ensure!(winners == 0, "two writers of {key} won: one acknowledged, one unknown");
        }
        Effect::Refused | Effect::Unavailable => {
            ensure!(false, "a writer of {key} was told {effect:?}, yet its content is there")
        }
    }
    Ok(true)
}
