//! Hints between nodes on MariaDB, which pushes nothing: real processes, real sockets.
#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "this is test code")]
#![allow(clippy::panic, clippy::unwrap_used, reason = "this is test code")]

#[allow(dead_code, reason = "a part of it is used here")]
mod apart;

use std::io::Write as _;
use std::net::UdpSocket;
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use incumbent::blocking::Wait;
use incumbent::store::{Exchange, Found, Lane, Read};
use incumbent::{Cluster, DutyStanding, HintSettings, Node, OpenStore, clock, family, keys};
use incumbent_proving::heard;
use incumbent_proving::server::mariadb;
use incumbent_proving::store::{block_on, fresh};

use apart::net::Net;

const PATIENCE: Duration = Duration::from_secs(60);
/// By then who waits has seen who holds the lease and said so, and its next look is not due.
const SETTLED: Duration = Duration::from_millis(350);
/// How many hand-overs are compared.
const ROUNDS: usize = 5;
/// A hint beats the poll by more than this: it takes some milliseconds, and the poll a good part of a second.
const FACTOR: u128 = 3;

const KEY: &str = "a key that all nodes of this cluster share";

/// A node in a process of its own.
struct Peer {
    child: Child,
    lines: Receiver<String>,
}

impl Peer {
    fn start(
        mut command: Command,
        url: &str,
        cluster: &str,
        name: &str,
        hints: &[(&str, &str)],
    ) -> Self {
        command.args([url, cluster, name]).envs(hints.iter().copied());
        let (sender, lines) = channel();
        let child = heard(&mut command, move |line| {
            let _ = sender.send(line);
        });
        let peer = Self { child, lines };
        assert_eq!(peer.line(), "joined");
        peer
    }

    fn line(&self) -> String {
        self.lines.recv_timeout(PATIENCE).expect("it says something")
    }

    fn tell(&mut self, order: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{order}").unwrap();
    }

    /// When it did this, which is the next that it says.
    fn moment(&self, deed: &str) -> u64 {
        let line = self.line();
        let moment = line.strip_prefix(deed).unwrap_or_else(|| panic!("{line} instead of {deed}"));
        moment.trim().parse().unwrap()
    }

    /// Hints taken, datagrams dropped, exchanges with the store.
    fn counts(&mut self) -> [u64; 3] {
        self.tell("count");
        let line = self.line();
        let counts: Vec<u64> = line.split(' ').map(|count| count.parse().unwrap()).collect();
        [counts[0], counts[1], counts[2]]
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn here() -> Command {
    Command::new(env!("CARGO_BIN_EXE_hinted"))
}

fn pair(cluster: &str, hints: &[(&str, &str)]) -> [Peer; 2] {
    let url = mariadb::shared();
    ["a", "b"].map(|name| Peer::start(here(), &url, cluster, name, hints))
}

/// How long hand-overs take, from the moment in which one gives a lease up: the median.
fn hand_overs(
    [holder, waiter]: &mut [Peer; 2],
    give_up: impl Fn(&mut Peer, &str) -> Option<u64>,
) -> Duration {
    let mut spans: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let lease = fresh("lease");
            holder.tell(&format!("stand {lease}"));
            holder.moment("elected");
            waiter.tell(&format!("stand {lease}"));
            std::thread::park_timeout(SETTLED);
            let asked = give_up(holder, &lease);
            let released = began(holder, asked);
            let elected = waiter.moment("elected");
            waiter.tell("release");
            waiter.moment("released");
            Duration::from_nanos(elected.saturating_sub(released))
        })
        .collect();
    spans.sort();
    println!("{spans:?}");
    spans[ROUNDS / 2]
}

/// When the hand-over began: when it was asked for, or else when the holder gave the lease up.
fn began(holder: &Peer, asked: Option<u64>) -> u64 {
    match asked {
        Some(asked) => {
            holder.moment("released");
            asked
        }
        None => holder.moment("released"),
    }
}

fn release(holder: &mut Peer, _: &str) -> Option<u64> {
    holder.tell("release");
    None
}

#[test]
fn a_release_is_heard_of_and_a_lost_hint_costs_only_time() {
    let hinted = hand_overs(&mut pair(&fresh("hints"), &[]), release);
    let polled = hand_overs(&mut pair(&fresh("hints"), &[("INCUMBENT_HINTS", "off")]), release);
    assert!(hinted.as_nanos() * FACTOR < polled.as_nanos(), "{hinted:?} with, {polled:?} without");
}

#[test]
fn who_leaves_is_followed_as_soon() {
    let span = |hints: &[(&str, &str)]| {
        let [mut holder, mut waiter] = pair(&fresh("hints"), hints);
        holder.tell("stand lease");
        holder.moment("elected");
        waiter.tell("stand lease");
        std::thread::park_timeout(SETTLED);
        drop(holder.child.stdin.take());
        let left = holder.moment("leaving");
        Duration::from_nanos(waiter.moment("elected").saturating_sub(left))
    };
    let (hinted, polled) = (span(&[]), span(&[("INCUMBENT_HINTS", "off")]));
    assert!(hinted.as_nanos() * FACTOR < polled.as_nanos(), "{hinted:?} with, {polled:?} without");
}

