use incumbent_core::store::{Expect, Key, Lane};

use crate::violation::ensure;
use crate::{Context, Violation};

pub(super) const ABOUT: &str =
    "A read sees every write acknowledged before, whoever wrote and on whichever lane";

const LANES: [Lane; 3] = [Lane::Watch, Lane::Change, Lane::Beat];

pub(super) async fn run(context: Context) -> Result<(), Violation> {
    let handles = context.open_many(3).await?;
    let key = Key::new("lease/fresh");
    let mut expect = Expect::Absent;
    for (round, writer) in handles.iter().cycle().take(context.rounds() * 2).enumerate() {
        let content = format!("{{\"round\":{round}}}");
        let put = writer.put(&key, expect.clone(), content.as_bytes()).await?;
        let version = put.ok_or_else(|| {
            Violation::new(format!("write {round} expected what was there and was refused"))
        })?;
        for (reader, lane) in handles.iter().zip(LANES.iter().cycle().skip(round)) {
            let found = reader.read_on(*lane, &key).await?;
            let seen = found.as_ref().map(|record| record.version.clone());
            ensure!(
                seen.as_ref() == Some(&version),
                "write {round} was acknowledged as {version:?}, then a read on {lane:?} saw {seen:?}"
            );
            ensure!(
                found.is_some_and(|record| record.value == content.as_bytes()),
                "write {round} was acknowledged, then a read on {lane:?} saw other content"
            );
        }
        for reader in &handles {
            let listed = reader.list(&Key::new("lease/")).await?;
            ensure!(
                listed.iter().map(|record| &record.version).eq([&version]),
                "write {round} was acknowledged, then a prefix read didn't show it"
            );
        }
        expect = Expect::Version(version);
    }
    Ok(())
}
