//! A number of workers, as processes of their own, and what each of them runs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use incumbent::blocking::Wait;
use incumbent::{Cluster, clock};
use incumbent_proving::{Account, History, heard};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(90);

pub(crate) struct Crew {
    directory: TempDir,
    url: String,
    pub(crate) cluster: Cluster,
    /// All that were ever started, dead ones too: their number is their place.
    workers: Vec<Worker>,
    /// How often duties were started so far, by anybody.
    starts: usize,
    told: Sender<(usize, String)>,
    news: Receiver<(usize, String)>,
}

struct Worker {
    name: String,
    child: Child,
    /// What it said it runs.
    running: BTreeSet<String>,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Running,
    Paused,
    Gone,
}

impl Crew {
    /// Nobody yet, on this store; `sqlite` stands for a file of its own.
    pub(crate) fn new(url: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let file = format!("sqlite:{}", directory.path().join("cluster.db").display());
        let url = if url == "sqlite" { file } else { url.to_owned() };
        let cluster = Cluster::new(incumbent::open(&url).wait().unwrap(), "faults").unwrap();
        let (told, news) = channel();
        Self { directory, url, cluster, workers: Vec::new(), starts: 0, told, news }
    }

    /// Starts a worker that knows these duties; says its number.
    pub(crate) fn start(&mut self, duties: &[String], options: &[&str]) -> usize {
        let number = self.workers.len();
        let name = format!("worker-{number}");
        let mut worker = Command::new(env!("CARGO_BIN_EXE_worker"));
        worker.arg(&self.url).arg(&name).arg(self.file(&name));
        worker.args(duties.iter().map(|duty| format!("duty={duty}"))).args(options);
        let told = self.told.clone();
        let child = heard(&mut worker, move |line| drop(told.send((number, line))));
        let running = BTreeSet::new();
        self.workers.push(Worker { name, child, running, state: State::Running });
        number
    }

    /// Waits until what the workers run is as wanted.
    pub(crate) fn until(&mut self, what: &str, wanted: impl Fn(&Self) -> bool) {
        let end = clock::now() + PATIENCE;
        while let Ok((number, line)) = self.news.try_recv() {
            self.note(number, &line);
        }
        while !wanted(self) {
            let left = end.since(clock::now());
            assert!(!left.is_zero(), "never came true: {what}; they run {:?}", self.loads());
            if let Ok((number, line)) = self.news.recv_timeout(left.min(Duration::from_millis(50)))
            {
                self.note(number, &line);
            }
        }
    }

    fn note(&mut self, number: usize, line: &str) {
        self.starts += usize::from(line.starts_with('+'));
        let running = &mut self.workers.get_mut(number).unwrap().running;
        match line.split_at(1) {
            ("+", duty) => running.insert(duty.to_owned()),
            ("-", duty) => running.remove(duty),
            _ => panic!("worker-{number} said {line:?}"),
        };
    }

    /// Waits until these duties run once each, spread over the live workers like this.
    pub(crate) fn spread(&mut self, duties: &[String], loads: &[usize]) {
        let mut wanted = loads.to_vec();
        wanted.sort_unstable();
        let all: BTreeSet<String> = duties.iter().cloned().collect();
        self.until(&format!("{loads:?}"), |crew| {
            let mut loads: Vec<usize> = crew.live().map(|worker| worker.running.len()).collect();
            loads.sort_unstable();
            let running: BTreeSet<String> =
                crew.live().flat_map(|worker| worker.running.iter().cloned()).collect();
            loads == wanted && running == all && loads.iter().sum::<usize>() == all.len()
        });
    }

    /// How often duties have been started so far.
    pub(crate) fn starts(&self) -> usize {
        self.starts
    }

    /// What a worker runs.
    pub(crate) fn running(&self, number: usize) -> &BTreeSet<String> {
        &self.workers.get(number).unwrap().running
    }

    fn live(&self) -> impl Iterator<Item = &Worker> {
        self.workers.iter().filter(|worker| worker.state == State::Running)
    }

    fn loads(&self) -> BTreeMap<&str, usize> {
        self.live().map(|worker| (worker.name.as_str(), worker.running.len())).collect()
    }

    /// The number of the worker that leads the cluster.
    pub(crate) fn leader(&mut self) -> usize {
        let end = clock::now() + PATIENCE;
        loop {
            let leader = pollster::block_on(self.cluster.leader("incumbent/leader")).unwrap();
            let at = leader.and_then(|leader| {
                self.workers.iter().position(|worker| worker.name == leader.node)
            });
            if let Some(at) = at
                && self.workers.get(at).unwrap().state == State::Running
            {
                return at;
            }
            assert!(clock::now() < end, "nobody leads the cluster");
            std::thread::park_timeout(Duration::from_millis(50));
        }
    }

