//! Telling nodes that something was written which they have to act on, where the store tells nobody.

use incumbent_core::records::{Content, Profile};
use incumbent_core::{LeaseName, MemberId, keys};

use super::Cluster;
use crate::hint::{self, HintSite};

impl Cluster {
    /// Tells the leader of the cluster, if there is one.
    pub(super) async fn hint_leader(&self) {
        if !self.gives_hints() {
            return;
        }
        if let Ok(state) = self.read_lease(&LeaseName::leader()).await
            && let Some(leader) = state.leader
        {
            self.hint_member(&leader.member).await;
        }
    }

    /// Tells a member. Whether that arrives is never known, and what goes wrong is nobody's concern: its
    /// next beat shows it what was written.
    pub(super) async fn hint_member(&self, member: &MemberId) {
        if !self.gives_hints() {
            return;
        }
        let Ok(Some(stored)) = self.read_key(keys::profile(member)).await else { return };
        let Ok(profile) = Profile::read(&stored) else { return };
        let key = self.hints.key.as_ref();
        let Some(target) = HintSite::here().target(&profile, key.is_some()) else { return };
        if let Err(error) = hint::call(target, key) {
            tracing::debug!(cluster = self.name(), %member, action = "hints", %error, "it isn't told");
        }
    }

    fn gives_hints(&self) -> bool {
        let capabilities = self.store.capabilities();
        capabilities.shared && !capabilities.push && self.hints.is_on()
    }
}
