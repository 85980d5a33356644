use incumbent_core::store::{Expect, Key, Lane};

use super::contest::{WRITERS, contest, enough_winners};
use crate::violation::ensure;
use crate::{Context, Effect, Violation};

/// Published libraries failed this: two candidates that both saw an expired lease both won.
pub(super) const ABOUT: &str = "Of several who swap the same version at once, exactly one does";

pub(super) async fn run(context: Context) -> Result<(), Violation> {
    let (handles, judge) = (context.open_many(WRITERS).await?, context.open_clean().await?);
    let key = Key::new("lease/contested");
    let mut version = judge.create(&key, b"{}").await?;
    let mut won = 0;
    for _ in 0..context.rounds() {
        let expect = Expect::Version(version.clone());
        if contest(&context, &handles, &judge, &key, &expect).await? {
            won += 1;
            let late = judge.replacement(&key, expect, b"{\"late\":true}");
            let effect = judge.attempt(Lane::Change, late).await?;
            ensure!(
                !matches!(effect, Effect::Applied(_)),
                "a late candidate swapped {version:?} although another had already"
            );
        }
        let record = judge.read(&key).await?;
        version = record.ok_or_else(|| Violation::new("the swapped record is gone"))?.version;
    }
    enough_winners(&context, won, context.rounds())
}
