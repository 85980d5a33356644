//! `GET /metrics`: what the node and its clients' holds have counted, for Prometheus.

mod open;

use std::collections::BTreeMap;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use incumbent::metrics::{Histogram, LeaseMetrics, Metrics};
use prometheus::proto::{self, LabelPair, Metric, MetricFamily, MetricType};
use prometheus::{TEXT_FORMAT, TextEncoder};

use crate::call::{Answer, Call};
use crate::problem::{Problem, STORE};
use crate::service::Service;
use crate::snapshot::Snapshot;

/// What `incumbent_leases_lost_total` is.
const LOST: &str = "Terms that ended, by reason.";

/// What hangs on the store is left out if it takes longer: a scrape shall not wait for a store that is away.
const PATIENCE: Duration = Duration::from_secs(2);

/// `GET /metrics`.
pub(crate) async fn show(call: Call) -> Answer {
    call.know(&[])?;
    let mut page = Page::of(&call.service);
    page.node(&call.service.node().metrics());
    page.holds(&call.service);
    let recent = call.service.watched().recent();
    if let Ok(Ok(snapshot)) = tokio::time::timeout(PATIENCE, recent).await {
        page.cluster(&snapshot);
    }
    let text = TextEncoder::new()
        .encode_to_string(&page.families())
        .map_err(|error| Problem::new(&STORE, format!("the metrics can't be written: {error}")))?;
    let (text, format) = match open::is_asked_for(&call.headers) {
        true => (open::written(&text), open::OPEN_FORMAT),
        false => (text, TEXT_FORMAT),
    };
    let mut response = Response::new(Body::from(text));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(format));
    headers.insert(header::VARY, HeaderValue::from_static("accept"));
    Ok(response)
}

/// All that is shown, by name.
struct Page {
    common: Vec<(&'static str, String)>,
    families: BTreeMap<&'static str, MetricFamily>,
}

/// What a number is.
enum Number<'a> {
    Gauge(f64),
    Counter(f64),
    Histogram(&'a Histogram),
}

impl Page {
    fn of(service: &Service) -> Self {
        let cluster = service.cluster().name().to_owned();
        let node = service.node().name().to_owned();
        Self { common: vec![("cluster", cluster), ("node", node)], families: BTreeMap::new() }
    }

    fn families(self) -> Vec<MetricFamily> {
        self.families.into_values().collect()
    }

    /// Of the server's own node.
    fn node(&mut self, metrics: &Metrics) {
        for lease in &metrics.leases {
            self.lease(lease);
        }
        let renewals = metrics.renewals;
        let outcomes = [
            ("renewed", renewals.renewed),
            ("unavailable", renewals.unavailable),
            ("unknown", renewals.unknown),
            ("rejected", renewals.rejected),
        ];
        for (outcome, count) in outcomes {
            let said = "Beats by outcome.";
            self.add("incumbent_renewals_total", said, &[("outcome", outcome)], counter(count));
        }
        let span = metrics.trust_span.as_secs_f64();
        let least = metrics.least_trust.as_secs_f64();
        let remaining = metrics.trust_remaining.as_secs_f64();
        let gauges = [
            (
                "incumbent_trust_remaining_seconds",
                "How much longer this node may trust without another beat.",
                remaining,
            ),
            ("incumbent_trust_span_seconds", "The longest that trust can last after a beat.", span),
            (
                "incumbent_trust_remaining_min_seconds",
                "The least trust left within the last minute.",
                least,
            ),
            (
                "incumbent_trust_remaining_min_ratio",
                "The same as a share of the span of trust.",
                least / span.max(f64::MIN_POSITIVE),
            ),
            (
                "incumbent_leads_cluster",
                "1 if this node leads the cluster.",
                f64::from(u8::from(metrics.leads_cluster)),
            ),
        ];
        for (name, said, value) in gauges {
            self.add(name, said, &[], Number::Gauge(value));
        }
        let said = "What was left of the span of trust when a beat got through.";
        let left = Number::Histogram(&metrics.trust_left_at_renewal);
        self.add("incumbent_trust_left_at_renewal_ratio", said, &[], left);
        for store in &metrics.store {
            let labels = [("lane", store.lane), ("outcome", store.outcome)];
            let said = "How long the store took to answer.";
            let latency = Number::Histogram(&store.latency);
            self.add("incumbent_store_request_duration_seconds", said, &labels, latency);
        }
        self.add(
            "incumbent_hints_total",
            "Wake-ups that the store pushed, or other nodes where it pushes nothing.",
            &[],
            counter(metrics.hints),
        );
        self.add(
            "incumbent_hints_dropped_total",
            "Datagrams that were no hints for a node of this process.",
            &[],
            counter(metrics.hints_dropped),
        );
        let said = "Moves of duties that this node planned as leader of the cluster.";
        self.add("incumbent_moves_total", said, &[], counter(metrics.moves));
        let said = "How long duties had no place while this node led the cluster, all together.";
        let unplaced = Number::Counter(metrics.unplaced.as_secs_f64());
        self.add("incumbent_unplaced_seconds_total", said, &[], unplaced);
        let said = "How long the plans took that this node made as leader of the cluster.";
        self.add("incumbent_plan_duration_seconds", said, &[], Number::Histogram(&metrics.plans));
    }

