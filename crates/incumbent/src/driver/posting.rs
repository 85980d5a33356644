//! Hints between nodes, where the store pushes none.

use incumbent_core::records::Profile;
use incumbent_core::{MemberId, Moment};

use super::Driver;
use crate::driver::clock;
use crate::hint::Post;

/// Waits until another node has said something; for ever where none can.
pub(super) async fn called(post: Option<&Post>) {
    match post {
        Some(post) => post.inbox().called().await,
        None => std::future::pending().await,
    }
}

impl Driver {
    /// Takes in what other nodes said, and tells them what changed. The reads that follow from that are as
    /// many as the allowance says, however much is said.
    pub(super) fn attend_post(&mut self) {
        let now = clock::now();
        let Some(post) = &mut self.post else { return };
        let witnesses = &self.witnesses;
        let look = post.turn(now, self.over, || witnesses.targets().collect());
        self.shared.meters.dropped(post.dropped());
        if look {
            self.hinted();
        }
    }

    /// Somebody holds what this node waits for, and this is what it says about itself.
    pub(super) fn met(&mut self, member: &MemberId, profile: &Profile) {
        let Some(post) = &mut self.post else { return };
        let Some(target) = post.target(profile) else { return };
        if self.witnesses.met(member, target) {
            post.greet(target);
        }
    }

    pub(super) fn post_wakes_at(&self) -> Moment {
        self.post.as_ref().map_or(Moment::NEVER, Post::wake_at)
    }
}
