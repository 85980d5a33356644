//! The cluster of a demo: its processes, what they said, and what can be done to them.

use std::collections::{BTreeSet, VecDeque};

use incumbent::{Cluster, Moment, clock};
use rustix::process::Signal;
use tempfile::TempDir;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

use super::ledger::Ledger;
use super::news::{Gathered, News};
use super::process::{Condition, Heard, Line, Process, Recipe};
use super::word::Word;
use super::{DUTIES, FAMILY};
use crate::exit::{Failure, Outcome};
use crate::sweep;
use crate::tone::Tone;

/// The cluster of a demo.
pub(crate) struct Stage {
    /// What all nodes have in common.
    pub(crate) recipe: Recipe,
    /// All processes that there ever were; their places never change.
    pub(crate) processes: Vec<Process>,
    /// What they said about leading and working.
    pub(crate) ledger: Ledger,
    /// The cluster as an operator sees it.
    pub(crate) cluster: Cluster,
    /// When the demo began.
    pub(crate) began: Moment,
    store: incumbent::OpenStore,
    pausing: Option<usize>,
    /// Processes that have said their last word and are not reaped yet.
    ending: VecDeque<usize>,
    started: Gathered,
    lines: UnboundedReceiver<Line>,
    sender: UnboundedSender<Line>,
    /// Keeps the store's directory, if it is the demo's own.
    scratch: Option<TempDir>,
}

impl Stage {
    /// An empty stage.
    pub(crate) async fn open(recipe: Recipe, scratch: Option<TempDir>) -> Outcome<Self> {
        let store = recipe.place.open().await?;
        if !store.capabilities().shared {
            return Err(Failure::usage(format!(
                "the nodes of the demo are processes, and the store {} lives in one process \
                 alone: use a store that they can share, such as --store sqlite:demo.db",
                recipe.place.shown()
            )));
        }
        let cluster = Cluster::new(store.clone(), &recipe.place.cluster)?;
        let (sender, lines) = mpsc::unbounded_channel();
        Ok(Self {
            recipe,
            processes: Vec::new(),
            ledger: Ledger::default(),
            cluster,
            began: clock::now(),
            store,
            pausing: None,
            ending: VecDeque::new(),
            started: Gathered::default(),
            lines,
            sender,
            scratch,
        })
    }

    /// Starts one more node and gives its place.
    pub(crate) fn add(&mut self) -> Outcome<usize> {
        let place = self.processes.len();
        let name = format!("node-{}", place + 1);
        self.processes.push(Process::start(&self.recipe, &name, place, self.sender.clone())?);
        Ok(place)
    }

    /// The node at a place.
    pub(crate) fn process(&self, place: usize) -> Outcome<&Process> {
        self.processes.get(place).ok_or_else(|| Failure::internal(format!("no process {place}")))
    }

    /// The name of the node at a place.
    pub(crate) fn name(&self, place: usize) -> String {
        self.processes.get(place).map_or_else(String::new, |process| process.name.clone())
    }

    /// The names of some nodes, each once.
    pub(crate) fn names(&self, places: impl Iterator<Item = usize>) -> Vec<String> {
        let places: BTreeSet<usize> = places.collect();
        places.into_iter().map(|place| self.name(place)).collect()
    }

    /// Who leads a lease, as far as its node has said: its place and its term.
    pub(crate) fn leader(&self, lease: &str) -> Option<(usize, u64)> {
        self.ledger.leases.current(lease).map(|(term, stint)| (stint.node, term))
    }

    /// The leases that a node leads, with their terms.
    pub(crate) fn led_by(&self, place: usize) -> Vec<(String, u64)> {
        let led = |lease: &String| {
            let (leader, term) = self.leader(lease)?;
            (leader == place).then(|| (lease.clone(), term))
        };
        self.recipe.leases.iter().filter_map(led).collect()
    }

