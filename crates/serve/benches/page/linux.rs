//! A server on a large cluster, a browser that looks at it, and what each change costs there.
#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "it ends with the first mistake")]
#![allow(clippy::panic, clippy::unwrap_used, reason = "it ends with the first mistake")]

use std::time::Duration;

use incumbent::{ClusterLead, MemoryStore, Node, clock};
use incumbent_proving::browser::Browser;
use incumbent_serve::{Address, Listener, Options, Service};
use serde_json::json;
use tokio::runtime::Runtime;

use super::crowd::{Crowd, DUTIES, LEASES, NODES};

/// What a change should cost at most.
const GOAL: Duration = Duration::from_millis(50);

/// So long is waited for a change to be shown.
const PATIENCE: Duration = Duration::from_secs(120);

/// After so long without news of it a change is over.
const QUIET: Duration = Duration::from_millis(400);

/// So many duties move at once.
const SHUFFLED: usize = 100;

/// What is looked at.
const VIEWS: [&str; 4] = ["", "leases", "nodes", "duties"];

/// Collects the marks of the page itself.
const COLLECT: &str = "
    window.marks = [];
    new PerformanceObserver((list) => {
        for (const { name, duration, detail } of list.getEntries()) marks.push({ name, duration, detail });
    }).observe({ type: 'measure' });";

/// The kinds of changes, and by which event the page hears of each.
const CHANGES: [(&str, &str); 4] = [
    ("a node dies", "member"),
    ("its duties go to others", "duty"),
    ("100 duties move", "duty"),
    ("a lease changes hands", "lease"),
];

pub(super) fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let rounds = arguments.iter().skip_while(|it| *it != "--rounds").nth(1);
    let rounds: usize = rounds.map_or(10, |it| it.parse().expect("--rounds NUMBER"));
    let stage = Stage::new();
    println!("{NODES} nodes, {DUTIES} duties and {LEASES} leases at {}", stage.base);
    if arguments.iter().any(|it| it == "--look") {
        loop {
            std::thread::park();
        }
    }
    stage.run(rounds);
}

struct Stage {
    runtime: Runtime,
    base: String,
    crowd: std::cell::RefCell<Crowd>,
}

impl Stage {
    fn new() -> Self {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(2).enable_all().build().unwrap();
        let store = MemoryStore::new();
        let crowd = runtime.block_on(Crowd::new(store.clone()));
        let listener = runtime.block_on(async {
            // It only looks: a leader would find that nobody of them beats.
            let builder = Node::builder().name("page-server").cluster_lead(ClusterLead::Never);
            let node = builder.join(store).await.unwrap();
            let service = Service::new(node, Options::default()).unwrap();
            let any = Address::Tcp(([127, 0, 0, 1], 0).into());
            let listener = Listener::bind(&any, &service).await.unwrap();
            let address = listener.address();
            let serving =
                async move { listener.serve(&service, std::future::pending::<()>()).await };
            runtime.handle().spawn(serving);
            address
        });
        let Some(Address::Tcp(address)) = listener else { panic!("no address") };
        Self { runtime, base: format!("http://{address}/"), crowd: crowd.into() }
    }

    fn run(&self, rounds: usize) {
        let browser = Browser::start(1280, 900);
        let mut all = Vec::new();
        println!(
            "{:<36} {:>4}  {:>8} {:>8} {:>8}  all scripts meanwhile",
            "to take in and draw a change, ms", "of", "median", "p99", "most"
        );
        for (at, view) in VIEWS.iter().enumerate() {
            browser.open(&format!("{}#/{view}", self.base));
            browser.protocol("Performance.enable", &json!({ "timeDomain": "threadTicks" }));
            let ready = "return document.querySelector('#status.ok') !== null";
            eventually("the page knows the cluster", || browser.script(ready) == true);
            browser.script(COLLECT);
            let mut costs = CHANGES.map(|_| Vec::new());
            for round in 0..rounds {
                let number = at * rounds + round;
                for (change, known) in costs.iter_mut().enumerate() {
                    known.push(measured(&browser, CHANGES[change].1, || {
                        self.change(change, number)
                    }));
                }
            }
            let view = if view.is_empty() { "overview" } else { view };
            for ((what, _), costs) in CHANGES.iter().zip(&costs) {
                report(&format!("{view}: {what}"), costs);
            }
            report(&format!("{view}: nothing, for a second"), &idle(&browser));
            all.extend(costs.into_iter().flatten());
        }
        report("all changes", &all);
        let most = all.iter().map(|cost| cost.own).max().unwrap_or_default();
        println!("goal: below {GOAL:?}: {}", if most < GOAL { "met" } else { "missed" });
    }

