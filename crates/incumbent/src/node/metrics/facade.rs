//! How a node's numbers are called in the `metrics` crate, and what was handed to its recorder.

use std::collections::{BTreeMap, HashSet};
use std::sync::mpsc::Receiver;

use metrics::{Key, Label, Level, Metadata, Recorder, Unit, with_recorder};

use super::meters::Sampled;
use super::{LeaseMetrics, Metrics};
use crate::Node;

static METADATA: Metadata<'static> = Metadata::new("incumbent", Level::INFO, Some(module_path!()));

/// How each is described to the recorder.
type Describe = fn(&dyn Recorder, metrics::KeyName, Option<Unit>, metrics::SharedString);

const COUNTER: Describe = |recorder, name, unit, said| recorder.describe_counter(name, unit, said);
const GAUGE: Describe = |recorder, name, unit, said| recorder.describe_gauge(name, unit, said);
const HISTOGRAM: Describe =
    |recorder, name, unit, said| recorder.describe_histogram(name, unit, said);

/// Names as docs/metrics.md has them, with what is measured and in which unit.
const NAMES: &[(&str, Describe, Option<Unit>, &str)] = &[
    (HELD, GAUGE, None, "1 if the lease is held, by the trust of the moment of the publication."),
    (TERM, GAUGE, None, "The last term that was held."),
    (WON, COUNTER, Some(Unit::Count), "How often this node was elected."),
    (LOST, COUNTER, Some(Unit::Count), "Terms that ended, by reason."),
    (LEADERLESS, COUNTER, Some(Unit::Seconds), "How long nobody led, as far as this node saw."),
    (GAPS, HISTOGRAM, Some(Unit::Seconds), "How long each time without a leader was."),
    (RENEWALS, COUNTER, Some(Unit::Count), "Beats by outcome."),
    (TRUST, GAUGE, Some(Unit::Seconds), "How much longer this node may trust without a beat."),
    (SPAN, GAUGE, Some(Unit::Seconds), "The longest that trust can last after a beat."),
    (LEAST, GAUGE, Some(Unit::Seconds), "The least trust left within the last minute."),
    (LEAST_SHARE, GAUGE, None, "The same as a share of the span of trust."),
    (LEFT, HISTOGRAM, None, "What was left of the span of trust when a beat got through."),
    (STORE, HISTOGRAM, Some(Unit::Seconds), "How long the store took to answer."),
    (HINTS, COUNTER, Some(Unit::Count), "Wake-ups that the store pushed, or other nodes."),
    (DROPPED, COUNTER, Some(Unit::Count), "Datagrams that were no hints for a node."),
    (PLANS, HISTOGRAM, Some(Unit::Seconds), "How long plans took that this node made."),
    (MOVES, COUNTER, Some(Unit::Count), "Moves of duties that this node planned as leader."),
    (UNPLACED, COUNTER, Some(Unit::Seconds), "How long duties had no place, all together."),
    (LEADS, GAUGE, None, "1 if this node leads the cluster."),
    (
        MEMBERS,
        GAUGE,
        Some(Unit::Count),
        "Members that are alive, as far as this node follows them.",
    ),
    (MASTER, GAUGE, None, "The same as incumbent_lease_held, under client-go's name."),
];

const HELD: &str = "incumbent_lease_held";
const TERM: &str = "incumbent_lease_term";
const WON: &str = "incumbent_elections_won_total";
const LOST: &str = "incumbent_leases_lost_total";
const LEADERLESS: &str = "incumbent_leaderless_seconds_total";
const GAPS: &str = "incumbent_hand_over_seconds";
const RENEWALS: &str = "incumbent_renewals_total";
const TRUST: &str = "incumbent_trust_remaining_seconds";
const SPAN: &str = "incumbent_trust_span_seconds";
const LEAST: &str = "incumbent_trust_remaining_min_seconds";
const LEAST_SHARE: &str = "incumbent_trust_remaining_min_ratio";
const LEFT: &str = "incumbent_trust_left_at_renewal_ratio";
const STORE: &str = "incumbent_store_request_duration_seconds";
const HINTS: &str = "incumbent_hints_total";
const DROPPED: &str = "incumbent_hints_dropped_total";
const PLANS: &str = "incumbent_plan_duration_seconds";
const MOVES: &str = "incumbent_moves_total";
const UNPLACED: &str = "incumbent_unplaced_seconds_total";
const LEADS: &str = "incumbent_leads_cluster";
const MEMBERS: &str = "incumbent_members";
const MASTER: &str = "leader_election_master_status";

/// So many numbers of the node's own wait for the recorder at most.
const WAITING: usize = 4096;

/// The same for each lease. There may be many, and none changes hands more often between two
/// publications.
const GAPS_WAITING: usize = 16;

/// What a recorder was told of one node.
#[derive(Default)]
pub(super) struct Sheet {
    /// Labels that all have but client-go's.
    common: Vec<Label>,
    taps: Vec<Tap>,
    /// The leases that were counted last, with their gaps.
    leases: BTreeMap<String, Tap>,
}

/// Numbers on their way to a histogram.
struct Tap {
    key: Key,
    numbers: Receiver<f64>,
}

