//! What the keys do.

use std::future::Future;

use incumbent::ClusterError;
use ratatui::crossterm::event::KeyCode;

use super::{Live, Target};
use crate::demo::process::Condition;
use crate::exit::Outcome;
use crate::tone::Tone;

impl Live<'_> {
    /// Does what a key stands for; other keys do nothing.
    pub(super) fn press(&mut self, key: KeyCode) {
        let done = match key {
            KeyCode::Up | KeyCode::BackTab => self.pick(false),
            KeyCode::Down | KeyCode::Tab => self.pick(true),
            KeyCode::Char('a') => self.add(),
            KeyCode::Char('r') => self.resume(),
            KeyCode::Char(letter @ ('k' | 'p' | 'x' | 'd' | 'e')) => self.strike(letter),
            KeyCode::Char(letter @ ('s' | 't')) => self.steer(letter),
            _ => Ok(()),
        };
        if let Err(failure) = done {
            self.say(Tone::Bad, failure.message);
        }
    }

    fn pick(&mut self, forwards: bool) -> Outcome {
        self.target = self.target.next(self.stage, forwards);
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

    /// Does something to the node that is picked, or leads the lease that is.
    fn strike(&mut self, letter: char) -> Outcome {
        let Some(place) = self.node() else { return Ok(()) };
        let name = self.stage.name(place);
        let pid = self.stage.process(place)?.pid;
        match letter {
            'k' => {
                self.stage.kill(place)?;
                self.say(Tone::Deed, format!("kill -9 {pid} ({name})"));
            }
            'p' if self.stage.led_by(place).is_empty() && self.stage.run_by(place).is_empty() => {
                let text =
                    format!("{name} leads nothing and runs nothing: pausing it shows nothing");
                self.say(Tone::Plain, text);
            }
            'p' => {
                self.stage.pause(place);
                self.say(Tone::Deed, format!("pause {name} right after its next beat"));
            }
            'x' => {
                self.stage.stop(place)?;
                self.say(Tone::Deed, format!("kill {pid} ({name} leaves in order)"));
            }
            'd' => self.drain(place, name),
            _ => {
                self.say(Tone::Deed, format!("evict {name}"));
                let member = self.stage.process(place)?.member.clone().unwrap_or_default();
                let cluster = self.stage.cluster.clone();
                self.errand(async move { cluster.evict(&member).await });
            }
        }
        Ok(())
    }

    /// The node that is meant, if there is one.
    fn node(&mut self) -> Option<usize> {
        let node = self.target.node(self.stage);
        if node.is_none() {
            let lease = self.target.lease(self.stage).unwrap_or_default().to_owned();
            self.say(Tone::Plain, format!("nobody leads {lease} at the moment"));
        }
        node
    }

    /// Takes the duties away from a node, or lets it have some again.
    fn drain(&mut self, place: usize, name: String) {
        let Some(process) = self.stage.processes.get_mut(place) else { return };
        process.drained = !process.drained;
        let cluster = self.stage.cluster.clone();
        if process.drained {
            self.say(Tone::Deed, format!("drain {name}: its duties go elsewhere"));
            self.errand(async move { cluster.drain(&name).await });
        } else {
            self.say(Tone::Deed, format!("undrain {name}"));
            self.errand(async move { cluster.undrain(&name).await });
        }
    }

    /// Asks the leader of the lease that is picked to give it up.
    fn steer(&mut self, letter: char) -> Outcome {
        let Target::Lease(_) = self.target else {
            self.say(Tone::Plain, "pick a lease, which its leader is to give up".to_owned());
            return Ok(());
        };
        let Some(leader) = self.node() else { return Ok(()) };
        let lease = self.target.lease(self.stage).unwrap_or_default().to_owned();
        if letter == 't' {
            self.transfer(leader, lease);
            return Ok(());
        }
        self.say(Tone::Deed, format!("ask {} to resign {lease}", self.stage.name(leader)));
        let cluster = self.stage.cluster.clone();
        self.errand(async move { cluster.request_resign(&lease).await });
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
