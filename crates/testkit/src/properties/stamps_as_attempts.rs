use incumbent_core::store::{Expect, Key};

use crate::violation::ensure;
use crate::{Context, Violation};

pub(super) const ABOUT: &str = "Writing the same content again is a write: it gives a new version";

pub(super) async fn run(context: Context) -> Result<(), Violation> {
    let handles = context.open_many(2).await?;
    let key = Key::new("lease/same");
    let content = b"{\"same\":true}";
    let mut expect = Expect::Absent;
    for handle in handles.iter().cycle().take(context.rounds().max(4)) {
        let put = handle.put(&key, expect.clone(), content).await?;
        let version = put.ok_or_else(|| {
            Violation::new(format!("a write of the same content over {expect:?} was refused"))
        })?;
        ensure!(
            expect != Expect::Version(version.clone()),
            "the same content written again has the same version {version:?}"
        );
        if let Expect::Version(old) = expect {
            let late = handle.put(&key, Expect::Version(old.clone()), b"{\"late\":1}").await?;
            ensure!(late.is_none(), "the version {old:?} still matched after the next write");
        }
        expect = Expect::Version(version);
    }
    Ok(())
}