impl Sheet {
    /// Hands all numbers to the recorder, as they are now.
    pub(super) fn publish(&mut self, node: &Node) {
        let metrics = node.metrics();
        if self.taps.is_empty() {
            self.begin(node, &metrics);
        }
        self.leases(node, &metrics.leases);
        self.counters(&metrics);
        self.gauges(&metrics);
        self.taps.iter().chain(self.leases.values()).for_each(Tap::pass_on);
    }

    /// Nothing more is published: what was true at the last moment shall not stand for ever.
    pub(super) fn end(&mut self) {
        let leases = std::mem::take(&mut self.leases);
        leases.keys().for_each(|lease| self.held(lease, false));
        for name in [TRUST, LEADS] {
            self.gauge(name, &[], 0.0);
        }
    }

    fn begin(&mut self, node: &Node, metrics: &Metrics) {
        with_recorder(|recorder| {
            for (name, describe, unit, said) in NAMES {
                describe(recorder, (*name).into(), *unit, (*said).into());
            }
        });
        self.common = vec![
            Label::new("cluster", metrics.cluster.clone()),
            Label::new("node", metrics.node.clone()),
        ];
        for (of, buckets) in node.inner.shared.meters.histograms() {
            let key = match of {
                Sampled::TrustLeft => self.key(LEFT, &[]),
                Sampled::Plans => self.key(PLANS, &[]),
                Sampled::Store(lane, outcome) => {
                    self.key(STORE, &[("lane", lane), ("outcome", outcome)])
                }
            };
            self.taps.push(Tap { key, numbers: buckets.tap(WAITING) });
        }
    }

    fn leases(&mut self, node: &Node, leases: &[LeaseMetrics]) {
        let known: HashSet<&str> = leases.iter().map(|known| known.lease.as_str()).collect();
        let gone = |lease: &&String| !known.contains(lease.as_str());
        let gone: Vec<String> = self.leases.keys().filter(gone).cloned().collect();
        for lease in gone {
            self.leases.remove(&lease);
            self.held(&lease, false);
        }
        for (name, meter) in &*node.inner.shared.meters.by_lease() {
            let name = name.as_str();
            if !self.leases.contains_key(name) {
                let (key, numbers) =
                    (self.key(GAPS, &[("lease", name)]), meter.gaps().tap(GAPS_WAITING));
                self.leases.insert(name.to_owned(), Tap { key, numbers });
            }
        }
        for lease in leases {
            self.lease(lease);
        }
    }

    fn lease(&self, lease: &LeaseMetrics) {
        let name = ("lease", lease.lease.as_str());
        self.held(name.1, lease.held);
        self.gauge(TERM, &[name], lease.term as f64);
        self.counter(WON, &[name], lease.won);
        for (reason, count) in &lease.lost {
            self.counter(LOST, &[name, ("reason", reason)], *count);
        }
        self.counter(LEADERLESS, &[name], lease.leaderless.as_secs());
    }

    fn held(&self, lease: &str, held: bool) {
        let yes = f64::from(u8::from(held));
        self.gauge(HELD, &[("lease", lease)], yes);
        let key = Key::from_parts(MASTER, vec![Label::new("name", lease.to_owned())]);
        with_recorder(|recorder| recorder.register_gauge(&key, &METADATA).set(yes));
    }

    fn counters(&self, metrics: &Metrics) {
        let renewals = metrics.renewals;
        for (outcome, count) in [
            ("renewed", renewals.renewed),
            ("unavailable", renewals.unavailable),
            ("unknown", renewals.unknown),
            ("rejected", renewals.rejected),
        ] {
            self.counter(RENEWALS, &[("outcome", outcome)], count);
        }
        self.counter(HINTS, &[], metrics.hints);
        self.counter(DROPPED, &[], metrics.hints_dropped);
        self.counter(MOVES, &[], metrics.moves);
        self.counter(UNPLACED, &[], metrics.unplaced.as_secs());
    }

    fn gauges(&self, metrics: &Metrics) {
        let span = metrics.trust_span.as_secs_f64();
        let least = metrics.least_trust.as_secs_f64();
        for (name, value) in [
            (TRUST, metrics.trust_remaining.as_secs_f64()),
            (SPAN, span),
            (LEAST, least),
            (LEAST_SHARE, least / span.max(f64::MIN_POSITIVE)),
            (LEADS, f64::from(u8::from(metrics.leads_cluster))),
        ] {
            self.gauge(name, &[], value);
        }
        if metrics.members > 0 {
            self.gauge(MEMBERS, &[("state", "alive")], metrics.members as f64);
        }
    }

    fn counter(&self, name: &'static str, labels: &[(&'static str, &str)], count: u64) {
        let key = self.key(name, labels);
        with_recorder(|recorder| recorder.register_counter(&key, &METADATA).absolute(count));
    }

    fn gauge(&self, name: &'static str, labels: &[(&'static str, &str)], value: f64) {
        let key = self.key(name, labels);
        with_recorder(|recorder| recorder.register_gauge(&key, &METADATA).set(value));
    }

    fn key(&self, name: &'static str, labels: &[(&'static str, &str)]) -> Key {
        let given = labels.iter().map(|(name, value)| Label::new(*name, (*value).to_owned()));
        Key::from_parts(name, self.common.iter().cloned().chain(given).collect::<Vec<_>>())
    }
}

impl Tap {
    fn pass_on(&self) {
        with_recorder(|recorder| {
            let histogram = recorder.register_histogram(&self.key, &METADATA);
            self.numbers.try_iter().for_each(|number| histogram.record(number));
        });
    }
}