#[test]
fn an_operators_request_reaches_the_holder_before_its_beat() {
    let span = |hints: &[(&str, &str)]| {
        let name = fresh("hints");
        let store = incumbent::open(&mariadb::shared()).wait().unwrap();
        let cluster = Cluster::new(store, &name).unwrap();
        let mut peers = pair(&name, hints);
        hand_overs(&mut peers, |_, lease| {
            let asked = clock::now().as_nanos();
            cluster.request_resign(lease).wait().unwrap();
            Some(asked)
        })
    };
    let (hinted, beaten) = (span(&[]), span(&[("INCUMBENT_HINTS", "off")]));
    assert!(hinted.as_nanos() * FACTOR < beaten.as_nanos(), "{hinted:?} with, {beaten:?} without");
}

/// From pausing a duty that runs on a node which doesn't lead the cluster until its work is told: the
/// request reaches the leader, and its roster the member.
fn paused(hints: &HintSettings) -> Duration {
    let (name, (stopped, told)) = (fresh("hints"), channel());
    let store = incumbent::open(&mariadb::shared()).wait().unwrap();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.unwrap();
    let nodes = ["a", "b"].map(|node| {
        let builder = Node::builder().cluster(&name).name(node).hints(hints.clone());
        let builder = builder.rebalance_after(Duration::from_millis(100));
        runtime.block_on(builder.join(store.clone())).unwrap()
    });
    let servings = nodes.each_ref().map(|node| {
        let stopped = stopped.clone();
        let work = family("work").duties(["one", "two", "three", "four"]).run(move |duty| {
            let stopped = stopped.clone();
            async move {
                duty.lost().await;
                let _ = stopped.send((duty.name().to_owned(), clock::now()));
                Ok(())
            }
        });
        node.serve(work).unwrap()
    });
    let deadline = clock::now() + PATIENCE;
    while servings.iter().any(|serving| serving.running() != 2) {
        assert!(clock::now() < deadline, "the duties are not spread");
        std::thread::park_timeout(Duration::from_millis(5));
    }
    let member = nodes.iter().find(|node| !node.leads_cluster()).unwrap();
    let cluster = Cluster::new(store, &name).unwrap().with_hints(hints.clone());
    let duties = cluster.duties().wait().unwrap();
    let runs = |duty: &&DutyStanding| duty.node.as_deref() == Some(member.name());
    let duty = duties.iter().find(runs).expect("it runs two").id.clone();
    while told.try_recv().is_ok() {}
    let asked = clock::now();
    cluster.pause(duty.as_str()).wait().unwrap();
    let (name, at) = told.recv_timeout(PATIENCE).unwrap();
    assert!(duty.as_str().ends_with(&name), "{name} instead of {duty}");
    at.since(asked)
}

#[test]
fn rosters_and_what_operators_ask_of_duties_arrive_before_the_next_beats() {
    let (hinted, beaten) = (paused(&HintSettings::default()), paused(&HintSettings::off()));
    println!("{hinted:?} with, {beaten:?} without");
    assert!(hinted.as_nanos() * FACTOR < beaten.as_nanos(), "{hinted:?} with, {beaten:?} without");
}

#[test]
fn a_flood_of_forged_and_senseless_datagrams_costs_few_reads_and_no_lease() {
    let (url, cluster) = (mariadb::shared(), fresh("hints"));
    let [mut holder, mut waiter] = pair(&cluster, &[]);
    holder.tell("stand lease");
    holder.moment("elected");
    waiter.tell("stand lease");
    std::thread::park_timeout(SETTLED);
    waiter.tell("member");
    let (at, door) = control(&url, &cluster, &waiter.line());
    let before = waiter.counts();
    let begin = clock::now();
    flood(&at, door, begin + Duration::from_secs(3));
    let after = waiter.counts();
    let seconds = clock::now().since(begin).as_secs() + 1;
    let hints = after[0] - before[0];
    assert!(hints > 5, "they were genuine, as far as it can tell: {before:?} {after:?}");
    assert!(hints <= 5 + 10 * seconds, "{hints} in {seconds} s");
    assert!(after[1] > before[1], "what makes no sense is counted: {before:?} {after:?}");
    // Each hint reads the lease and the board; beats and the poll go on.
    let (exchanges, polls) = (after[2] - before[2], 4 * seconds + 4);
    assert!(exchanges <= 2 * hints + polls, "{exchanges} exchanges, {hints} hints, {seconds} s");
    let leader = Cluster::new(incumbent::open(&url).wait().unwrap(), &cluster).unwrap();
    assert_eq!(leader.leader("lease").wait().unwrap().unwrap().node, "a", "nothing has changed");
    holder.tell("release");
    holder.moment("released");
    waiter.moment("elected");
}

