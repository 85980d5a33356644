//! Every store beside its own bare compare-and-swap: beat, take, clean hand-over and push.
//!
//! Each is measured by turns with the bare client, so that whatever the machine does meets both.

mod bare;
mod beats;
pub(crate) mod kind;
mod record;
mod table;
mod terms;

use anyhow::Result;
use clap::Args;
use incumbent::clock;
use serde_json::Value;

use self::kind::{Kind, Wanted};
use self::table::Row;
use crate::partner::Partner;

/// Which stores, and how much.
#[derive(Args, Debug)]
pub(crate) struct StoresArguments {
    /// Measure only this store; may be given several times.
    #[arg(long, value_name = "STORE")]
    only: Vec<String>,
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
    /// How many beats.
    #[arg(long, default_value_t = 1000, value_name = "N")]
    beats: usize,
    /// How many takes, hand-overs and pushes; without push a tenth of the hand-overs.
    #[arg(long, default_value_t = 300, value_name = "N")]
    rounds: usize,
}

pub(crate) fn measure(arguments: &StoresArguments) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let wanted = Wanted::find(&arguments.only, directory.path())?;
    if !arguments.json {
        println!("{}", table::HEAD);
    }
    let mut rows = Vec::new();
    for (kind, url) in &wanted.there {
        let row = one(kind, url, arguments)?;
        if !arguments.json {
            println!("{}", row.markdown());
        }
        rows.push(row.json());
    }
    if arguments.json {
        println!("{}", Value::Array(rows));
    }
    wanted.name_missing();
    Ok(())
}

fn one(kind: &Kind, url: &str, arguments: &StoresArguments) -> Result<Row> {
    // As the library does it: one thread.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let cluster = format!("bench-{}-{}", std::process::id(), clock::now().as_nanos());
    let (stores, mut bare) = runtime.block_on(async {
        let stores = [(kind.open)(url.to_owned()).await?, (kind.open)(url.to_owned()).await?];
        anyhow::Ok((stores, (kind.bare)(url).await?))
    })?;
    let [store, other] = &stores;
    let bare = bare.as_mut();
    let (beat, write) = runtime.block_on(beats::beats(store, &cluster, bare, arguments.beats))?;
    let pushes = beats::pushes([store, other], &cluster, bare, arguments.rounds);
    let push = runtime.block_on(pushes)?;
    let mut players = [Partner::player(url, &cluster, "a")?, Partner::player(url, &cluster, "b")?];
    let take = terms::takes(&mut players[0], &runtime, bare, arguments.rounds)?;
    // A poll takes up to a second.
    let rounds = if push.is_some() { arguments.rounds } else { arguments.rounds.div_ceil(10) };
    let hand_over = terms::hand_overs(&mut players, &runtime, bare, rounds)?;
    Ok(Row { name: kind.name, beat, write, take, hand_over, push })
}