    fn lease(&mut self, lease: &LeaseMetrics) {
        let labels = [("lease", lease.lease.as_str())];
        self.held(&lease.lease, None, lease.held, lease.term);
        self.add(
            "incumbent_elections_won_total",
            "How often this node was elected.",
            &labels,
            counter(lease.won),
        );
        for (reason, count) in &lease.lost {
            let labels = [("lease", lease.lease.as_str()), ("reason", *reason)];
            self.add("incumbent_leases_lost_total", LOST, &labels, counter(*count));
        }
        let said = "How long nobody led, as far as this node saw.";
        let leaderless = Number::Counter(lease.leaderless.as_secs_f64());
        self.add("incumbent_leaderless_seconds_total", said, &labels, leaderless);
        let said = "How long each time without a leader was, as far as this node saw.";
        self.add("incumbent_hand_over_seconds", said, &labels, Number::Histogram(&lease.gaps));
    }

    /// Leases that clients of this server hold or wait for.
    fn holds(&mut self, service: &Service) {
        let mut known: BTreeMap<(String, String), (bool, u64)> = BTreeMap::new();
        for hold in service.holds().all().iter().filter(|hold| hold.is_of_lease()) {
            let term = hold.term().map_or(0, |(term, _)| term.number());
            // Several clients may have one name: a series is there once.
            let of = known.entry((hold.lease.clone(), hold.candidate.clone())).or_default();
            *of = (of.0 || hold.is_held(), of.1.max(term));
        }
        for ((lease, candidate), (held, term)) in &known {
            self.held(lease, Some(candidate), *held, *term);
        }
        for ((lease, candidate), count) in &service.holds().stuck() {
            let labels = [("lease", lease.as_str()), ("node", candidate), ("reason", "stuck")];
            self.add("incumbent_leases_lost_total", LOST, &labels, counter(*count));
        }
    }

    /// Whether a lease is held, under our name for it and client-go's.
    fn held(&mut self, lease: &str, node: Option<&str>, held: bool, term: u64) {
        let mut labels = vec![("lease", lease)];
        labels.extend(node.map(|node| ("node", node)));
        let yes = f64::from(u8::from(held));
        let said = "1 if the lease is held, by the trust of the moment of the scrape.";
        self.add("incumbent_lease_held", said, &labels, Number::Gauge(yes));
        self.add(
            "incumbent_lease_term",
            "The last term that was held.",
            &labels,
            Number::Gauge(term as f64),
        );
        let said = "The same as incumbent_lease_held, under client-go's name.";
        let family = self.family("leader_election_master_status", said, MetricType::GAUGE);
        let named = |metric: &Metric| metric.get_label().iter().any(|label| label.value() == lease);
        match family.mut_metric().iter_mut().find(|metric| named(metric)) {
            // One series for each lease: held by any that is counted here.
            Some(known) if held => {
                *known = metric(&[("name", lease.to_owned())], Number::Gauge(yes))
            }
            Some(_) => {}
            None => {
                family.mut_metric().push(metric(&[("name", lease.to_owned())], Number::Gauge(yes)))
            }
        }
    }

