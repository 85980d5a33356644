//! The numbers of a node through the facade of the `metrics` crate: as the documentation tells, on a thread of their own,
//! and whatever the recorder does.
#![cfg(feature = "metrics")]
#![allow(clippy::unwrap_used, reason = "this is test code")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use incumbent::{MemoryStore, Node, clock};
use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SharedString, Unit,
};

/// What a recorder was told, by name and labels.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Sheet>>, Arc<AtomicBool>);

#[derive(Default)]
struct Sheet {
    described: BTreeMap<String, Option<Unit>>,
    counters: BTreeMap<String, u64>,
    gauges: BTreeMap<String, f64>,
    samples: BTreeMap<String, Vec<f64>>,
    threads: BTreeSet<String>,
}

impl Told {
    /// Each call of the recorder comes by here. While it is stuck, it doesn't come back.
    fn sheet(&self) -> MutexGuard<'_, Sheet> {
        while self.1.load(Ordering::SeqCst) {
            std::thread::park_timeout(Duration::from_millis(5));
        }
        let mut sheet = self.0.lock().unwrap();
        sheet.threads.insert(std::thread::current().name().unwrap_or_default().to_owned());
        sheet
    }

    /// What was told, for the test.
    fn look<T>(&self, look: impl FnOnce(&Sheet) -> T) -> T {
        look(&self.0.lock().unwrap())
    }

    fn wait_until(&self, what: &str, test: impl Fn(&Sheet) -> bool) {
        let end = clock::now() + Duration::from_secs(60);
        while !self.look(&test) {
            assert!(clock::now() < end, "not in time: {what}");
            std::thread::park_timeout(Duration::from_millis(5));
        }
    }
}

/// One series.
struct Series(Told, String);

impl CounterFn for Series {
    fn increment(&self, value: u64) {
        *self.0.sheet().counters.entry(self.1.clone()).or_default() += value;
    }

    fn absolute(&self, value: u64) {
        self.0.sheet().counters.insert(self.1.clone(), value);
    }
}

impl GaugeFn for Series {
    fn increment(&self, _: f64) {}

    fn decrement(&self, _: f64) {}

    fn set(&self, value: f64) {
        self.0.sheet().gauges.insert(self.1.clone(), value);
    }
}

impl HistogramFn for Series {
    fn record(&self, value: f64) {
        self.0.sheet().samples.entry(self.1.clone()).or_default().push(value);
    }
}

impl Told {
    fn series(&self, key: &Key) -> Arc<Series> {
        let mut labels: Vec<String> =
            key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
        labels.sort();
        Arc::new(Series(self.clone(), format!("{} {}", key.name(), labels.join(" "))))
    }

    fn describe(&self, name: &KeyName, unit: Option<Unit>, said: &SharedString) {
        assert!(said.ends_with('.'), "{said}");
        self.sheet().described.insert(name.as_str().to_owned(), unit);
    }
}

impl Recorder for Told {
    fn describe_counter(&self, name: KeyName, unit: Option<Unit>, said: SharedString) {
        self.describe(&name, unit, &said);
    }

    fn describe_gauge(&self, name: KeyName, unit: Option<Unit>, said: SharedString) {
        self.describe(&name, unit, &said);
    }

    fn describe_histogram(&self, name: KeyName, unit: Option<Unit>, said: SharedString) {
        self.describe(&name, unit, &said);
    }

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.series(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.series(key))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.series(key))
    }
}

/// One test, because a process has one recorder.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o3_a_recorder_gets_all_numbers_and_can_hold_up_nothing() {
    let told = Told::default();
    metrics::set_global_recorder(told.clone()).unwrap();
    let builder = Node::builder().name("a").cluster("c").ttl(Duration::from_secs(3));
    let node = builder.join(MemoryStore::new()).await.unwrap();
    let publication = node.publish_metrics().unwrap();
    let mut campaign = node.campaign("scheduler").unwrap();
    let leadership = campaign.elected().await.unwrap();

    let held = "incumbent_lease_held cluster=c lease=scheduler node=a";
    told.wait_until("it is told to lead", |sheet| sheet.gauges.get(held) == Some(&1.0));
    let won = "incumbent_elections_won_total cluster=c lease=scheduler node=a";
    let master = "leader_election_master_status name=scheduler";
    told.look(|sheet| {
        assert_eq!(sheet.counters.get(won), Some(&1));
        assert_eq!(sheet.gauges.get(master), Some(&1.0));
    });
    let beats =
        "incumbent_store_request_duration_seconds cluster=c lane=beat node=a outcome=answered";
    told.wait_until("a beat is told of", |sheet| {
        sheet.samples.get(beats).is_some_and(|samples| samples.iter().all(|it| *it >= 0.0))
    });
    // Each beat once: the histogram of the snapshot has them too, with those from before the publication.
    let counted = |node: &Node| -> u64 {
        let lanes = node.metrics().store;
        lanes.iter().filter(|it| it.lane == "beat").map(|it| it.latency.count).sum()
    };
    told.look(|sheet| assert!(sheet.samples[beats].len() as u64 <= counted(&node)));
    told.look(names_are_those_of_the_documentation);

    // A recorder that hangs: beats go on, and the lease is kept.
    told.1.store(true, Ordering::SeqCst);
    let before = node.metrics().renewals.renewed;
    let end = clock::now() + Duration::from_secs(60);
    while node.metrics().renewals.renewed < before + 4 {
        assert!(clock::now() < end, "beats wait for the recorder");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(leadership.is_held(), "the lease was lost by the recorder");
    told.1.store(false, Ordering::SeqCst);
    let renewed = "incumbent_renewals_total cluster=c node=a outcome=renewed";
    told.wait_until("what was missed is told", |sheet| {
        sheet.counters.get(renewed).is_some_and(|count| *count >= before + 4)
    });

    // What is over is not said to be held for ever.
    drop(publication);
    told.wait_until("the end is told", |sheet| sheet.gauges.get(held) == Some(&0.0));
    told.look(|sheet| {
        assert_eq!(sheet.gauges.get(master), Some(&0.0));
        assert_eq!(sheet.threads, BTreeSet::from(["incumbent-metrics".to_owned()]));
    });
    assert!(leadership.is_held());
}

/// But for duties, which the store alone knows.
fn names_are_those_of_the_documentation(sheet: &Sheet) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
    let table = std::fs::read_to_string(path).unwrap();
    let names = table.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let told: BTreeSet<&str> = names.filter(|name| *name != "incumbent_duties").collect();
    let described: BTreeSet<&str> = sheet.described.keys().map(String::as_str).collect();
    assert_eq!(described, told);
    for (name, unit) in &sheet.described {
        assert_eq!(*unit == Some(Unit::Seconds), name.contains("_seconds"), "{name}");
    }
    let series = sheet.counters.keys().chain(sheet.gauges.keys()).chain(sheet.samples.keys());
    for series in series {
        let name = series.split(' ').next().unwrap_or_default();
        assert!(described.contains(name), "{series}");
    }
}
