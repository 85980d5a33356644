//! What the keys do.

use std::future::Future;

use incumbent::ClusterError;
use ratatui::crossterm::event::KeyCode;

use super::Live;
use crate::demo::process::Condition;
use crate::demo::stage::Tone;
use crate::exit::Outcome;

impl Live<'_> {
    /// Does what a key stands for; other keys do nothing.
    pub(super) fn press(&mut self, key: KeyCode) {
        let done = match key {
            KeyCode::Up | KeyCode::BackTab => self.choose(self.stage.recipe.leases.len() - 1),
            KeyCode::Down | KeyCode::Tab => self.choose(1),
            KeyCode::Char('a') => self.add(),
            KeyCode::Char('r') => self.resume(),
            KeyCode::Char(letter @ ('k' | 'p' | 's' | 't' | 'd' | 'e')) => self.strike(letter),
            _ => Ok(()),
        };
        if let Err(failure) = done {
            self.say(Tone::Bad, failure.message);
        }
    }

    /// The lease that the keys are about.
    pub(super) fn lease(&self) -> String {
        self.stage.recipe.leases.get(self.chosen).cloned().unwrap_or_default()
    }

    fn choose(&mut self, further: usize) -> Outcome {
        let count = self.stage.recipe.leases.len().max(1);
        self.chosen = (self.chosen + further) % count;
        Ok(())
    }

    fn add(&mut self) -> Outcome {
        let place = self.stage.add()?;
        self.say(Tone::Deed, format!("start {}", self.stage.name(place)));
        Ok(())
    }

    fn resume(&mut self) -> Outcome {
        let paused = |place: &usize| {
            self.stage.process(*place).is_ok_and(|it| it.condition == Condition::Paused)
        };
        let paused: Vec<usize> = (0..self.stage.processes.len()).filter(paused).collect();
        if paused.is_empty() {
            self.say(Tone::Plain, "nobody is paused: p pauses the leader".to_owned());
        }
        for place in paused {
            self.stage.resume(place)?;
            let (name, pid) = (self.stage.name(place), self.stage.process(place)?.pid);
            self.say(Tone::Deed, format!("kill -CONT {pid} ({name})"));
        }
        Ok(())
    }

    /// Does something to the leader of the chosen lease.
    fn strike(&mut self, letter: char) -> Outcome {
        let lease = self.lease();
        let leader = self.stage.leader(&lease).map(|(leader, _)| leader);
        let Some(leader) = leader else {
            self.say(Tone::Plain, format!("nobody leads {lease} at the moment"));
            return Ok(());
        };
        let name = self.stage.name(leader);
        let pid = self.stage.process(leader)?.pid;
        match letter {
            'k' => {
                self.stage.kill(leader)?;
                self.say(Tone::Deed, format!("kill -9 {pid} ({name})"));
            }
            'p' => {
                self.stage.pause(leader);
                self.say(Tone::Deed, format!("pause {name} right after its next beat"));
            }
            'd' => {
                self.stage.drain(leader)?;
                self.say(Tone::Deed, format!("kill {pid} ({name} leaves in order)"));
            }
            's' => {
                self.say(Tone::Deed, format!("ask {name} to resign {lease}"));
                let cluster = self.stage.cluster.clone();
                self.errand(async move { cluster.request_resign(&lease).await });
            }
            't' => self.transfer(leader, lease),
            _ => {
                self.say(Tone::Deed, format!("evict {name}"));
                let member = self.stage.process(leader)?.member.clone().unwrap_or_default();
                let cluster = self.stage.cluster.clone();
                self.errand(async move { cluster.evict(&member).await });
            }
        }
        Ok(())
    }

    fn transfer(&mut self, leader: usize, lease: String) {
        let from = self.stage.name(leader);
        let Some(heir) = self.stage.other(leader) else {
            self.say(Tone::Plain, format!("there is nobody but {from}: a adds a node"));
            return;
        };
        let to = self.stage.name(heir);
        self.say(Tone::Deed, format!("transfer {lease} from {from} to {to}"));
        let cluster = self.stage.cluster.clone();
        self.errand(async move { cluster.request_transfer(&lease, &to).await });
    }

    /// Sends a request without holding up the view.
    fn errand<T: Send + 'static>(
        &mut self,
        request: impl Future<Output = Result<T, ClusterError>> + Send + 'static,
    ) {
        self.errands
            .spawn(async move { request.await.map(|_| ()).map_err(|error| error.to_string()) });
    }

    fn say(&mut self, tone: Tone, text: String) {
        self.tell(self.stage.news(tone, text));
    }
}
