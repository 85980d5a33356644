//! What goes to standard output. Nobody reading any more is no reason to panic.

use std::fmt::Arguments;
use std::io::Write;

/// Prints one line and says whether anybody may still be reading.
pub(crate) fn line(line: Arguments<'_>) -> bool {
    let mut stdout = anstream::stdout().lock();
    writeln!(stdout, "{line}").and_then(|()| stdout.flush()).is_ok()
}

/// Prints one line to standard error.
pub(crate) fn error_line(line: Arguments<'_>) {
    let mut stderr = anstream::stderr().lock();
    let _ = writeln!(stderr, "{line}");
}

/// Prints a line to standard output, with colours on a terminal alone.
macro_rules! say {
    ($($text:tt)*) => {
        crate::out::line(format_args!($($text)*))
    };
}

/// Prints a line to standard error, with colours on a terminal alone.
macro_rules! note {
    ($($text:tt)*) => {
        crate::out::error_line(format_args!($($text)*))
    };
}

pub(crate) use {note, say};

/// Text that came from a store, without what a terminal would obey.
pub(crate) fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn nothing_from_a_store_commands_the_terminal() {
        assert_eq!(plain("node\u{1b}[2J\n"), "node\u{fffd}[2J\u{fffd}");
        assert_eq!(plain("Knoten-ä"), "Knoten-ä");
    }
}
