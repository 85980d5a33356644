//! The whole terminal, for views that go on: the demo's and that of `top`.

mod input;
pub(crate) mod widgets;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::{DefaultTerminal, Frame};

pub(crate) use self::input::{Input, listen};
use crate::exit::{Failure, Outcome};

/// The terminal while a view has it. Dropping it gives it back as it was; so does a panic.
pub(crate) struct Screen {
    terminal: DefaultTerminal,
}

impl Screen {
    /// Takes the terminal. If that can't be, the user is told what else to try.
    pub(crate) fn enter(instead: &str) -> Outcome<Self> {
        let terminal = ratatui::try_init().map_err(|error| {
            Failure::internal(format!("this terminal can't show a live view: {error}. {instead}"))
        })?;
        Ok(Self { terminal })
    }

    /// Shows a picture.
    pub(crate) fn draw(&mut self, picture: impl FnOnce(&mut Frame<'_>)) -> Outcome {
        self.terminal.draw(picture)?;
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// Whether a key ends a view. In raw mode Ctrl-C is a key like any other.
pub(crate) fn quits(key: KeyEvent) -> bool {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    key.code == KeyCode::Char('q') || (control && key.code == KeyCode::Char('c'))
}