    /// The term of whoever leads the cluster.
    pub(crate) fn leader_term(&mut self) -> u64 {
        self.leader();
        pollster::block_on(self.cluster.lease("incumbent/leader")).unwrap().term
    }

    /// Kills a worker without warning.
    pub(crate) fn kill(&mut self, number: usize) {
        let worker = self.workers.get_mut(number).unwrap();
        worker.child.kill().unwrap();
        worker.child.wait().unwrap();
        worker.state = State::Gone;
    }

    pub(crate) fn pause(&mut self, number: usize) {
        self.signal(number, Signal::STOP);
        self.workers.get_mut(number).unwrap().state = State::Paused;
    }

    pub(crate) fn resume(&mut self, number: usize) {
        self.signal(number, Signal::CONT);
        self.workers.get_mut(number).unwrap().state = State::Running;
    }

    fn signal(&self, number: usize, signal: Signal) {
        let pid = i32::try_from(self.workers.get(number).unwrap().child.id()).unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
    }

    /// Deletes every record, behind everybody's back.
    pub(crate) fn empty_the_store(&self) {
        if let Some(file) = self.url.strip_prefix("sqlite:") {
            let connection = rusqlite::Connection::open(file).unwrap();
            connection.busy_timeout(Duration::from_secs(10)).unwrap();
            connection.execute("DELETE FROM incumbent_records", []).unwrap();
        } else {
            let (server, schema) = self.url.rsplit_once("schema=").unwrap();
            let server = server.trim_end_matches(['?', '&']);
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                let connected = tokio_postgres::connect(server, tokio_postgres::NoTls).await;
                let (client, connection) = connected.unwrap();
                let connection = tokio::runtime::Handle::current().spawn(connection);
                let delete = format!("DELETE FROM {schema}.incumbent_records");
                client.batch_execute(&delete).await.unwrap();
                drop(client);
                let _ = connection.await;
            });
        }
    }

    /// Deletes the leases of duties from a file, and nothing else.
    pub(crate) fn delete_duty_leases(&self) {
        let connection =
            rusqlite::Connection::open(self.url.trim_start_matches("sqlite:")).unwrap();
        connection.busy_timeout(Duration::from_secs(10)).unwrap();
        let delete = "DELETE FROM incumbent_records WHERE key LIKE 'lease/incumbent/duty/%'";
        assert!(connection.execute(delete, []).unwrap() > 0, "there was none");
    }

    /// Lets a worker leave in order.
    pub(crate) fn stop(&mut self, number: usize) {
        let worker = self.workers.get_mut(number).unwrap();
        drop(worker.child.stdin.take());
        assert!(worker.child.wait().unwrap().success(), "{} left without order", worker.name);
        worker.state = State::Gone;
    }

    /// Lets all leave that still run, and lays what they wrote down side by side: no duty was
    /// anybody's twice at one instant.
    pub(crate) fn judge(&mut self) -> Account {
        for number in 0..self.workers.len() {
            if self.workers.get(number).unwrap().state == State::Running {
                self.stop(number);
            }
        }
        let mut duties: BTreeMap<String, Vec<History>> = BTreeMap::new();
        for worker in &self.workers {
            for (duty, history) in self.histories(&worker.name) {
                duties.entry(duty).or_default().push(history);
            }
        }
        let mut sum = Account { terms: 0, yes: 0, closest: u64::MAX };
        for (duty, histories) in duties {
            let account = incumbent_proving::check(&histories)
                .unwrap_or_else(|violation| panic!("{duty}: {violation}"));
            sum.terms += account.terms;
            sum.yes += account.yes;
            sum.closest = sum.closest.min(account.closest);
        }
        sum
    }

    /// What a worker wrote down about each duty.
    pub(crate) fn histories(&self, name: &str) -> BTreeMap<String, History> {
        let text = std::fs::read_to_string(self.file(name)).unwrap_or_default();
        // A last line that is cut off, because the process was killed, is left out.
        let whole = text.rfind('\n').map_or("", |end| text.get(..end).unwrap_or_default());
        let mut lines: BTreeMap<String, String> = BTreeMap::new();
        for line in whole.lines() {
            let (duty, entry) = line.split_once('\t').unwrap();
            let lines = lines.entry(duty.to_owned()).or_default();
            lines.push_str(entry);
            lines.push('\n');
        }
        let read = |(duty, text): (String, String)| (duty, History::read(name, &text).unwrap());
        lines.into_iter().map(read).collect()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
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
