//! The scripted tour: each thing that can happen to a leader or a worker, one after the other.

mod acts;
mod duties;
mod summary;

use std::time::Duration;

use incumbent::{Moment, clock};

use self::summary::Row;
use super::news::News;
use super::stage::Stage;
use super::{DUTIES, FAMILY};
use crate::exit::{Failure, Outcome};
use crate::out::say;
use crate::span;
use crate::style::{BAD, DIM, HEAD};
use crate::tone::Tone;

/// How much later than a ttl a take-over may come before it counts as late.
const GRACE: Duration = Duration::from_secs(5);

/// Time for people to read between two acts.
const BREATH: Duration = Duration::from_millis(1800);

/// A tour under way.
struct Tour<'a> {
    stage: &'a mut Stage,
    rows: Vec<Row>,
    /// All that was wrong, in the order in which it was noticed.
    wrong: Vec<String>,
    act: usize,
}

/// Plays the tour. Fails if anything was wrong.
pub(crate) async fn run(stage: &mut Stage, nodes: usize) -> Outcome {
    let mut tour = Tour { stage, rows: Vec::new(), wrong: Vec::new(), act: 0 };
    tour.introduce(nodes);
    tour.play(nodes).await?;
    tour.conclude()
}

impl Tour<'_> {
    async fn play(&mut self, nodes: usize) -> Outcome {
        self.start(nodes).await?;
        self.resign().await?;
        self.transfer().await?;
        self.kill().await?;
        self.add().await?;
        self.drain().await?;
        self.pause_and_resume().await?;
        self.stop().await?;
        self.evict().await?;
        self.leave().await
    }

    fn introduce(&self, nodes: usize) {
        let recipe = &self.stage.recipe;
        say!("{HEAD}incumbent demo{HEAD:#}: {nodes} processes, ttl {}", span::setting(recipe.ttl),);
        say!("{DIM}leases  {}", recipe.leases.join(", "));
        say!("duties  {FAMILY}/ {}", DUTIES.join(", "));
        say!("store   {}", recipe.place.shown());
        say!("cluster {}{DIM:#}", recipe.place.cluster);
    }

    /// A heading, after a moment for people to read what came before.
    async fn title(&mut self, title: &str) {
        if self.act > 0 {
            self.listen(BREATH).await;
        }
        self.act += 1;
        let at = clock::now().since(self.stage.began).as_secs_f64();
        say!("\n{HEAD}{}. {title}{HEAD:#} {DIM}({at:.1} s){DIM:#}", self.act);
    }

    /// Tells what happens for a while.
    async fn listen(&mut self, span: Duration) {
        self.until(span, |_| false).await;
    }

    /// Tells what happens until the condition holds, and says whether it came to hold in time.
    async fn until(&mut self, patience: Duration, done: impl Fn(&Stage) -> bool) -> bool {
        let deadline = clock::now() + patience;
        while !done(self.stage) {
            let left = deadline.since(clock::now());
            match tokio::time::timeout(left, self.stage.next()).await {
                Ok(news) => self.tell(&news),
                Err(_) => return done(self.stage),
            }
        }
        true
    }

    fn tell(&mut self, news: &News) {
        let style = news.tone.style();
        let mark = if news.tone == Tone::Deed { "> " } else { "" };
        if news.tone == Tone::Bad {
            self.wrong.push(news.text.clone());
        }
        let at = news.at.as_secs_f64();
        say!("  {DIM}{at:>6.2} s{DIM:#}  {style}{mark}{}{style:#}", news.text);
    }

    /// What the demo itself does, and when that was.
    fn deed(&mut self, text: String) -> Moment {
        let now = clock::now();
        let at = now.since(self.stage.began).as_secs_f64();
        say!("  {DIM}{at:>6.2} s{DIM:#}  {HEAD}> {text}{HEAD:#}");
        now
    }

    fn says(text: &str) {
        say!("            {DIM}{text}{DIM:#}");
    }

    /// The longest that a take-over may take, whatever made it necessary.
    fn limit(&self) -> Duration {
        self.stage.recipe.ttl + GRACE
    }

    fn complain(&mut self, text: String) {
        say!("            {BAD}{text}{BAD:#}");
        self.wrong.push(text);
    }

    fn conclude(mut self) -> Outcome {
        self.wrong.extend(self.stage.faults());
        summary::print(&self.rows, self.stage, &self.wrong);
        if self.wrong.is_empty() { Ok(()) } else { Err(Failure::said()) }
    }
}
