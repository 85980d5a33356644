use incumbent_core::store::{Expect, Key};

use super::contest::{WRITERS, contest, enough_winners};
use crate::{Context, Violation};

pub(super) const ABOUT: &str = "Of several who create a record at once, exactly one does";

pub(super) async fn run(context: Context) -> Result<(), Violation> {
    let (handles, judge) = (context.open_many(WRITERS).await?, context.open_clean().await?);
    let mut won = 0;
    for round in 0..context.rounds() {
        let key = Key::new(&format!("lease/create-{round}"));
        won += usize::from(contest(&context, &handles, &judge, &key, &Expect::Absent).await?);
    }
    enough_winners(&context, won, context.rounds())
}
