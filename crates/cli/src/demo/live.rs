//! The live view: who leads what and who runs what, and keys that make it change.

mod deeds;
mod draw;
mod target;

use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use self::target::Target;
use super::DUTIES;
use super::news::News;
use super::stage::Stage;
use crate::exit::{Failure, Outcome};
use crate::out::say;
use crate::screen::{self, Input, Screen};
use crate::span;
use crate::style::{BAD, GOOD};
use crate::tone::Tone;

/// How often the picture is drawn, whatever happens: a burst of news must not wait for it.
const FRAME: Duration = Duration::from_millis(50);

/// How much of the past is kept.
const LONGEST_TIMELINE: usize = 500;

/// What the view shows beside the stage.
struct Live<'a> {
    stage: &'a mut Stage,
    /// The newest last.
    timeline: Vec<News>,
    /// What the keys are about.
    target: Target,
    /// Requests to the store that are under way.
    errands: JoinSet<Result<(), String>>,
}

/// Shows the view until the user quits. Fails if anything was led or run twice at once.
pub(crate) async fn run(stage: &mut Stage, nodes: usize) -> Outcome {
    for _ in 0..nodes {
        stage.add()?;
    }
    #[cfg(feature = "serve")]
    let page = super::page::Page::open(stage).await;
    let (timeline, target) = (Vec::new(), Target::Lease(0));
    let mut live = Live { stage, timeline, target, errands: JoinSet::new() };
    #[cfg(feature = "serve")]
    if let Some(page) = &page {
        let said = format!("watch it in a browser too: {}", page.address);
        live.tell(live.stage.news(Tone::Deed, said));
    }
    let screen = Screen::enter("Try `incumbent demo --tour`")?;
    let watched = live.watch(screen).await;
    live.farewell();
    #[cfg(feature = "serve")]
    if let Some(page) = page {
        page.close().await;
    }
    watched?;
    if live.stage.faults().is_empty() { Ok(()) } else { Err(Failure::said()) }
}

impl Live<'_> {
    async fn watch(&mut self, mut screen: Screen) -> Outcome {
        let mut inputs = screen::listen()?;
        let mut frames = tokio::time::interval(FRAME);
        frames.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                news = self.stage.next() => self.tell(news),
                input = inputs.recv() => match input {
                    Some(Input::Key(key)) if screen::quits(key) => return Ok(()),
                    Some(Input::Key(key)) => self.press(key.code),
                    Some(Input::Resized) => {}
                    None => return Ok(()),
                },
                Some(errand) = self.errands.join_next() => {
                    if let Ok(Err(why)) = errand {
                        self.tell(self.stage.news(Tone::Bad, why));
                    }
                }
                _ = frames.tick() => {
                    screen.draw(|frame| draw::frame(frame, self))?;
                }
            }
        }
    }

    fn tell(&mut self, news: News) {
        self.timeline.push(news);
        let over = self.timeline.len().saturating_sub(LONGEST_TIMELINE);
        self.timeline.drain(..over);
    }

    /// What is left on the terminal when the view is gone.
    fn farewell(&self) {
        let (ledger, leases) = (&self.stage.ledger, self.stage.recipe.leases.len());
        let (led, ran, duties) = (ledger.leases.terms(), ledger.duties.terms(), DUTIES.len());
        let lasted = span::text(incumbent::clock::now().since(self.stage.began));
        say!("{led} terms of {leases} leases and {ran} runs of {duties} duties in {lasted}");
        let faults = self.stage.faults();
        for fault in &faults {
            say!("{BAD}Wrong: {fault}{BAD:#}");
        }
        if faults.is_empty() {
            say!(
                "{GOOD}Never two leaders, no duty ran twice at once, and terms only grew.{GOOD:#}"
            );
        }
    }
}
