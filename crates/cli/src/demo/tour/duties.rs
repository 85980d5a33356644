//! What the tour does about duties, and what it expects of them.

use std::time::Duration;

use incumbent::{Moment, clock};

use super::Tour;
use super::acts::{Held, took};
use super::summary::{Row, duties};
use crate::demo::DUTIES;
use crate::demo::stage::Stage;
use crate::exit::Outcome;
use crate::span;

/// How much longer than a take-over duties may take to run again: they are planned anew first.
/// A machine that does much else may be slow.
const PLANNING: Duration = Duration::from_secs(20);

/// Time to hear what started at last, before it is summed up.
const TELLING: Duration = Duration::from_millis(200);

impl Tour<'_> {
    pub(super) async fn drain(&mut self) -> Outcome {
        self.title("Drain the leader's node; its duties go elsewhere, its leases stay").await;
        let (_, place, _) = self.leader()?;
        let (name, ran) = (self.stage.name(place), self.stage.run_by(place));
        let before = self.terms();
        let since = self.deed(format!("drain {name}"));
        self.stage.cluster.drain(&name).await?;
        let empty = |stage: &Stage| stage.all_run() && stage.run_by(place).is_empty();
        if self.until(self.patience(), empty).await {
            self.recovered("drained", &name, ran, since).await;
        } else {
            self.complain(format!("{name} was drained and still runs duties"));
        }
        let since = self.deed(format!("undrain {name}"));
        self.stage.cluster.undrain(&name).await?;
        self.spread("undrained", Some(place), since).await;
        if self.terms() != before {
            self.complain(format!("{name} was drained, and leases changed hands by that"));
        }
        Ok(())
    }

    /// Waits until every duty runs, and all nodes run about as many. Writes down how long it took
    /// until this node has its share, or all have.
    pub(super) async fn spread(&mut self, what: &str, to: Option<usize>, since: Moment) {
        if !self.until(self.patience(), |stage| stage.all_run() && is_even(stage)).await {
            let counts = counts(self.stage);
            self.complain(format!("duties are not spread: {counts:?} of {}", DUTIES.len()));
            return;
        }
        let took = clock::now().since(since);
        self.listen(TELLING).await;
        let counts: Vec<String> = counts(self.stage).iter().map(ToString::to_string).collect();
        let counts = counts.join(", ");
        Self::says(&format!("spread after {}: {counts} duties on the nodes", span::text(took)));
        let from = to.map_or_else(String::new, |place| self.stage.name(place));
        let nodes = to.map_or_else(|| self.stage.running(), |place| vec![place]);
        let count = nodes.iter().map(|place| self.stage.run_by(*place).len()).sum();
        let nodes = self.stage.names(nodes.into_iter());
        self.rows.push(Row::change(what, &from, &nodes, duties(count), took));
    }

    /// Waits until these duties run in later terms, and writes down how long it took.
    pub(super) async fn recovered(&mut self, what: &str, from: &str, ran: Held, since: Moment) {
        let later = |stage: &Stage, (duty, term): &(String, u64)| {
            stage.runner(duty).filter(|(_, new)| new > term)
        };
        let done =
            |stage: &Stage| stage.all_run() && ran.iter().all(|one| later(stage, one).is_some());
        if !self.until(self.patience(), done).await {
            self.complain(format!("not all duties run long after {from} {what}"));
            return;
        }
        if ran.is_empty() {
            return;
        }
        let heirs: Vec<(usize, u64)> =
            ran.iter().filter_map(|one| later(self.stage, one)).collect();
        let took = took(&self.stage.ledger.duties, &ran, &heirs, since);
        self.listen(TELLING).await;
        let count = ran.len();
        Self::says(&format!("{count} of its duties run again after {}", span::text(took)));
        let heirs = self.stage.names(heirs.iter().map(|(heir, _)| *heir));
        self.rows.push(Row::change(what, from, &heirs, duties(count), took));
    }

    /// Every duty runs, or will in a moment: one may be on its way between two nodes.
    pub(super) async fn all_run(&mut self) {
        if !self.until(self.patience(), Stage::all_run).await {
            let runs = |duty: &String| self.stage.runner(duty).is_none();
            let missing: Vec<String> = crate::demo::stage::duties().filter(runs).collect();
            self.complain(format!("nobody runs {}", missing.join(", ")));
        }
    }

    fn patience(&self) -> Duration {
        self.limit() + self.limit() + PLANNING
    }
}

/// How many duties each running node runs.
fn counts(stage: &Stage) -> Vec<usize> {
    stage.running().into_iter().map(|place| stage.run_by(place).len()).collect()
}

fn is_even(stage: &Stage) -> bool {
    let counts = counts(stage);
    let (least, most) = (counts.iter().min(), counts.iter().max());
    least.zip(most).is_some_and(|(least, most)| most - least <= 1)
}
