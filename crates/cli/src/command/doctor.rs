//! `incumbent doctor`: whether all is well with the store and this machine, and which ttl fits.

use std::time::Duration;

use clap::Args;
use incumbent::{Cluster, OpenStore, Timing, clock};
use serde_json::{Value, json};

use super::store::losses;
use crate::doctor::advice::Advice;
use crate::doctor::finding::{Finding, Mark};
use crate::doctor::{access, clocks};
#[cfg(target_os = "linux")]
use crate::doctor::{race::Race, supervision};
use crate::exit::{Code, Failure, Outcome};
use crate::interrupt;
use crate::measure::{self, Effort, Measured, Spread};
use crate::out::{plain, say};
use crate::session::Session;
use crate::setting::{self, Origin, Setting};
use crate::span;
use crate::style::{BAD, DIM, GOOD, HEAD, ODD};
use crate::sweep;

/// What `--help` shows below.
pub(crate) const EXAMPLES: &str = "\
Tries the store in clusters of its own and removes them again; other clusters are not touched.
Takes some seconds. Exits with 0 if all is well, 78 if something should be changed, 69 if the store
can't be reached or refuses, 1 if anything else is wrong.

Examples:
  incumbent doctor
  incumbent --store postgres://app@db/app doctor --ttl 10s
  incumbent doctor --quick --json | jq .ttl";

/// How much is measured of each kind.
const EFFORT: Effort = Effort { most: 100, within: Duration::from_secs(2) };
/// The shortest ttl.
const LEAST_TTL: Duration = Duration::from_secs(3);
/// So often is looked whether a cluster is empty.
const SWEEPS: u32 = 20;

/// How to look.
#[derive(Args, Debug)]
pub(crate) struct DoctorArguments {
    /// The ttl that you mean to use [default: 15s] [env: INCUMBENT_TTL]
    #[arg(long, value_name = "SPAN", value_parser = span::ttl)]
    ttl: Option<Duration>,
    /// The `run --last-grace` that you mean to use [default: ttl/20]
    #[arg(long, value_name = "SPAN", value_parser = span::parse)]
    last_grace: Option<Duration>,
    /// Leave out the race of real candidates
    #[arg(long)]
    quick: bool,
}

/// Looks, tells, and leaves nothing behind.
pub(crate) async fn run(session: &Session, arguments: &DoctorArguments) -> Outcome {
    if session.place.is_private() {
        return Err(Failure::usage(format!(
            "the store {} is known to this process alone, so there is nothing to look at: name \
             one that others can reach",
            session.place.shown()
        )));
    }
    let ttl = setting::ttl(arguments.ttl, &session.config)?;
    Timing::for_ttl(ttl.value).check(LEAST_TTL).map_err(Failure::usage)?;
    let last = setting::last_grace(arguments.last_grace, ttl.value, &session.config)?;
    let mut doctor = Doctor::new(session, ttl, arguments.quick);
    doctor.last_grace = (last.origin != Origin::Default).then_some(last.value);
    let looked = tokio::select! {
        looked = doctor.look() => looked,
        signal = interrupt::received() => {
            let said = format!("interrupted by {signal}");
            Err(Failure::new(Code::Interrupted, said))
        }
    };
    doctor.clean().await;
    looked?;
    doctor.conclude()
}

struct Doctor<'a> {
    session: &'a Session,
    ttl: Setting<Duration>,
    /// The last grace of `run`, if one was chosen.
    last_grace: Option<Duration>,
    quick: bool,
    store: Option<OpenStore>,
    /// Clusters to be removed again.
    scratch: [String; 2],
    findings: Vec<Finding>,
    measured: Option<Measured>,
    advice: Option<Advice>,
    #[cfg(target_os = "linux")]
    race: Option<Race>,
}

impl<'a> Doctor<'a> {
    fn new(session: &'a Session, ttl: Setting<Duration>, quick: bool) -> Self {
        Self {
            session,
            ttl,
            last_grace: None,
            quick,
            store: None,
            scratch: [sweep::scratch("doctor"), sweep::scratch("race")],
            findings: Vec::new(),
            measured: None,
            advice: None,
            #[cfg(target_os = "linux")]
            race: None,
        }
    }

    async fn look(&mut self) -> Outcome {
        if !self.session.json {
            self.tell_settings();
        }
        let Some((store, other)) = self.reach().await? else { return Ok(()) };
        self.store = Some(store.clone());
        let [scratch, race] = self.scratch.clone();
        let rights = access::rights(&store, &scratch).await;
        let may = rights.mark == Mark::Ok;
        self.found(rights);
        if !may {
            return Ok(());
        }
        self.measure(&store, &other, &scratch).await;
        self.found(durability(&store));
        self.found(locks(&store, &self.session.place.cluster).await?);
        #[cfg(target_os = "linux")]
        self.processes(&store, &race).await?;
        #[cfg(not(target_os = "linux"))]
        let _ = race;
        if let Some(advice) = &self.advice {
            let finding = advice.finding();
            self.found(finding);
        }
        Ok(())
    }

