//! A process that serves a family of duties and writes down what it is told about each, until its
//! standard input ends. On its standard output stands what it runs: `+name` and `-name`.
//!
//! `worker URL NODE FILE [duty=NAME]… [needs=VERSION] [version=VERSION]… [mode=MODE] [drain=POLICY]`
//!
//! Modes: `plain`; `never-ready`, which never says that a duty has started; `never-drains`, which
//! blocks for ever.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use incumbent::{
    Duty, DutyDescription, Family, FamilyWork, Loss, Node, Overdue, WorkResult, clock, family,
};
use incumbent_proving::{self as faults, Entry};

/// From one question to the next.
const PAUSE: Duration = Duration::from_millis(20);

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, node, file, options @ ..] = arguments.as_slice() else {
        bail!("usage: worker URL NODE FILE [OPTION]…")
    };
    let log = OpenOptions::new().create(true).append(true).open(file)?;
    let log = Log(Arc::new(Mutex::new(log)));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let builder = Node::builder().allow_short_ttl().ttl(Duration::from_secs(2));
        let builder = builder.cluster("faults").name(node).rebalance_after(PAUSE * 5);
        let node = builder.join(incumbent::open(url).await?).await?;
        let _serving = node.serve(served(options, &log)?)?;
        tokio::task::spawn_blocking(|| {
            std::io::stdin().lock().lines().for_each(drop);
        })
        .await?;
        node.leave().await?;
        Ok(())
    })
}

/// What this process serves.
fn served(options: &[String], log: &Log) -> Result<FamilyWork> {
    let mut duties = Vec::new();
    let (mut needs, mut mode) = (None, "plain");
    let mut served = family("work").acknowledge_timeout(PAUSE).grace(PAUSE * 10);
    for option in options {
        let (name, value) = option.split_once('=').context("an option has a value")?;
        match name {
            "duty" => duties.push(DutyDescription::named(value)),
            "needs" => needs = Some(value),
            "version" => served = served.version(value),
            "mode" => mode = value,
            "drain" => served = served.on_overdue(policy(value)?),
            _ => bail!("{name} is no option"),
        }
    }
    if let Some(version) = needs {
        duties = duties.into_iter().map(|duty| duty.version(version)).collect();
    }
    staffed(served.duties(duties), mode, log.clone())
}

fn staffed(served: Family, mode: &str, log: Log) -> Result<FamilyWork> {
    Ok(match mode {
        "plain" => served.run(move |duty| plain(duty, log.clone())),
        "never-ready" => served.waits_for_ready().run(|duty| async move {
            let _told = Told::new(&duty);
            std::future::pending().await
        }),
        "never-drains" => served.run_blocking(|duty| {
            let _told = Told::new(&duty);
            loop {
                std::thread::park();
            }
        }),
        _ => bail!("{mode} is no mode"),
    })
}

fn policy(text: &str) -> Result<Overdue> {
    Ok(match text {
        "wait" => Overdue::Wait,
        "evict" => Overdue::Evict,
        "overlap" => Overdue::Overlap,
        _ => bail!("{text} is no policy"),
    })
}

/// Asks again and again whether the duty is this node's, and writes down the answers.
async fn plain(duty: Duty, log: Log) -> WorkResult {
    let mut told = None;
    let term = duty.number();
    let stopping = duty.token();
    loop {
        let before = now();
        let held = duty.is_held();
        let after = now();
        let until = duty.trusted_until().as_nanos();
        log.write(duty.name(), Entry::Asked { before, after, term, held, until })?;
        if !held {
            break;
        }
        // What is told is written down already, so that it can be counted on.
        told.get_or_insert_with(|| Told::new(&duty));
        let _ = tokio::time::timeout(PAUSE, stopping.cancelled()).await;
    }
    let why = match duty.lost().await.why {
        Loss::CannotTell => faults::Loss::CannotTell,
        _ => faults::Loss::Other,
    };
    log.write(duty.name(), Entry::Lost { at: now(), term, why })?;
    Ok(())
}

/// Tells whoever started this process what it runs.
struct Told(String);

impl Told {
    fn new(duty: &Duty) -> Self {
        println!("+{}", duty.name());
        Self(duty.name().to_owned())
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        println!("-{}", self.0);
    }
}

#[derive(Clone)]
struct Log(Arc<Mutex<File>>);

impl Log {
    /// One line, in one write, so that nothing is lost when the process is killed.
    fn write(&self, duty: &str, entry: Entry) -> std::io::Result<()> {
        let line = format!("{duty}\t{entry}\n");
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write_all(line.as_bytes())
    }
}

fn now() -> u64 {
    clock::now().as_nanos()
}
