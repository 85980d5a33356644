//! Six processes share three slots on one SQLite file, and are killed and paused by turns: never are
//! more held than there are, and all of them are used.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "this is test code")]

use std::collections::{BTreeSet, VecDeque};
use std::path::Path;
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use incumbent::clock;
use incumbent_proving::{History, check, heard};
use rustix::process::{Pid, Signal, kill_process};

const COUNT: u16 = 3;
const HOLDERS: usize = 6;
const PATIENCE: Duration = Duration::from_secs(60);
/// Longer than a ttl, which is a second here.
const LONG: Duration = Duration::from_millis(1400);

#[test]
fn never_more_are_held_than_there_are_over_kills_and_pauses() {
    let directory = tempfile::tempdir().unwrap();
    let (sender, taken) = channel();
    let mut crew = Crew { directory: directory.path(), sender, all: Vec::new() };
    for _ in 0..HOLDERS {
        crew.add();
    }
    all_used(&taken);
    let mut living: VecDeque<usize> = (0..HOLDERS).collect();
    for round in 0..8 {
        let number = living.pop_front().unwrap();
        if round % 2 == 0 {
            crew.kill(number);
            living.push_back(crew.all.len());
            crew.add();
        } else {
            crew.signal(number, Signal::STOP);
            rest(LONG);
            crew.signal(number, Signal::CONT);
            living.push_back(number);
        }
        all_used(&taken);
    }
    let names = crew.stop();
    for slot in 0..COUNT {
        let read = |name: &String| {
            let text = std::fs::read_to_string(directory.path().join(format!("{name}.{slot}")));
            History::read(name, &text.unwrap_or_default()).unwrap()
        };
        let histories: Vec<History> = names.iter().map(read).collect();
        let account = check(&histories).unwrap_or_else(|violation| {
            panic!("slot {slot}: {violation}");
        });
        println!("slot {slot}: {account:?}");
        assert!(account.terms > 8 && account.yes > 100, "slot {slot} is idle: {account:?}");
    }
}

/// Waits until each slot was taken once more.
fn all_used(taken: &Receiver<u16>) {
    while taken.try_recv().is_ok() {}
    let mut seen = BTreeSet::new();
    while seen.len() < usize::from(COUNT) {
        let slot = taken.recv_timeout(PATIENCE).expect("somebody takes a slot");
        assert!(slot < COUNT);
        seen.insert(slot);
    }
}

fn rest(span: Duration) {
    let end = clock::now() + span;
    while clock::now() < end {
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

/// Processes that hold slots; killed ones too, so that their number is their place.
struct Crew<'a> {
    directory: &'a Path,
    sender: Sender<u16>,
    all: Vec<(String, Child)>,
}

impl Crew<'_> {
    fn add(&mut self) {
        let name = format!("holder-{}", self.all.len());
        let url = format!("sqlite:{}", self.directory.join("cluster.db").display());
        let mut holder = Command::new(env!("CARGO_BIN_EXE_holder"));
        holder.args([&url, &name]).arg(self.directory).arg(COUNT.to_string());
        let sender = self.sender.clone();
        let child = heard(&mut holder, move |slot| {
            let _ = sender.send(slot.parse().unwrap());
        });
        self.all.push((name, child));
    }

    fn kill(&mut self, number: usize) {
        let (_, child) = self.all.get_mut(number).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    fn signal(&self, number: usize, signal: Signal) {
        let (_, child) = self.all.get(number).unwrap();
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Lets all leave, and says what they are called.
    fn stop(mut self) -> Vec<String> {
        for (_, child) in &mut self.all {
            drop(child.stdin.take());
        }
        for (_, child) in &mut self.all {
            child.wait().unwrap();
        }
        self.all.iter().map(|(name, _)| name.clone()).collect()
    }
}

impl Drop for Crew<'_> {
    fn drop(&mut self) {
        for (_, child) in &mut self.all {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