    /// Where a duty runs, as far as its node has said, and in which term. On a node that is
    /// paused or dead nothing runs.
    pub(crate) fn runner(&self, duty: &str) -> Option<(usize, u64)> {
        let (term, stint) = self.ledger.duties.current(duty)?;
        let works = match self.processes.get(stint.node)?.condition {
            Condition::Starting | Condition::Running | Condition::Stopping => true,
            Condition::Paused | Condition::Killed | Condition::Left | Condition::Failed => false,
        };
        works.then_some((stint.node, term))
    }

    /// The duties that a node runs, with their terms.
    pub(crate) fn run_by(&self, place: usize) -> Vec<(String, u64)> {
        let run = |duty: String| {
            let (runner, term) = self.runner(&duty)?;
            (runner == place).then_some((duty, term))
        };
        duties().filter_map(run).collect()
    }

    /// Whether every duty runs.
    pub(crate) fn all_run(&self) -> bool {
        duties().all(|duty| self.runner(&duty).is_some())
    }

    /// The nodes that are members and not about to go.
    pub(crate) fn running(&self) -> Vec<usize> {
        let running = |(place, process): (usize, &Process)| {
            (process.condition == Condition::Running).then_some(place)
        };
        self.processes.iter().enumerate().filter_map(running).collect()
    }

    /// A running node other than this, the next in line.
    pub(crate) fn other(&self, than: usize) -> Option<usize> {
        let running = self.running();
        let later = running.iter().find(|place| **place > than);
        later.or_else(|| running.iter().find(|place| **place < than)).copied()
    }

    /// Kills a node without a warning.
    pub(crate) fn kill(&mut self, place: usize) -> Outcome {
        self.process(place)?.signal(Signal::KILL)?;
        self.set(place, Condition::Killed);
        Ok(())
    }

    /// Stops a leader where it stands, right after one of its beats: SQLite has one writer at a
    /// time, and a process that is stopped in the middle of a commit would hold up the others
    /// for as long as it is stopped.
    pub(crate) fn pause(&mut self, place: usize) {
        self.pausing = Some(place);
    }

    /// Lets a paused node go on.
    pub(crate) fn resume(&mut self, place: usize) -> Outcome {
        self.process(place)?.signal(Signal::CONT)?;
        self.set(place, Condition::Running);
        Ok(())
    }

    /// Asks a node to leave in order, as a service manager would.
    pub(crate) fn stop(&mut self, place: usize) -> Outcome {
        self.process(place)?.signal(Signal::TERM)?;
        self.set(place, Condition::Stopping);
        Ok(())
    }

    /// Waits for what is worth telling next. Cancel-safe: nothing is forgotten on the way.
    pub(crate) async fn next(&mut self) -> News {
        loop {
            let news = if let Some(place) = self.ending.front().copied() {
                let news = self.ended(place).await;
                self.ending.pop_front();
                news
            } else if let Some(text) = self.started.line() {
                Some((Tone::Work, text))
            } else {
                match self.line().await {
                    Some((place, Heard::Word(word))) => self.take_in(place, &word),
                    Some((place, Heard::End)) => {
                        self.ending.push_back(place);
                        None
                    }
                    None => None,
                }
            };
            if let Some((tone, text)) = news {
                return self.news(tone, text);
            }
        }
    }

    /// What a process says next; nothing if what was gathered is to be told first.
    async fn line(&mut self) -> Option<Line> {
        match self.started.patience() {
            Some(patience) => tokio::time::timeout(patience, self.lines.recv()).await.ok()?,
            // The stage has a sender of its own, so that there is always a next line.
            None => self.lines.recv().await,
        }
    }

    /// Something that is told now.
    pub(crate) fn news(&self, tone: Tone, text: String) -> News {
        News { at: clock::now().since(self.began), tone, text }
    }

    /// All that can't be if at most one node leads a lease or runs a duty at any instant.
    pub(crate) fn faults(&self) -> Vec<String> {
        self.ledger.faults(|place| self.name(place))
    }

    /// Ends all processes and removes what the demo wrote.
    pub(crate) async fn end(mut self) {
        for process in &mut self.processes {
            process.end().await;
        }
        if self.scratch.is_none() && !self.recipe.place.cluster_chosen {
            // What can't be removed harms nobody: the cluster's name is never used again.
            let _ = sweep::sweep(&self.store, &self.recipe.place.cluster).await;
        }
    }

