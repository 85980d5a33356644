//! Duties at clients of each language: placed, moved by an operator, taken over from who was killed or paused, at
//! sidecars that come and go. By the clients' own trust no duty ever runs twice.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use incumbent::clock;
use incumbent_proving::{History, check, heard};
use rustix::process::{Pid, Signal, kill_process};

use crate::stage::{ask, languages, near_and_far, rounds, until_all_are_there};

const DUTIES: [&str; 4] = ["a", "b", "c", "d"];
const PATIENCE: Duration = Duration::from_secs(90);

#[test]
fn no_duty_runs_twice_by_the_clients_own_trust() {
    let directory = tempfile::tempdir().unwrap();
    let languages = languages(directory.path(), "worker");
    assert!(!languages.is_empty(), "not one of python3, node with npm, and go is here");
    let (store, mut sidecars, urls) = near_and_far(directory.path());
    let mut crew = Crew::new(directory.path());
    for program in &languages {
        urls.iter().for_each(|url| crew.join(program, url));
    }
    let names: Vec<String> = crew.workers.iter().map(|worker| worker.name.clone()).collect();
    until_all_are_there(&store, &names);
    crew.until("all duties are placed", |crew| crew.runs.len() == DUTIES.len());
    for _ in 0..rounds() {
        // An operator moves each duty to some other worker.
        for duty in DUTIES {
            let (from, term) = crew.runs[duty];
            let to = crew.other_than(from);
            ask(&store, &["move", &format!("work/{duty}"), "--to", &crew.workers[to].name]);
            crew.until("it has moved", |crew| crew.runs[duty].1 > term);
            assert_eq!(crew.runs[duty].0, to, "{duty} was moved elsewhere");
        }
        // One on the Unix socket is killed, which is proof; then one that is known by its questions alone.
        for url in &urls {
            let victim = crew.busy(|worker| worker.url == *url);
            crew.bereave(victim, |crew| crew.kill(victim));
            let program = crew.workers[victim].program.clone();
            crew.join(&program, url);
        }
        let victim = crew.busy(|_| true);
        crew.bereave(victim, |crew| crew.signal(victim, Signal::STOP));
        crew.signal(victim, Signal::CONT);

        // The sidecar of somebody who works: its clients go on by what they were told, and no longer.
        let victim = crew.busy(|_| true);
        let at = usize::from(crew.workers[victim].url == urls[1]);
        crew.bereave(victim, |_| sidecars[at].restart());
    }
    let (histories, mut terms) = (crew.stop(), 0);
    for (duty, histories) in &histories {
        match check(histories) {
            Ok(account) => {
                println!("{duty}: {} terms, {} times yes", account.terms, account.yes);
                terms += account.terms;
            }
            Err(violation) => panic!("{duty}: {violation}"),
        }
    }
    assert!(terms >= DUTIES.len() + 8 * rounds(), "only {terms} terms");
}

struct Worker {
    program: Vec<OsString>,
    url: String,
    name: String,
    child: Child,
    is_gone: bool,
}

/// Workers, and which duties they say that they run.
struct Crew {
    directory: PathBuf,
    workers: Vec<Worker>,
    said: Receiver<(usize, String)>,
    saying: Sender<(usize, String)>,
    /// Who began each duty last, and in which term.
    runs: BTreeMap<String, (usize, u64)>,
}

impl Crew {
    fn new(directory: &Path) -> Self {
        let (saying, said) = channel();
        let directory = directory.to_owned();
        Self { directory, workers: Vec::new(), said, saying, runs: BTreeMap::new() }
    }

    fn join(&mut self, program: &[OsString], url: &str) {
        let (number, saying) = (self.workers.len(), self.saying.clone());
        let name = format!("worker-{number}");
        let (first, arguments) = program.split_first().unwrap();
        let mut command = Command::new(first);
        command.args(arguments).arg(url).arg(&name).arg(self.directory.join(&name));
        let child = heard(&mut command, move |line| {
            let _ = saying.send((number, line));
        });
        let (program, url) = (program.to_vec(), url.to_owned());
        self.workers.push(Worker { program, url, name, child, is_gone: false });
    }

    /// Waits until something is so, and takes in what workers say.
    fn until(&mut self, what: &str, test: impl Fn(&Self) -> bool) {
        let end = clock::now() + PATIENCE;
        while !test(self) {
            let left = end.since(clock::now());
            let (worker, line) = self
                .said
                .recv_timeout(left)
                .unwrap_or_else(|_| panic!("not in time: {what}: {:?}", self.runs));
            let (duty, term) = line.split_once(' ').unwrap();
            let term = term.parse().unwrap();
            if self.runs.get(duty).is_none_or(|(_, known)| *known < term) {
                self.runs.insert(duty.to_owned(), (worker, term));
            }
        }
    }

    /// A worker that runs something.
    fn busy(&mut self, wanted: impl Fn(&Worker) -> bool) -> usize {
        let found = |crew: &Self| {
            let mut busy = crew.runs.values().map(|(worker, _)| *worker);
            busy.find(|at| !crew.workers[*at].is_gone && wanted(&crew.workers[*at]))
        };
        self.until("such a worker has a duty", |crew| found(crew).is_some());
        found(self).unwrap()
    }

    fn other_than(&self, worker: usize) -> usize {
        let mut others = (0..self.workers.len()).cycle().skip(worker + 1);
        others.find(|at| *at != worker && !self.workers[*at].is_gone).unwrap()
    }

    /// Something happens to a worker; others take its duties over.
    fn bereave(&mut self, worker: usize, happens: impl FnOnce(&mut Self)) {
        // What it has said until now.
        while let Ok((from, line)) = self.said.try_recv() {
            let (duty, term) = line.split_once(' ').unwrap();
            self.runs.insert(duty.to_owned(), (from, term.parse().unwrap()));
        }
        let had: Vec<(String, u64)> = self
            .runs
            .iter()
            .filter(|(_, (of, _))| *of == worker)
            .map(|(duty, (_, term))| (duty.clone(), *term))
            .collect();
        happens(self);
        self.until("others take over", |crew| {
            had.iter().all(|(duty, term)| crew.runs[duty].1 > *term)
        });
    }

    fn kill(&mut self, worker: usize) {
        let worker = &mut self.workers[worker];
        worker.child.kill().unwrap();
        worker.child.wait().unwrap();
        worker.is_gone = true;
    }

    fn signal(&self, worker: usize, signal: Signal) {
        let pid = i32::try_from(self.workers[worker].child.id()).unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
    }

    /// Lets all leave, and gives back what they wrote down of each duty.
    fn stop(&mut self) -> BTreeMap<&'static str, Vec<History>> {
        for worker in &mut self.workers {
            drop(worker.child.stdin.take());
        }
        for worker in &mut self.workers {
            worker.child.wait().unwrap();
        }
        let mut histories: BTreeMap<&'static str, Vec<History>> = BTreeMap::new();
        for duty in DUTIES {
            for worker in &self.workers {
                let path = self.directory.join(format!("{}.{duty}", worker.name));
                let text = std::fs::read_to_string(path).unwrap_or_default();
                let history = History::read(&worker.name, &text).unwrap();
                histories.entry(duty).or_default().push(history);
            }
        }
        histories
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        for worker in &mut self.workers {
            let _ = worker.child.kill();
            let _ = worker.child.wait();
        }
    }
}
