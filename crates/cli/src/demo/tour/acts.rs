//! The acts of the tour.

use std::time::Duration;

use incumbent::{Moment, clock};

use super::Tour;
use super::summary::{Row, leases};
use crate::demo::ledger::Book;
use crate::demo::process::Condition;
use crate::demo::stage::Stage;
use crate::exit::{Failure, Outcome};
use crate::span;

/// Which leases were held, or duties run, in which terms when something was done to their node.
pub(super) type Held = Vec<(String, u64)>;

/// Who led before anybody did.
const NOBODY: &str = "nobody";

impl Tour<'_> {
    pub(super) async fn start(&mut self, nodes: usize) -> Outcome {
        self.title("Start the nodes; each lease has a leader, and duties are spread").await;
        let since = self.deed(format!("start {nodes} processes"));
        for _ in 0..nodes {
            self.stage.add()?;
        }
        let held = self.stage.recipe.leases.iter().map(|lease| (lease.clone(), 0)).collect();
        self.change("first leaders", NOBODY, held, since).await;
        let joined = |stage: &Stage| {
            stage.processes.iter().all(|process| process.condition == Condition::Running)
        };
        if !self.until(self.limit(), joined).await {
            return Err(Failure::wrong("not all nodes could join: see above"));
        }
        self.spread("duties spread", None, since).await;
        Ok(())
    }

    pub(super) async fn resign(&mut self) -> Outcome {
        self.title("Ask the leader to resign; another takes over at once").await;
        let (lease, leader, term) = self.leader()?;
        let name = self.stage.name(leader);
        let since = self.deed(format!("ask {name} to resign {lease}"));
        self.stage.cluster.request_resign(&lease).await?;
        self.change("resigned", &name, vec![(lease, term)], since).await;
        self.all_run().await;
        Ok(())
    }

    pub(super) async fn transfer(&mut self) -> Outcome {
        self.title("Transfer leadership to a named node").await;
        let (lease, leader, term) = self.leader()?;
        let heir = self.stage.other(leader).ok_or_else(|| missing("to transfer to"))?;
        let (from, to) = (self.stage.name(leader), self.stage.name(heir));
        let since = self.deed(format!("transfer {lease} from {from} to {to}"));
        self.stage.cluster.request_transfer(&lease, &to).await?;
        self.change(&format!("transferred to {to}"), &from, vec![(lease, term)], since).await;
        let (lease, now, _) = self.leader()?;
        if now != heir {
            let won = self.stage.name(now);
            self.complain(format!("{lease} was to go to {to} and went to {won}"));
        }
        self.all_run().await;
        Ok(())
    }

    pub(super) async fn kill(&mut self) -> Outcome {
        self.title("Kill the leader with SIGKILL; the others see its end and go on").await;
        let (_, leader, _) = self.leader()?;
        let (name, held) = (self.stage.name(leader), self.stage.led_by(leader));
        let ran = self.stage.run_by(leader);
        let pid = self.stage.process(leader)?.pid;
        let since = self.deed(format!("kill -9 {pid} ({name})"));
        self.stage.kill(leader)?;
        self.change("killed", &name, held, since).await;
        self.recovered("killed", &name, ran, since).await;
        Ok(())
    }

    pub(super) async fn add(&mut self) -> Outcome {
        self.title("Add a node; it takes its share of the duties and disturbs no leader").await;
        let before = self.terms();
        let since = self.deed("start one more process".to_owned());
        let place = self.stage.add()?;
        let name = self.stage.name(place);
        let joined = move |stage: &Stage| {
            stage.process(place).is_ok_and(|process| process.condition == Condition::Running)
        };
        if !self.until(self.limit(), joined).await {
            return Err(Failure::wrong(format!("{name} could not join: see above")));
        }
        let took = clock::now().since(since);
        self.rows.push(Row::plain("added a node", &name, took));
        self.spread("given duties", Some(place), since).await;
        if self.terms() != before {
            self.complain(format!("{name} joined, and leases changed hands by that"));
        }
        Ok(())
    }

    pub(super) async fn pause_and_resume(&mut self) -> Outcome {
        self.title("Pause the leader with SIGSTOP; its time runs out, and then it wakes").await;
        let (lease, leader, _) = self.leader()?;
        let (name, held) = (self.stage.name(leader), self.stage.led_by(leader));
        let ran = self.stage.run_by(leader);
        self.stage.pause(leader);
        let paused = move |stage: &Stage| {
            stage.process(leader).is_ok_and(|process| process.condition == Condition::Paused)
        };
        if !self.until(self.limit(), paused).await {
            return Err(Failure::wrong(format!("{name} does not beat, so it was not paused")));
        }
        let since = clock::now();
        self.change("paused", &name, held.clone(), since).await;
        self.recovered("paused", &name, ran, since).await;

        let since = self.deed(format!("kill -CONT {} ({name})", self.stage.process(leader)?.pid));
        self.stage.resume(leader)?;
        let noticed = |stage: &Stage| {
            let over = |(lease, term): &(String, u64)| {
                stage.ledger.leases.term(lease, *term).is_some_and(|stint| stint.end.is_some())
            };
            held.iter().all(over)
        };
        if !self.until(self.limit(), noticed).await {
            self.complain(format!("{name} was resumed and still believes that it leads"));
            return Ok(());
        }
        let took = clock::now().since(since);
        self.rows.push(Row::plain("resumed, and noticed", &name, took));
        self.untouched(&lease, &name).await
    }

    /// The one that was paused must leave its successor alone.
    async fn untouched(&mut self, lease: &str, name: &str) -> Outcome {
        let before = self.stage.leader(lease);
        self.listen(Duration::from_secs(1)).await;
        let Some((successor, term)) = before else {
            self.complain(format!("nobody leads {lease} after {name} was resumed"));
            return Ok(());
        };
        let stored = self.stage.cluster.lease(lease).await?;
        let successor = self.stage.name(successor);
        if stored.leader.is_some_and(|it| it.node == successor && it.term == term) {
            Self::says(&format!("{lease} is {successor}'s in term {term}, as before"));
        } else {
            let said = format!("{lease} was {successor}'s in term {term} until {name} woke up");
            self.complain(said);
        }
        self.all_run().await;
        Ok(())
    }

    pub(super) async fn stop(&mut self) -> Outcome {
        self.title("Stop the leader in order with SIGTERM; it hands over and leaves").await;
        let (_, leader, _) = self.leader()?;
        let (name, held) = (self.stage.name(leader), self.stage.led_by(leader));
        let ran = self.stage.run_by(leader);
        let since = self.deed(format!("kill {} ({name})", self.stage.process(leader)?.pid));
        self.stage.stop(leader)?;
        self.change("stopped in order", &name, held, since).await;
        self.recovered("stopped in order", &name, ran, since).await;
        self.until_left(&[leader]).await;
        Ok(())
    }

    pub(super) async fn evict(&mut self) -> Outcome {
        self.title("Evict the leader; it stops and joins again, as somebody else").await;
        let (_, leader, _) = self.leader()?;
        let (name, held) = (self.stage.name(leader), self.stage.led_by(leader));
        let ran = self.stage.run_by(leader);
        let evicted = self.stage.process(leader)?.member.clone().unwrap_or_default();
        let since = self.deed(format!("evict {name}"));
        self.stage.cluster.evict(&evicted).await?;
        self.change("evicted", &name, held, since).await;
        self.recovered("evicted", &name, ran, since).await;
        let anew = |stage: &Stage| {
            stage.process(leader).is_ok_and(|process| process.member.as_ref() != Some(&evicted))
        };
        if !self.until(self.limit(), anew).await {
            self.complain(format!("{name} was evicted and did not join again"));
        }
        Ok(())
    }

    pub(super) async fn leave(&mut self) -> Outcome {
        self.title("Stop all nodes in order").await;
        self.deed("SIGTERM to every node".to_owned());
        let there: Vec<usize> = self
            .stage
            .processes
            .iter()
            .enumerate()
            .filter(|(_, process)| process.condition.is_there())
            .map(|(place, _)| place)
            .collect();
        for place in &there {
            self.stage.stop(*place)?;
        }
        self.until_left(&there).await;
        Ok(())
    }

    async fn until_left(&mut self, places: &[usize]) {
        let gone = |stage: &Stage| {
            let gone = |place: &usize| {
                stage.process(*place).is_ok_and(|process| !process.condition.is_there())
            };
            places.iter().all(gone)
        };
        if !self.until(self.limit() + Duration::from_secs(10), gone).await {
            self.complain("a node that was asked to leave is still there".to_owned());
        }
    }

    /// Waits until all these leases are led in later terms, and writes down how long it took.
    async fn change(&mut self, what: &str, from: &str, held: Held, since: Moment) {
        let later = |stage: &Stage, (lease, term): &(String, u64)| {
            stage.leader(lease).filter(|(_, new)| new > term)
        };
        let limit = self.limit();
        let done = |stage: &Stage| held.iter().all(|one| later(stage, one).is_some());
        if !self.until(limit + limit, done).await {
            self.complain(format!("nobody leads long after {from} {what}"));
            return;
        }
        let heirs = held.iter().filter_map(|one| later(self.stage, one));
        let heirs: Vec<(usize, u64)> = heirs.collect();
        let took = took(&self.stage.ledger.leases, &held, &heirs, since);
        let names: Vec<&str> = held.iter().map(|(lease, _)| lease.as_str()).collect();
        let after = if from == NOBODY { "first leader" } else { "take-over" };
        Self::says(&format!("{after} of {} after {}", names.join(", "), span::text(took)));
        if took > limit {
            let (took, limit) = (span::text(took), span::text(limit));
            self.complain(format!("take-over after {took}: later than {limit}"));
        }
        let heirs = self.stage.names(heirs.iter().map(|(heir, _)| *heir));
        self.rows.push(Row::change(what, from, &heirs, leases(held.len()), took));
    }

    /// The first lease, its leader and the term.
    pub(super) fn leader(&self) -> Outcome<(String, usize, u64)> {
        let lease = self.stage.recipe.leases.first().ok_or_else(|| missing("to lead"))?;
        let (leader, term) = self
            .stage
            .leader(lease)
            .ok_or_else(|| Failure::wrong(format!("nobody leads {lease}")))?;
        Ok((lease.clone(), leader, term))
    }

    pub(super) fn terms(&self) -> Held {
        let latest = |lease: &String| {
            let term = self.stage.ledger.leases.latest(lease).map_or(0, |(term, _)| term);
            (lease.clone(), term)
        };
        self.stage.recipe.leases.iter().map(latest).collect()
    }
}

fn missing(what: &str) -> Failure {
    Failure::wrong(format!("nothing is left {what}"))
}

/// How long it took until the last of them began anew.
pub(super) fn took(book: &Book, held: &Held, heirs: &[(usize, u64)], since: Moment) -> Duration {
    let began = |((what, _), (_, term)): (&(String, u64), &(usize, u64))| {
        book.term(what, *term).map(|stint| Moment::from_nanos(stint.first).since(since))
    };
    held.iter().zip(heirs).filter_map(began).max().unwrap_or_default()
}
