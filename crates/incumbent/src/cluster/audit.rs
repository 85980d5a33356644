//! What operators did, for those who come after.

use incumbent_core::keys;
use incumbent_core::records::{Act, Audit, Content};
use incumbent_core::store::Expect;

use super::Cluster;
use super::intents::{ATTEMPTS, Writer, expect};
use crate::error::ClusterError;

impl Cluster {
    /// The last acts of operators that somebody wrote down by [`Self::note`], oldest first. Some
    /// hundred are kept.
    ///
    /// # Errors
    /// If the store can't be reached or the record can't be read.
    pub async fn audit(&self) -> Result<Vec<Act>, ClusterError> {
        let this = self.clone();
        self.run(async move {
            let stored = this.read_key(keys::audit()).await?;
            Ok(stored.map_or(Ok(Audit::fresh()), |stored| Audit::read(&stored))?.acts)
        })
        .await
    }

    /// Writes down what an operator did. It changes nothing else and wakes nobody.
    ///
    /// # Errors
    /// If the store can't be reached or the record can't be read.
    pub async fn note(&self, act: Act) -> Result<(), ClusterError> {
        let this = self.clone();
        self.run(async move {
            let (mut writer, most) = (Writer::new(), this.store.capabilities().max_value / 2);
            for _ in 0..ATTEMPTS {
                let stored = this.read_key(keys::audit()).await?;
                let (mut audit, expect) = match &stored {
                    Some(stored) => (Audit::read(stored)?, expect(stored)),
                    None => (Audit::fresh(), Expect::Absent),
                };
                audit.remember(act.clone(), most);
                let mut put = writer.put(keys::audit(), expect, audit.bytes());
                put.hint = false;
                if this.write(put).await? {
                    return Ok(());
                }
            }
            Err(ClusterError::Contended { key: keys::audit().as_str().to_owned() })
        })
        .await
    }
}