    fn set(&mut self, place: usize, condition: Condition) {
        if let Some(process) = self.processes.get_mut(place) {
            process.condition = condition;
        }
    }

    fn take_in(&mut self, place: usize, word: &Word) -> Option<(Tone, String)> {
        let name = self.name(place);
        let paused = self.pause_if_beaten(place, word);
        self.ledger.note(place, &name, word);
        match word {
            Word::Joined { member, .. } => {
                let process = self.processes.get_mut(place)?;
                process.member = Some(member.clone());
                if process.condition == Condition::Starting {
                    process.condition = Condition::Running;
                }
                let short = member.get(..8).unwrap_or(member);
                let pid = process.pid;
                Some((Tone::Plain, format!("{name} joined as member {short} (pid {pid})")))
            }
            Word::Elected { lease, term, .. } => {
                Some((Tone::Good, format!("{name} leads {lease} in term {term}")))
            }
            Word::Started { duty, term, .. } => {
                let before = term.checked_sub(1);
                let before = before.and_then(|term| self.ledger.duties.term(duty, term));
                let from = before.map(|stint| self.name(stint.node));
                self.started.add(short(duty), name, from);
                None
            }
            Word::Held { .. } | Word::Ran { .. } => {
                paused.map(|pid| (Tone::Deed, format!("kill -STOP {pid} ({name})")))
            }
            Word::Left | Word::Stopped { .. } => None,
            Word::Lost { lease, term, why, .. } => {
                Some((Tone::Plain, format!("{name} lost {lease} (term {term}): {why}")))
            }
            Word::Ended { why, .. } => {
                Some((Tone::Plain, format!("{name} is no longer a member: {why}")))
            }
            Word::Failed { why } => Some((Tone::Bad, format!("{name} can't go on: {why}"))),
        }
    }

    /// Pauses the node if it is to be paused and has just beaten; gives its process id.
    fn pause_if_beaten(&mut self, place: usize, word: &Word) -> Option<u32> {
        let (known, until) = match word {
            Word::Held { lease, term, until, .. } => (self.ledger.leases.term(lease, *term), until),
            Word::Ran { duty, term, until, .. } => (self.ledger.duties.term(duty, *term), until),
            Word::Joined { .. }
            | Word::Elected { .. }
            | Word::Lost { .. }
            | Word::Started { .. }
            | Word::Stopped { .. }
            | Word::Ended { .. }
            | Word::Left
            | Word::Failed { .. } => return None,
        };
        // The first word of a term says nothing about a beat.
        let known = known.filter(|stint| stint.until > stint.first)?;
        if self.pausing != Some(place) || known.until >= *until {
            return None;
        }
        self.pausing = None;
        let process = self.process(place).ok()?;
        let pid = process.pid;
        process.signal(Signal::STOP).ok()?;
        self.set(place, Condition::Paused);
        Some(pid)
    }

    async fn ended(&mut self, place: usize) -> Option<(Tone, String)> {
        let process = self.processes.get_mut(place)?;
        let in_order = process.reap().await;
        let (name, pid) = (process.name.clone(), process.pid);
        self.ledger.dead(place);
        match self.process(place).ok()?.condition {
            Condition::Killed => Some((Tone::Plain, format!("{name} is dead (pid {pid})"))),
            Condition::Stopping if in_order => {
                self.set(place, Condition::Left);
                Some((Tone::Plain, format!("{name} has left (pid {pid} ended)")))
            }
            Condition::Starting
            | Condition::Running
            | Condition::Paused
            | Condition::Stopping
            | Condition::Left
            | Condition::Failed => {
                self.set(place, Condition::Failed);
                Some((Tone::Bad, format!("{name} (pid {pid}) ended by itself")))
            }
        }
    }
}

/// The ids of all duties.
pub(crate) fn duties() -> impl Iterator<Item = String> {
    DUTIES.iter().map(|name| format!("{FAMILY}/{name}"))
}

/// The name of a duty without its family.
pub(crate) fn short(duty: &str) -> &str {
    duty.split_once('/').map_or(duty, |(_, name)| name)
}
