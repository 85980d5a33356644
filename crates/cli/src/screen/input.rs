use std::time::Duration;

use ratatui::crossterm::event::{Event, KeyEvent, KeyEventKind, poll, read};
use tokio::sync::mpsc::{self, UnboundedReceiver};

use crate::exit::Outcome;

/// How long the listener goes on after nobody listens to it any more.
const PATIENCE: Duration = Duration::from_millis(100);

/// What comes from the terminal.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Input {
    /// The user pressed a key.
    Key(KeyEvent),
    /// The terminal has another size.
    Resized,
}

/// Listens on a thread of its own, because waiting for a key blocks. It ends with the receiver,
/// or when the terminal is gone.
pub(crate) fn listen() -> Outcome<UnboundedReceiver<Input>> {
    let (sender, inputs) = mpsc::unbounded_channel();
    std::thread::Builder::new().name("keys".to_owned()).spawn(move || {
        while !sender.is_closed() {
            let input = match poll(PATIENCE) {
                Ok(false) => continue,
                Ok(true) => match read() {
                    Ok(Event::Key(key)) if key.kind != KeyEventKind::Release => Input::Key(key),
                    Ok(Event::Resize(..)) => Input::Resized,
                    Ok(_) => continue,
                    Err(_) => return,
                },
                Err(_) => return,
            };
            let _ = sender.send(input);
        }
    })?;
    Ok(inputs)
}