    fn change(&self, change: usize, number: usize) {
        let mut crowd = self.crowd.borrow_mut();
        // Not one that holds a lease of its own.
        let node = LEASES + 10 + number * 3;
        match change {
            0 => self.runtime.block_on(crowd.die(node)),
            1 => self.runtime.block_on(crowd.bury(node)),
            2 => self.runtime.block_on(crowd.shuffle(SHUFFLED, number)),
            _ => self.runtime.block_on(crowd.hand_over(number % LEASES)),
        }
    }
}

/// What a change cost in the page.
#[derive(Clone, Copy, Debug)]
struct Cost {
    /// The processor time of all scripts until the change was shown.
    script: Duration,
    /// How long the page took it in and drew it, by the clock.
    own: Duration,
}

/// What scripts cost from a change until the page has drawn it and hears no more of it.
fn measured(browser: &Browser, event: &str, change: impl FnOnce()) -> Cost {
    browser.script("window.marks = []");
    let before = script_time(browser);
    change();
    let heard = format!(
        "const heard = marks.filter((mark) => mark.name === 'incumbent-take' && mark.detail.includes('{event}'));
         const drawn = marks.findLastIndex((mark) => mark.name === 'incumbent-draw');
         return drawn > marks.indexOf(heard[0]) ? heard.length : 0"
    );
    let (mut known, mut since) = (0, clock::now());
    eventually("the change is shown", || {
        let now = browser.script(&heard).as_u64().unwrap_or_default();
        if now != known {
            (known, since) = (now, clock::now());
        }
        known > 0 && clock::now().since(since) > QUIET
    });
    let script = script_time(browser).saturating_sub(before);
    Cost { script, own: own(browser, event) }
}

/// What scripts cost while nothing changes, a second at a time.
fn idle(browser: &Browser) -> Vec<Cost> {
    let second = || {
        browser.script("window.marks = []");
        let (before, since) = (script_time(browser), clock::now());
        pause(Duration::from_secs(1));
        let script = script_time(browser).saturating_sub(before);
        let script = script.div_f64(clock::now().since(since).as_secs_f64());
        Cost { script, own: Duration::ZERO }
    };
    (0..5).map(|_| second()).collect()
}

/// What taking in these events took, and the drawing that followed.
fn own(browser: &Browser, event: &str) -> Duration {
    let script = format!(
        "let [sum, due] = [0, false];
         for (const {{ name, duration, detail }} of marks) {{
             const about = name === 'incumbent-take' ? detail.includes('{event}') : due;
             if (about) sum += duration;
             due = name === 'incumbent-take' && (due || about);
         }}
         return sum"
    );
    Duration::from_secs_f64(browser.script(&script).as_f64().unwrap_or_default() / 1000.0)
}

/// The processor time of all scripts since the page was opened.
fn script_time(browser: &Browser) -> Duration {
    let metrics = browser.protocol("Performance.getMetrics", &json!({}));
    let all = metrics["metrics"].as_array().cloned().unwrap_or_default();
    let script = all.iter().find(|it| it["name"] == "ScriptDuration");
    Duration::from_secs_f64(script.and_then(|it| it["value"].as_f64()).expect("a duration"))
}

fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = clock::now() + PATIENCE;
    while !holds() {
        assert!(clock::now() < deadline, "not in time: {what}");
        // Each question runs a script, which is counted too.
        pause(Duration::from_millis(200));
    }
}

fn pause(span: Duration) {
    let until = clock::now() + span;
    while clock::now() < until {
        std::thread::park_timeout(until.since(clock::now()));
    }
}

fn report(what: &str, costs: &[Cost]) {
    let sorted = |of: fn(&Cost) -> Duration| {
        let mut all: Vec<f64> = costs.iter().map(|cost| millis(of(cost))).collect();
        all.sort_by(f64::total_cmp);
        all
    };
    let (own, script) = (sorted(|cost| cost.own), sorted(|cost| cost.script));
    let at = |share: usize| own[(own.len() * share / 100).min(own.len() - 1)];
    let (median, p99, most, script) = (at(50), at(99), at(100), script[script.len() / 2]);
    println!("{what:<36} {:>4}  {median:>8.1} {p99:>8.1} {most:>8.1}  {script:>8.1}", costs.len());
}

fn millis(span: Duration) -> f64 {
    span.as_secs_f64() * 1000.0
}