/// Sends forged hints and nonsense until then.
fn flood(at: &str, door: u64, until: incumbent::Moment) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let forged = [&b"inc\x01\x01"[..], &door.to_be_bytes()].concat();
    let mut senseless =
        vec![Vec::new(), vec![0xff; 1400], forged[..12].to_vec(), b"inc\x01\x02".to_vec()];
    let stranger = [&b"inc\x01\x01"[..], &(door ^ 1).to_be_bytes()].concat();
    // Somebody far away who is said to wait: nothing may ever be sent there.
    let far = [
        &b"inc\x01\x02"[..],
        &door.to_be_bytes(),
        &[0; 8],
        &[0; 10],
        &[0xff, 0xff, 192, 0, 2, 1, 0, 9],
    ]
    .concat();
    senseless.extend([stranger, far]);
    while clock::now() < until {
        for bytes in senseless.iter().chain([&forged; 20]) {
            let _ = socket.send_to(bytes, at);
        }
        std::thread::park_timeout(Duration::from_micros(200));
    }
}

/// Where a member says that it takes hints.
fn control(url: &str, cluster: &str, member: &str) -> (String, u64) {
    let store: OpenStore = incumbent::open(url).wait().unwrap();
    let key = keys::profile(&incumbent::MemberId::new(member));
    let reads = vec![Read::Key { key, unless: None }];
    let exchange = Exchange { writes: Vec::new(), reads };
    let reply = block_on(store.exchange(cluster, Lane::Watch, exchange)).unwrap();
    let Some(Found::Record(record)) = reply.reads.first() else { panic!("{reply:?}") };
    let text = String::from_utf8(record.value.clone()).unwrap();
    let said = |field: &str| {
        let rest = text.split_once(&format!("\"{field}\":\"")).expect(&text).1;
        rest.split_once('"').unwrap().0.to_owned()
    };
    (said("at"), u64::from_str_radix(&said("door"), 16).unwrap())
}

#[test]
fn hints_with_another_key_are_none() {
    let files = tempfile::tempdir().unwrap();
    let (url, cluster) = (mariadb::shared(), fresh("hints"));
    let mut peers =
        [("a", KEY), ("b", "quite another key, of another cluster")].map(|(name, key)| {
            let file = files.path().join(name);
            std::fs::write(&file, key).unwrap();
            let variables = [("INCUMBENT_HINT_KEY_FILE", file.to_str().unwrap())];
            Peer::start(here(), &url, &cluster, name, &variables)
        });
    hand_overs(&mut peers, release);
    for peer in &mut peers {
        let [hints, dropped, _] = peer.counts();
        assert!(hints == 0, "{hints} taken and {dropped} dropped");
    }
    // What came to the holder was no hint, and so it knew of nobody to tell.
    assert!(peers[0].counts()[1] > 0);
}

#[test]
fn machines_with_addresses_and_a_key_tell_each_other() {
    apart::run_apart("hints");
}

#[test]
#[ignore = "run by another test, in namespaces of its own"]
fn child_process() {
    assert_eq!(apart::role(), "hints");
    let net = Net::new();
    let files = tempfile::tempdir().unwrap();
    let key = files.path().join("key");
    std::fs::write(&key, KEY).unwrap();
    let server = mariadb::start(&["--bind-address=0.0.0.0", "--skip-grant-tables"]);
    let url = format!("mysql://root@10.77.0.100:{}/app", server.port());
    let machines = |hints: &dyn Fn(usize) -> String| {
        let cluster = fresh("hints");
        [0, 1].map(|machine| {
            let command = net.command(machine, env!("CARGO_BIN_EXE_hinted"));
            let place = hints(machine);
            let variables = [
                ("INCUMBENT_HINTS", place.as_str()),
                ("INCUMBENT_HINT_KEY_FILE", key.to_str().unwrap()),
            ];
            Peer::start(command, &url, &cluster, &format!("m{machine}"), &variables)
        })
    };
    let mut told = machines(&|machine| format!("{}:0", apart::net::address(machine)));
    let hinted = hand_overs(&mut told, release);
    let [hints, dropped, _] = told[1].counts();
    assert!(hints >= ROUNDS as u64 && dropped == 0, "{hints} taken and {dropped} dropped");
    // Loopback means another machine here, and nobody sends there.
    let mut untold = machines(&|_| "auto".to_owned());
    let polled = hand_overs(&mut untold, release);
    assert_eq!(untold[1].counts()[..2], [0, 0]);
    assert!(hinted.as_nanos() * FACTOR < polled.as_nanos(), "{hinted:?} with, {polled:?} without");
}
