use incumbent_core::store::{Exchange, Expect, Key, Lane, Outcome, Write};

use crate::violation::ensure;
use crate::{Context, Handle, Rng, Violation};

pub(super) const ABOUT: &str =
    "Each write of an exchange stands alone: a refused one undoes no other";

/// One write of the exchange, and what should come of it.
struct Case {
    write: Write,
    applies: bool,
    value: Vec<u8>,
}

pub(super) async fn run(context: Context) -> Result<(), Violation> {
    let (handle, judge) = (context.open().await?, context.open_clean().await?);
    let mut rng = context.rng();
    for round in 0..context.rounds().min(20) {
        let mut cases = cases(&handle, round).await?;
        shuffle(&mut cases, &mut rng);
        cases.truncate(context.capabilities().max_operations);
        let writes = cases.iter().map(|case| case.write.clone()).collect();
        let reply = handle.exchange(Lane::Change, Exchange { writes, reads: Vec::new() }).await?;
        for (case, outcome) in cases.iter().zip(&reply.writes) {
            let applied = matches!(outcome, Outcome::Applied(_));
            let key = case.write.key();
            ensure!(
                applied == case.applies,
                "{outcome:?} came of the write of {key} beside others, but alone it {}",
                if case.applies { "applies" } else { "is refused" }
            );
            let found = judge.read(key).await?.map(|record| record.value);
            ensure!(
                found.as_ref() == Some(&case.value),
                "after {outcome:?} the record {key} isn't what that outcome says"
            );
        }
    }
    Ok(())
}

async fn cases(handle: &Handle, round: usize) -> Result<Vec<Case>, Violation> {
    let mut cases = Vec::new();
    for place in 0..3 {
        let name = |sort: &str| Key::new(&format!("lease/{sort}-{round}-{place}"));
        let (fresh, taken, right, stale) = (name("new"), name("taken"), name("right"), name("old"));
        handle.create(&taken, b"{}").await?;
        let version = handle.create(&right, b"{}").await?;
        let old = handle.create(&stale, b"{\"old\":1}").await?;
        handle.swap(&stale, &old, b"{}").await?;
        let case = |key: &Key, expect: Expect, applies: bool| {
            let value = if applies { b"{\"new\":1}".to_vec() } else { b"{}".to_vec() };
            let write = Write::Put(handle.replacement(key, expect, b"{\"new\":1}"));
            Case { write, applies, value }
        };
        cases.push(case(&fresh, Expect::Absent, true));
        cases.push(case(&taken, Expect::Absent, false));
        cases.push(case(&right, Expect::Version(version), true));
        cases.push(case(&stale, Expect::Version(old), false));
    }
    Ok(cases)
}

fn shuffle(cases: &mut [Case], rng: &mut Rng) {
    for place in (1..cases.len()).rev() {
        cases.swap(place, rng.below(place + 1));
    }
}