    /// What the store shows of all nodes.
    fn cluster(&mut self, snapshot: &Snapshot) {
        let mut states: BTreeMap<&str, usize> = BTreeMap::new();
        for member in snapshot.member_documents() {
            *states.entry(member.state).or_default() += 1;
        }
        for (state, count) in &states {
            let labels = [("state", *state)];
            self.add(
                "incumbent_members",
                "Members by state, as the store shows them.",
                &labels,
                Number::Gauge(*count as f64),
            );
        }
        let mut duties: BTreeMap<(String, &str), usize> = BTreeMap::new();
        for duty in snapshot.duty_documents() {
            *duties.entry((duty.family, duty.state)).or_default() += 1;
        }
        for ((family, state), count) in &duties {
            let labels = [("family", family.as_str()), ("state", *state)];
            self.add(
                "incumbent_duties",
                "Duties by family and state, as the store shows them.",
                &labels,
                Number::Gauge(*count as f64),
            );
        }
    }

    /// Adds one series. A label that is given counts for one that all have.
    fn add(
        &mut self,
        name: &'static str,
        said: &str,
        labels: &[(&'static str, &str)],
        number: Number<'_>,
    ) {
        let common =
            self.common.iter().filter(|(name, _)| labels.iter().all(|(given, _)| given != name));
        let given = labels.iter().map(|(name, value)| (*name, (*value).to_owned()));
        let labels: Vec<(&'static str, String)> = common.cloned().chain(given).collect();
        let kind = match number {
            Number::Gauge(_) => MetricType::GAUGE,
            Number::Counter(_) => MetricType::COUNTER,
            Number::Histogram(_) => MetricType::HISTOGRAM,
        };
        self.family(name, said, kind).mut_metric().push(metric(&labels, number));
    }

    fn family(&mut self, name: &'static str, said: &str, kind: MetricType) -> &mut MetricFamily {
        self.families.entry(name).or_insert_with(|| {
            let mut family = MetricFamily::default();
            family.set_name(name.to_owned());
            family.set_help(said.to_owned());
            family.set_field_type(kind);
            family
        })
    }
}

fn counter(count: u64) -> Number<'static> {
    Number::Counter(count as f64)
}

fn metric(labels: &[(&'static str, String)], number: Number<'_>) -> Metric {
    let label = |(name, value): &(&'static str, String)| {
        let mut label = LabelPair::default();
        label.set_name((*name).to_owned());
        label.set_value(value.clone());
        label
    };
    let mut metric = Metric::from_label(labels.iter().map(label).collect());
    match number {
        Number::Gauge(value) => {
            let mut gauge = proto::Gauge::default();
            gauge.set_value(value);
            metric.set_gauge(gauge);
        }
        Number::Counter(value) => {
            let mut counter = proto::Counter::default();
            counter.set_value(value);
            metric.set_counter(counter);
        }
        Number::Histogram(read) => metric.set_histogram(histogram(read)),
    }
    metric
}

fn histogram(read: &Histogram) -> proto::Histogram {
    let bucket = |(bound, count): &(f64, u64)| {
        let mut bucket = proto::Bucket::default();
        bucket.set_upper_bound(*bound);
        bucket.set_cumulative_count(*count);
        bucket
    };
    let mut histogram = proto::Histogram::default();
    histogram.set_bucket(read.buckets.iter().map(bucket).collect());
    histogram.set_sample_count(read.count);
    histogram.set_sample_sum(read.sum);
    histogram
}
