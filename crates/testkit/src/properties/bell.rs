//! Something for hints to ring.

use std::sync::Arc;
use std::time::Duration;

use incumbent_core::store::{Expect, HintGuard, Key, Lane};
use tokio::sync::watch;

use crate::{Effect, Handle, Violation};

/// How long a hint may take.
pub(super) const BOUND: Duration = Duration::from_secs(5);

/// Counts wake-ups.
pub(super) struct Bell {
    rings: watch::Receiver<usize>,
    guard: Option<HintGuard>,
}

impl Bell {
    /// A bell that this handle's hints ring.
    pub(super) fn hung(handle: &Handle) -> Result<Self, Violation> {
        let (sender, rings) = watch::channel(0_usize);
        let wake = Arc::new(move || sender.send_modify(|rings| *rings = rings.saturating_add(1)));
        let guard = handle.store().hints(handle.cluster(), wake);
        let guard = guard
            .ok_or_else(|| Violation::new("the store declares push, but hints() gave no guard"))?;
        Ok(Self { rings, guard: Some(guard) })
    }

    /// How often it rang.
    pub(super) fn rings(&self) -> usize {
        *self.rings.borrow()
    }

    /// Whether it rings more than `before` times within the bound.
    pub(super) async fn rang(&mut self, before: usize) -> bool {
        let ringing = self.rings.wait_for(|rings| *rings > before);
        matches!(tokio::time::timeout(BOUND, ringing).await, Ok(Ok(_)))
    }

    /// Waits until no more hints come, for some may be late.
    pub(super) async fn silence(&mut self) {
        for _ in 0..20 {
            let before = self.rings();
            tokio::time::sleep(Duration::from_millis(300)).await;
            if self.rings() == before {
                return;
            }
        }
    }

    /// Takes the bell down, but goes on counting.
    pub(super) fn unhook(&mut self) {
        self.guard = None;
    }

    /// Waits until hints come at all: a store may take a while to subscribe.
    pub(super) async fn warm(&mut self, writer: &Handle) -> Result<(), Violation> {
        for number in 0..3 {
            let before = self.rings();
            let key = Key::new(&format!("lease/warm-{number}"));
            ring(writer, &key, true).await?;
            if self.rang(before).await {
                return Ok(());
            }
        }
        Err(Violation::new(format!(
            "three hinted writes through another handle woke nobody, each given {BOUND:?}"
        )))
    }
}

/// Writes over what is there, with or without a hint.
pub(super) async fn ring(writer: &Handle, key: &Key, hint: bool) -> Result<(), Violation> {
    let expect = match writer.read(key).await? {
        Some(record) => Expect::Version(record.version),
        None => Expect::Absent,
    };
    let lane = if hint { Lane::Change } else { Lane::Beat };
    let mut put = writer.replacement(key, expect, b"{}");
    put.hint = hint;
    match writer.attempt(lane, put).await? {
        Effect::Applied(_) => Ok(()),
        effect => Err(Violation::new(format!("{effect:?} came of a write that should apply"))),
    }
}
