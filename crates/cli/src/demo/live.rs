//! The live view: who leads what, and keys that make it change.

mod deeds;
mod draw;
mod keys;

use std::time::Duration;

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use super::stage::{News, Stage, Tone};
use crate::exit::{Failure, Outcome};
use crate::out::say;
use crate::span;
use crate::style::{BAD, GOOD};

/// How often the picture is drawn, whatever happens: a burst of news must not wait for it.
const FRAME: Duration = Duration::from_millis(50);

/// How much of the past is kept.
const LONGEST_TIMELINE: usize = 500;

/// What the view shows beside the stage.
struct Live<'a> {
    stage: &'a mut Stage,
    /// The newest last.
    timeline: Vec<News>,
    /// Which lease the keys are about.
    chosen: usize,
    /// Requests to the store that are under way.
    errands: JoinSet<Result<(), String>>,
}

/// Shows the view until the user quits. Fails if there ever were two leaders at once.
pub(crate) async fn run(stage: &mut Stage, nodes: usize) -> Outcome {
    for _ in 0..nodes {
        stage.add()?;
    }
    let mut live = Live { stage, timeline: Vec::new(), chosen: 0, errands: JoinSet::new() };
    let screen = Screen::enter()?;
    let watched = live.watch(screen).await;
    live.farewell();
    watched?;
    if live.stage.faults().is_empty() { Ok(()) } else { Err(Failure::said()) }
}

impl Live<'_> {
    async fn watch(&mut self, mut screen: Screen) -> Outcome {
        let mut keys = keys::listen()?;
        let mut frames = tokio::time::interval(FRAME);
        frames.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                news = self.stage.next() => self.tell(news),
                key = keys.recv() => match key {
                    Some(key) if quits(key) => return Ok(()),
                    Some(key) => self.press(key.code),
                    None => return Ok(()),
                },
                Some(errand) = self.errands.join_next() => {
                    if let Ok(Err(why)) = errand {
                        self.tell(self.stage.news(Tone::Bad, why));
                    }
                }
                _ = frames.tick() => {
                    screen.terminal.draw(|frame| draw::frame(frame, self))?;
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
        let (terms, leases) = (self.stage.ledger.terms(), self.stage.recipe.leases.len());
        let lasted = incumbent::clock::now().since(self.stage.began);
        say!("{terms} terms of {leases} leases in {}", span::text(lasted));
        let faults = self.stage.faults();
        for fault in &faults {
            say!("{BAD}Wrong: {fault}{BAD:#}");
        }
        if faults.is_empty() {
            say!("{GOOD}Never two leaders at once, and terms only grew.{GOOD:#}");
        }
    }
}

/// In raw mode Ctrl-C is a key like any other.
fn quits(key: KeyEvent) -> bool {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    matches!(key.code, KeyCode::Char('q') | KeyCode::Esc)
        || (control && key.code == KeyCode::Char('c'))
}

/// The terminal while the view has it. Dropping it gives it back as it was.
struct Screen {
    terminal: DefaultTerminal,
}

impl Screen {
    fn enter() -> Outcome<Self> {
        let terminal = ratatui::try_init().map_err(|error| {
            Failure::internal(format!(
                "this terminal can't show the live view: {error}. Try `incumbent demo --tour`"
            ))
        })?;
        Ok(Self { terminal })
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}
