//! What follows if the driver or the core panics: all trust ends, and the node joins again.

use std::collections::VecDeque;
use std::time::Duration;

use incumbent_core::LeaseName;
use incumbent_core::backoff::Backoff;
use incumbent_core::random::Random;
use incumbent_duties::DutyNode as Protocol;

use super::lanes::Lanes;
use super::waiters::Waiters;
use super::{Driver, DriverStart};
use crate::driver::command::Command;
use crate::driver::mutant::{DriverMutant, planted};
use crate::driver::{clock, panic, seed, thread};
use crate::lead::attempt::AttemptOutcome;
use crate::lead::loss::Loss;
use crate::node::event::Event;

/// The first pause after a panic, and the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Runs a node until it has left. To be called on incumbent's thread.
pub(crate) async fn run(start: DriverStart) {
    let mut driver = Driver::new(start);
    let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
    let mut random = Random::new(seed::draw());
    loop {
        let began = clock::now();
        let ended = panic::contained(Box::pin(driver.run()).as_mut()).await;
        let Err(said) = ended else { return };
        if clock::now().since(began) > LONGEST_PAUSE {
            backoff.reset();
        }
        driver.break_down();
        let pause = backoff.pause(&mut random);
        tracing::error!(
            node = driver.name(),
            action = "panic",
            said,
            ?pause,
            "incumbent itself failed, which is a bug: all work has ended, and the node joins again"
        );
        driver.rest(pause).await;
    }
}

impl Driver {
    /// Nothing of what the core said counts any more. What was asked of this node still does.
    fn break_down(&mut self) {
        if planted(DriverMutant::BrokenKeepsTrust) {
            self.broken = true;
            return;
        }
        let trusted = self.trust.take();
        if let Some((_, trust)) = &trusted {
            trust.stop();
        }
        let unfinished = self.tenures.values().map(|tenure| (tenure.lease.clone(), tenure.term));
        self.unfinished.extend(unfinished);
        self.end_all(Loss::Broken);
        let member = trusted.map(|(member, trust)| {
            trust.end();
            member
        });
        self.shared.set_leads_cluster(false);
        self.shared.member.store(None);
        self.duties.forget_elected();
        self.duties.stop_preparing();
        for entry in self.attempts.take() {
            let why = "incumbent itself failed on this node, which joins again".to_owned();
            let _ = entry.answer.send(AttemptOutcome::Unavailable(why));
        }
        self.waiters = Waiters::default();
        self.witnesses.forget_all();
        if let Some(post) = &mut self.post {
            post.forget_asked();
        }
        // What is on its way may land, as after a crash; the answers are of no use to the next.
        self.lanes =
            Lanes::new(self.lanes.store(), self.cluster.clone(), self.config.timing.rhythm);
        if let Some(member) = member {
            self.witnesses.ended(&member);
            self.tell(Event::Ended { member, why: Loss::Broken });
        }
        self.broken = true;
    }

    /// Waits before the next incarnation. What is asked meanwhile is kept for it.
    async fn rest(&mut self, pause: Duration) {
        let until = clock::now() + pause;
        loop {
            tokio::select! {
                biased;
                command = self.queue.recv() => {
                    let leaves = matches!(command, Some(Command::Leave(_) | Command::Abandon));
                    self.kept.extend(command);
                    if leaves {
                        return;
                    }
                }
                () = thread::sleep_until(until) => return,
            }
        }
    }

    /// Starts over after a panic, with the campaigns and families that there are.
    pub(super) fn start_over(&mut self) {
        if std::mem::take(&mut self.broken) {
            let now = clock::now();
            // What was seen stays seen; nothing else of the core that panicked counts.
            let past = self.core.past();
            self.core =
                Protocol::new(self.config.clone(), self.placement.clone(), seed::draw(), now);
            self.core.recall(past);
            let free = |lease: &LeaseName| !self.unfinished.contains_key(lease);
            for (lease, candidate) in self.campaigns.iter().filter(|(lease, _)| free(lease)) {
                self.core.campaign(now, lease.clone(), candidate.candidacy.clone());
            }
            self.serve_again(now);
            if let Some(load) = self.load {
                self.core.tell_load(now, load);
            }
            if self.leaving.is_some() {
                self.core.leave(now);
            }
        }
        while let Some(command) = self.kept.pop_front() {
            self.obey(command);
        }
    }
}

/// Commands that came while the driver rested.
pub(super) type Kept = VecDeque<Command>;
