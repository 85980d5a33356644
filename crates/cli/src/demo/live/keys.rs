//! Keys that the user presses.

use std::time::Duration;

use ratatui::crossterm::event::{Event, KeyEvent, KeyEventKind, poll, read};
use tokio::sync::mpsc::{self, UnboundedReceiver};

use crate::exit::Outcome;

/// How long the listener goes on after nobody wants keys any more.
const PATIENCE: Duration = Duration::from_millis(100);

/// Listens on a thread of its own, because waiting for a key blocks. It ends with the receiver,
/// or when the terminal is gone.
pub(super) fn listen() -> Outcome<UnboundedReceiver<KeyEvent>> {
    let (sender, keys) = mpsc::unbounded_channel();
    std::thread::Builder::new().name("keys".to_owned()).spawn(move || {
        while !sender.is_closed() {
            match poll(PATIENCE) {
                Ok(false) => {}
                Ok(true) => match read() {
                    Ok(Event::Key(key)) if key.kind != KeyEventKind::Release => {
                        let _ = sender.send(key);
                    }
                    Ok(_) => {}
                    Err(_) => return,
                },
                Err(_) => return,
            }
        }
    })?;
    Ok(keys)
}
