//! All that can happen to a client and to its sidecar, counted: never do two trust at one instant.
//!
//! The clients are the hardest there are: their work goes on for as long as trust lasts, whatever they are told and
//! whatever becomes of their streams. Half of them trust by the file, half by answers, over Unix sockets and TCP.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use incumbent_proving::{Fleet, Mood, Proxy, check};
use rustix::process::Signal;

use crate::stage::{Sidecar, clients, counted, python};

/// What happens to the holder of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    ClientKilled,
    ClientStopped,
    /// The client forks and is killed; its child has the connection, and lives on.
    ClientForked,
    ConnectionCut,
    PathSilent,
    SidecarKilled,
    SidecarKilledAndStarted,
    SidecarRestarted,
    SidecarStopped,
}

const FAULTS: [Fault; 9] = [
    Fault::ClientKilled,
    Fault::ClientStopped,
    Fault::ClientForked,
    Fault::ConnectionCut,
    Fault::PathSilent,
    Fault::SidecarKilled,
    Fault::SidecarKilledAndStarted,
    Fault::SidecarRestarted,
    Fault::SidecarStopped,
];

/// So many stages at most, side by side.
const STAGES: usize = 8;

#[test]
fn no_two_trust_at_one_instant_whatever_happens_to_clients_and_sidecars() {
    let candidate = python(&clients(), "candidate").expect("python3 is needed");
    let rounds = counted(FAULTS.len(), 500);
    let (begun, seen) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    let next = || {
        let number = begun.fetch_add(1, Ordering::Relaxed);
        FAULTS.into_iter().cycle().nth(number % FAULTS.len()).filter(|_| number < rounds)
    };
    let terms = std::thread::scope(|scope| {
        let play = || Stage::new(&candidate).play(next, &seen);
        let stages: Vec<_> =
            (0..STAGES.min(rounds.div_ceil(3))).map(|_| scope.spawn(play)).collect();
        stages.into_iter().map(|stage| stage.join().unwrap()).sum::<usize>()
    });
    for (what, count) in seen.lock().unwrap().iter() {
        println!("{what:?}: {count}");
    }
    println!("{rounds} rounds, {terms} terms, nobody trusted beside another");
    assert!(terms > rounds, "no change of hands in some rounds");
}

/// How a candidate is known to its sidecar, and what it trusts by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    UnixByFile,
    UnixByAnswers,
    TcpByFile,
    TcpByAnswers,
}

impl Way {
    fn is_by_answers(self) -> bool {
        matches!(self, Self::UnixByAnswers | Self::TcpByAnswers)
    }

    /// Paths lead to those on TCP alone. A file says that trust is over as soon as a connection is cut; what was
    /// answered before can't be taken back.
    fn can_have(self, fault: Fault) -> bool {
        match fault {
            Fault::ConnectionCut => self == Self::TcpByAnswers,
            Fault::PathSilent => matches!(self, Self::TcpByFile | Self::TcpByAnswers),
            _ => true,
        }
    }
}

/// One lease in a store of its own, two sidecars, and at each a client on either way.
struct Stage {
    sidecars: Vec<Sidecar>,
    paths: Vec<Proxy>,
    fleet: Fleet,
    /// The sidecar and the way of each URL.
    urls: BTreeMap<String, (usize, Way)>,
    _directory: tempfile::TempDir,
}

impl Stage {
    fn new(candidate: &[OsString]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let fleet = Fleet::empty(directory.path());
        let (sidecars, paths, urls) = (Vec::new(), Vec::new(), BTreeMap::new());
        let mut stage = Self { sidecars, paths, fleet, urls, _directory: directory };
        stage.add_sidecar([Way::UnixByFile, Way::TcpByAnswers], candidate);
        stage.add_sidecar([Way::UnixByAnswers, Way::TcpByFile], candidate);
        stage
    }

    /// Adds a sidecar with a client on its socket and one on its port.
    fn add_sidecar(&mut self, ways: [Way; 2], candidate: &[OsString]) {
        let node = self.sidecars.len();
        let directory: &Path = self._directory.path();
        let store = format!("sqlite:{}", directory.join("cluster.db").display());
        let socket = directory.join(format!("socket-{node}"));
        let address = format!("127.0.0.1:{}", incumbent_proving::server::free_port());
        let listens: [OsString; 4] =
            ["--unix".into(), socket.clone().into(), "--listen".into(), address.clone().into()];
        self.sidecars.push(Sidecar::start(&store, &format!("sidecar-{node}"), listens.into()));
        let path = Proxy::blocking_before(&format!("http://{address}"));
        let urls =
            [format!("unix:{}", socket.display()), format!("http://127.0.0.1:{}", path.port())];
        self.paths.push(path);
        for (url, way) in urls.into_iter().zip(ways) {
            let mut program = candidate.to_vec();
            program.push("--to-the-end".into());
            if way.is_by_answers() {
                program.push("--by-answers".into());
            }
            self.fleet.join(&program, &url);
            self.urls.insert(url, (node, way));
        }
    }

    /// Plays what comes next until nothing does, and says in how many terms somebody led.
    fn play(
        mut self,
        next: impl Fn() -> Option<Fault>,
        seen: &Mutex<BTreeMap<(Fault, Way), usize>>,
    ) -> usize {
        while let Some(fault) = next() {
            let (leader, sidecar, way) = self.leader_for(fault);
            // It has led for a moment, and has renewed its trust in some of the rounds.
            self.fleet.pause(Duration::from_millis(100 + 300 * (leader as u64 % 5)));
            self.strike(fault, leader, sidecar);
            *seen.lock().unwrap().entry((fault, way)).or_default() += 1;
        }
        self.fleet.next_leader();
        let histories = self.fleet.stop();
        check(&histories).unwrap_or_else(|violation| panic!("{violation}")).terms
    }

    /// Waits for a leader that this can happen to.
    fn leader_for(&mut self, fault: Fault) -> (usize, usize, Way) {
        loop {
            let leader = self.fleet.next_leader();
            let (sidecar, way) = self.urls[self.fleet.url(leader)];
            if way.can_have(fault) {
                return (leader, sidecar, way);
            }
            self.fleet.tell_to_resign(leader);
        }
    }

    /// Lets it happen, and waits until somebody else is elected.
    fn strike(&mut self, fault: Fault, leader: usize, sidecar: usize) {
        let (fleet, path, sidecar) =
            (&mut self.fleet, &self.paths[sidecar], &mut self.sidecars[sidecar]);
        match fault {
            Fault::ClientKilled => fleet.replace_killed(leader),
            Fault::ClientStopped => {
                fleet.stop_until_replaced(leader);
                fleet.signal(leader, Signal::CONT);
            }
            Fault::ClientForked => {
                fleet.tell(leader, "fork");
                fleet.pause(Duration::from_millis(200));
                fleet.replace_killed(leader);
            }
            Fault::ConnectionCut => path.cut(),
            Fault::PathSilent => {
                path.set(Mood::Silent);
                fleet.await_election();
                path.set(Mood::Fine);
            }
            Fault::SidecarKilled => {
                sidecar.kill();
                fleet.await_election();
                sidecar.start_again();
            }
            Fault::SidecarKilledAndStarted => sidecar.restart(),
            Fault::SidecarRestarted => {
                sidecar.signal(Signal::TERM);
                sidecar.wait();
                sidecar.start_again();
            }
            Fault::SidecarStopped => {
                fleet.stop_until_elected(|signal| sidecar.signal(signal));
                sidecar.signal(Signal::CONT);
            }
        }
        fleet.await_election();
    }
}