    /// What is looked at, and who chose it.
    fn settings(&self) -> [(&'static str, String, &Origin); 3] {
        let Session { place, store_origin, cluster_origin, .. } = self.session;
        [
            ("store", place.shown(), store_origin),
            ("cluster", place.cluster.clone(), cluster_origin),
            ("ttl", span::setting(self.ttl.value), &self.ttl.origin),
        ]
    }

    fn tell_settings(&self) {
        for (name, value, origin) in self.settings() {
            say!("{DIM}{name:<8}{DIM:#}{HEAD}{}{HEAD:#} {DIM}({origin}){DIM:#}", plain(&value));
        }
        say!("");
    }

    /// Opens the store twice, as two processes would. Nothing if that can't be done.
    async fn reach(&mut self) -> Outcome<Option<(OpenStore, OpenStore)>> {
        let began = clock::now();
        let place = &self.session.place;
        let opened = async { Ok((place.open_existing().await?, place.open_existing().await?)) };
        match opened.await {
            Ok((store, other)) => {
                let kind = store.capabilities().kind;
                let took = span::text(clock::now().since(began) / 2);
                self.found(Finding::ok("store", format!("{kind}, opened in {took}")));
                Ok(Some((store, other)))
            }
            Err(Failure { code: Code::Unreachable, message }) => {
                self.found(Finding::fail("store", message));
                Ok(None)
            }
            Err(failure) => Err(failure),
        }
    }

    async fn measure(&mut self, store: &OpenStore, other: &OpenStore, cluster: &str) {
        self.session.remark(format_args!("{DIM}measuring …{DIM:#}"));
        match measure::measure(&**store, &**other, cluster, EFFORT).await {
            Ok(measured) => {
                self.found(latency(&measured));
                self.found(push(store, measured.push));
                self.found(clocks::look(measured.clocks));
                self.advice = Some(Advice::new(self.ttl.value, measured.beat.p99, self.last_grace));
                self.measured = Some(measured);
            }
            Err(error) => self.found(Finding::fail(
                "latency",
                format!("the store stopped answering while it was measured: {error}"),
            )),
        }
    }

    /// What only processes of their own can show.
    #[cfg(target_os = "linux")]
    async fn processes(&mut self, store: &OpenStore, cluster: &str) -> Outcome {
        self.found(supervision::look().await);
        self.found(supervision::witness());
        if self.quick {
            return Ok(());
        }
        self.session.remark(format_args!("{DIM}racing: three processes, one lease …{DIM:#}"));
        let cluster = Cluster::new(store.clone(), cluster)?;
        let race = Race::run(&self.session.place, &cluster, self.ttl.value).await;
        self.found(race.finding(self.ttl.value));
        self.race = Some(race);
        Ok(())
    }

    /// Removes what was written.
    async fn clean(&mut self) {
        let Some(store) = self.store.take() else { return };
        for cluster in self.scratch.clone() {
            if let Err(why) = sweep_all(&store, &cluster).await {
                self.found(Finding::fail(
                    "clean",
                    format!(
                        "the records of the cluster {cluster} are left behind: {why}. Remove them \
                         with `incumbent --cluster {cluster} store reset --force`"
                    ),
                ));
            }
        }
    }

    fn found(&mut self, finding: Finding) {
        if !self.session.json {
            finding.print();
        }
        self.findings.push(finding);
    }

    fn conclude(&self) -> Outcome {
        let verdict = self.findings.iter().map(|it| it.mark).max().unwrap_or(Mark::Ok);
        if self.session.json {
            self.session.print_json(&self.json(verdict));
        } else {
            self.sum_up();
        }
        let of_the_store = |it: &Finding| {
            it.mark == Mark::Fail && ["store", "rights", "latency"].contains(&it.check)
        };
        match verdict {
            Mark::Ok => Ok(()),
            Mark::Warn => Err(Failure::silent(Code::Advised)),
            Mark::Fail if self.findings.iter().any(of_the_store) => {
                Err(Failure::silent(Code::Unreachable))
            }
            Mark::Fail => Err(Failure::said()),
        }
    }

    fn sum_up(&self) {
        let count = |mark| self.findings.iter().filter(|it| it.mark == mark).count();
        match (count(Mark::Fail), count(Mark::Warn)) {
            (0, 0) => say!("\n{GOOD}All is well.{GOOD:#}"),
            (0, 1) => say!("\n{ODD}One thing should be changed.{ODD:#}"),
            (0, warnings) => say!("\n{ODD}{warnings} things should be changed.{ODD:#}"),
            (1, _) => say!("\n{BAD}One thing is wrong.{BAD:#}"),
            (failures, _) => say!("\n{BAD}{failures} things are wrong.{BAD:#}"),
        };
    }

    fn json(&self, verdict: Mark) -> Value {
        #[cfg(target_os = "linux")]
        let race = self.race.as_ref().map(Race::json);
        #[cfg(not(target_os = "linux"))]
        let race: Option<Value> = None;
        let measured = self.measured.as_ref();
        let settings = self.settings().into_iter();
        let settings = settings.map(|(name, _, origin)| (name.to_owned(), origin.json()));
        json!({
            "store": self.session.place.shown(),
            "cluster": self.session.place.cluster,
            "verdict": verdict.as_str(),
            "settings": settings.collect::<serde_json::Map<_, _>>(),
            "checks": self.findings.iter().map(Finding::json).collect::<Vec<_>>(),
            "measured": measured.map(|it| json!({
                "read": it.read.json(),
                "swap": it.swap.json(),
                "beat": it.beat.json(),
                "push": it.push.map(Spread::json),
            })),
            "ttl": self.advice.as_ref().map(Advice::json),
            "race": race,
        })
    }
}

/// Removes a cluster until nothing comes after: what was on its way when a process was killed may
/// arrive late.
async fn sweep_all(store: &OpenStore, cluster: &str) -> Result<(), String> {
    let mut empty = 0;
    for _ in 0..SWEEPS {
        let removed = sweep::sweep(store, cluster).await.map_err(|error| error.to_string())?;
        empty = if removed == 0 { empty + 1 } else { 0 };
        if empty == 2 {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Err("something is still writing there".to_owned())
}

fn latency(measured: &Measured) -> Finding {
    let told =
        |spread: Spread| format!("{} (p99 {})", span::text(spread.p50), span::text(spread.p99));
    let Measured { read, swap, beat, .. } = *measured;
    Finding::ok(
        "latency",
        format!("a read takes {}, a swap {}, a beat {}", told(read), told(swap), told(beat)),
    )
}

fn push(store: &OpenStore, push: Option<Spread>) -> Finding {
    match push {
        Some(push) => Finding::ok(
            "push",
            format!(
                "a change is announced {} after it is sent (p99 {})",
                span::text(push.p50),
                span::text(push.p99)
            ),
        ),
        None if store.capabilities().push => Finding::warn(
            "push",
            "the store should tell of changes, and nothing was told for five seconds, three \
             times: hand-overs are found by polling, within a second. Look for what stands in \
             between, such as a pooler or a firewall",
        ),
        None => Finding::ok(
            "push",
            "this store tells nobody of changes: hand-overs are found by polling, within a second, \
             and what operators ask for with the next beat",
        ),
    }
}

/// Whether anybody waits for somebody else's lock. Other clusters of the store may have their reasons:
/// theirs are only told.
async fn locks(store: &OpenStore, cluster: &str) -> Outcome<Finding> {
    let obstacles = Cluster::new(store, cluster)?.obstacles().await?;
    let (elsewhere, ours): (Vec<_>, Vec<_>) = obstacles
        .iter()
        .partition(|it| it.record.as_ref().is_some_and(|(owner, _)| owner != cluster));
    let finding = match ours.split_first() {
        None => Finding::ok("locks", "no write is seen to wait for somebody else's lock"),
        Some((first, more)) => more.iter().fold(
            Finding::warn(
                "locks",
                format!(
                    "a write waits: {first}. Keep fenced transactions short: a take-over waits for \
                     them"
                ),
            ),
            |finding, other| finding.note(other.to_string()),
        ),
    };
    Ok(elsewhere.iter().fold(finding, |finding, other| finding.note(format!("elsewhere: {other}"))))
}

fn durability(store: &OpenStore) -> Finding {
    let mut warnings = losses::warnings(&**store).into_iter();
    let finding = match warnings.next() {
        Some(warning) => Finding::warn("durability", warning),
        None => Finding::ok("durability", "what was acknowledged survives a crash of the server"),
    };
    let finding = warnings.fold(finding, Finding::note);
    let kind = store.capabilities().kind;
    let losses = losses::of_kind(kind).iter();
    losses.fold(finding, |finding, loss| finding.note(format!("It can lose {loss}.")))
}
