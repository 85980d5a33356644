//! The acts of the tour.

use std::time::Duration;

use incumbent::{Moment, clock};

use super::Tour;
use super::summary::Row;
use crate::demo::process::Condition;
use crate::demo::stage::Stage;
use crate::exit::{Failure, Outcome};
use crate::span;

/// Which leases were held in which terms when something was done to their leader.
type Held = Vec<(String, u64)>;

/// Who led before anybody did.
const NOBODY: &str = "nobody";

impl Tour<'_> {
    pub(super) async fn start(&mut self, nodes: usize) -> Outcome {
        self.title("Start the nodes; one of them leads each lease").await;
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
        Ok(())
    }

    pub(super) async fn resign(&mut self) -> Outcome {
        self.title("Ask the leader to resign; another takes over at once").await;
        let (lease, leader, term) = self.leader()?;
        let name = self.stage.name(leader);
        let since = self.deed(format!("ask {name} to resign {lease}"));
        self.stage.cluster.request_resign(&lease).await?;
        self.change("resigned", &name, vec![(lease, term)], since).await;
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
        Ok(())
    }

    pub(super) async fn kill(&mut self) -> Outcome {
        self.title("Kill the leader with SIGKILL; its leases run out").await;
        let (_, leader, _) = self.leader()?;
        let (name, held) = (self.stage.name(leader), self.stage.led_by(leader));
        let pid = self.stage.process(leader)?.pid;
        let since = self.deed(format!("kill -9 {pid} ({name})"));
        self.stage.kill(leader)?;
        self.change("killed", &name, held, since).await;
        Ok(())
    }

    pub(super) async fn add(&mut self) -> Outcome {
        self.title("Add a node; it joins and disturbs nobody").await;
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
        self.listen(Duration::from_millis(500)).await;
        if self.terms() != before {
            self.complain(format!("{name} joined, and leases changed hands by that"));
        }
        Ok(())
    }

    pub(super) async fn pause_and_resume(&mut self) -> Outcome {
        self.title("Pause the leader with SIGSTOP, and wake it when another leads").await;
        let (lease, leader, _) = self.leader()?;
        let (name, held) = (self.stage.name(leader), self.stage.led_by(leader));
        self.stage.pause(leader);
        let paused = move |stage: &Stage| {
            stage.process(leader).is_ok_and(|process| process.condition == Condition::Paused)
        };
        if !self.until(self.limit(), paused).await {
            return Err(Failure::wrong(format!("{name} does not beat, so it was not paused")));
        }
        let since = clock::now();
        self.change("paused", &name, held.clone(), since).await;

        let since = self.deed(format!("kill -CONT {} ({name})", self.stage.process(leader)?.pid));
        self.stage.resume(leader)?;
        let noticed = |stage: &Stage| {
            let over = |(lease, term): &(String, u64)| {
                stage.ledger.term(lease, *term).is_some_and(|stint| stint.end.is_some())
            };
            held.iter().all(over)
        };
        if !self.until(self.limit(), noticed).await {
            self.complain(format!("{name} was resumed and still believes that it leads"));
            return Ok(());
        }
        let took = clock::now().since(since);
        self.rows.push(Row::plain("resumed, noticed that it leads no more", &name, took));
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
        Ok(())
    }

    pub(super) async fn drain(&mut self) -> Outcome {
        self.title("Stop the leader in order with SIGTERM; it hands over and leaves").await;
        let (_, leader, _) = self.leader()?;
        let (name, held) = (self.stage.name(leader), self.stage.led_by(leader));
        let since = self.deed(format!("kill {} ({name})", self.stage.process(leader)?.pid));
        self.stage.drain(leader)?;
        self.change("stopped in order", &name, held, since).await;
        self.until_left(&[leader]).await;
        Ok(())
    }

    pub(super) async fn evict(&mut self) -> Outcome {
        self.title("Evict the leader; it stops and joins anew, as somebody else").await;
        let (_, leader, _) = self.leader()?;
        let (name, held) = (self.stage.name(leader), self.stage.led_by(leader));
        let evicted = self.stage.process(leader)?.member.clone().unwrap_or_default();
        let since = self.deed(format!("evict {name}"));
        self.stage.cluster.evict(&evicted).await?;
        self.change("evicted", &name, held, since).await;
        let anew = |stage: &Stage| {
            stage.process(leader).is_ok_and(|process| process.member.as_ref() != Some(&evicted))
        };
        if !self.until(self.limit(), anew).await {
            self.complain(format!("{name} was evicted and did not join anew"));
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
            self.stage.drain(*place)?;
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
        let mut took = Duration::ZERO;
        let mut heirs = Vec::new();
        for one in &held {
            let Some((heir, term)) = later(self.stage, one) else { continue };
            let Some(stint) = self.stage.ledger.term(&one.0, term) else { continue };
            took = took.max(Moment::from_nanos(stint.first).since(since));
            heirs.push(self.stage.name(heir));
        }
        heirs.sort();
        heirs.dedup();
        let leases: Vec<&str> = held.iter().map(|(lease, _)| lease.as_str()).collect();
        let after = if from == NOBODY { "first leader" } else { "take-over" };
        Self::says(&format!("{after} of {} after {}", leases.join(", "), span::text(took)));
        if took > limit {
            let (took, limit) = (span::text(took), span::text(limit));
            self.complain(format!("take-over after {took}: later than {limit}"));
        }
        self.rows.push(Row::change(what, from, &heirs.join(", "), held.len(), took));
    }

    /// The first lease, its leader and the term.
    fn leader(&self) -> Outcome<(String, usize, u64)> {
        let lease = self.stage.recipe.leases.first().ok_or_else(|| missing("to lead"))?;
        let (leader, term) = self
            .stage
            .leader(lease)
            .ok_or_else(|| Failure::wrong(format!("nobody leads {lease}")))?;
        Ok((lease.clone(), leader, term))
    }

    fn terms(&self) -> Held {
        let latest = |lease: &String| {
            let term = self.stage.ledger.latest(lease).map_or(0, |(term, _)| term);
            (lease.clone(), term)
        };
        self.stage.recipe.leases.iter().map(latest).collect()
    }
}

fn missing(what: &str) -> Failure {
    Failure::wrong(format!("nothing is left {what}"))
}
