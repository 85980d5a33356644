//! A process whose work takes small steps while it leads and writes each down, until its standard
//! input ends. `stall MILLIS` on its standard input blocks the thread that beats for so long.
//!
//! `stepper URL NODE FILE`

use std::fs::{File, OpenOptions};
use std::io::{BufRead, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result};
use incumbent::store::{Answer, Capabilities, Exchange, HintGuard, Lane, Store, Wake};
use incumbent::{Node, OpenStore, Term, WorkResult, clock};
use incumbent_proving::Entry;

/// From one step to the next.
const PAUSE: Duration = Duration::from_millis(2);

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().context("usage: stepper URL NODE FILE");
    let (url, name, file) = (next()?, next()?, next()?);
    let log = Arc::new(OpenOptions::new().create(true).append(true).open(file)?);
    let stall = Arc::new(AtomicU64::new(0));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let store = Stalling { store: incumbent::open(&url).await?, stall: Arc::clone(&stall) };
        let builder = Node::builder().for_tests().cluster("faults").name(name);
        let node = builder.join(store).await?;
        let _lead = node.lead("lease", move |term| step(term, Arc::clone(&log)))?;
        tokio::task::spawn_blocking(move || listen(&stall)).await?;
        node.leave().await?;
        Ok(())
    })
}

fn listen(stall: &AtomicU64) {
    for line in std::io::stdin().lock().lines().map_while(std::result::Result::ok) {
        if let Some(millis) = line.strip_prefix("stall ").and_then(|it| it.trim().parse().ok()) {
            stall.store(millis, Ordering::SeqCst);
        }
    }
}

/// Works for ever, as far as it is concerned: whoever lets it run says that it may.
async fn step(term: Term, log: Arc<File>) -> WorkResult {
    let number = term.number();
    // Whoever started this process follows the elections here.
    println!("{number}");
    loop {
        let until = term.trusted_until().as_nanos();
        let before = clock::now().as_nanos();
        let after = clock::now().as_nanos();
        let entry = Entry::Asked { before, after, term: number, held: true, until };
        (&*log).write_all(format!("{entry}\n").as_bytes())?;
        tokio::time::sleep(PAUSE).await;
    }
}

/// A store that blocks the thread on which it is asked, once for each time it is told to.
struct Stalling {
    store: OpenStore,
    stall: Arc<AtomicU64>,
}

impl Store for Stalling {
    fn capabilities(&self) -> Capabilities {
        self.store.capabilities()
    }

    fn exchange<'a>(&'a self, cluster: &'a str, lane: Lane, exchange: Exchange) -> Answer<'a> {
        let millis = self.stall.swap(0, Ordering::SeqCst);
        let end = clock::now() + Duration::from_millis(millis);
        while clock::now() < end {
            std::thread::park_timeout(end.since(clock::now()));
        }
        self.store.exchange(cluster, lane, exchange)
    }

    fn hints(&self, cluster: &str, wake: Wake) -> Option<HintGuard> {
        self.store.hints(cluster, wake)
    }
}
