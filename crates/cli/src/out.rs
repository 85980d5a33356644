//! What goes to standard output, and what is typed in return. Nobody reading any more is no reason to panic, and a disk that is
//! full is none to end as if all were well.

use std::fmt::Arguments;
use std::io::{self, BufRead, Write};
use std::sync::{Mutex, PoisonError};

use unicode_width::UnicodeWidthChar;

/// Why standard output couldn't be written the first time, unless that was wanted.
static UNWRITTEN: Mutex<Option<io::Error>> = Mutex::new(None);

/// Prints one line and says whether anybody may still be reading.
pub(crate) fn line(line: Arguments<'_>) -> bool {
    let mut stdout = anstream::stdout().lock();
    written(writeln!(stdout, "{line}").and_then(|()| stdout.flush()))
}

/// Prints bytes as they are.
pub(crate) fn bytes(bytes: &[u8]) -> bool {
    let mut stdout = io::stdout().lock();
    written(stdout.write_all(bytes).and_then(|()| stdout.flush()))
}

/// Prints one line to standard error.
pub(crate) fn error_line(line: Arguments<'_>) {
    let mut stderr = anstream::stderr().lock();
    let _ = writeln!(stderr, "{line}");
}

/// A line that somebody typed, without its end and blanks around it; empty if there is none. What is
/// no text is no answer, and no failure either.
pub(crate) fn typed() -> io::Result<String> {
    let mut line = Vec::new();
    io::stdin().lock().read_until(b'\n', &mut line)?;
    Ok(String::from_utf8_lossy(&line).trim().to_owned())
}

/// Notes what became of writing, and says whether anybody may still be reading.
pub(crate) fn written(result: io::Result<()>) -> bool {
    let Err(error) = result else { return true };
    // Whoever stops reading has seen enough.
    if error.kind() != io::ErrorKind::BrokenPipe {
        UNWRITTEN.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }
    false
}

/// Why standard output couldn't be written, if it couldn't.
pub(crate) fn unwritten() -> Option<io::Error> {
    UNWRITTEN.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// Whether somebody may still read standard output. A pipe without a reader is found out without
/// writing to it.
#[cfg(unix)]
pub(crate) fn is_read() -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let stdout = io::stdout();
    let mut polled = [PollFd::new(&stdout, PollFlags::empty())];
    match poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) {
        Ok(_) => polled.iter().all(|it| !it.revents().contains(PollFlags::ERR)),
        Err(_) => true,
    }
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

/// Text that came from a store, without what a terminal would obey, and with what can't be seen, or
/// changes the direction of what follows, named by its number.
pub(crate) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() {
            plain.push('\u{fffd}');
        } else if is_unseen(c) {
            plain.push_str(&format!("<U+{:04X}>", u32::from(c)));
        } else {
            plain.push(c);
        }
    }
    plain
}

/// The same for several lines.
pub(crate) fn plain_lines(text: &str) -> String {
    text.split('\n').map(plain).collect::<Vec<_>>().join("\n")
}

/// Whether a reader can't see this, or would take it for a blank.
fn is_unseen(c: char) -> bool {
    // Letters that combine with the one before have no width either, and are seen.
    let combines = matches!(c, '\u{300}'..='\u{34e}' | '\u{350}'..='\u{36f}');
    let is_format = matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}');
    is_format || (c != ' ' && c.is_whitespace()) || (!combines && c.width().is_none())
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn nothing_from_a_store_commands_the_terminal() {
        assert_eq!(plain("node\u{1b}[2J\n"), "node\u{fffd}[2J\u{fffd}");
        assert_eq!(plain("Knoten-ä"), "Knoten-ä");
    }

    #[test]
    fn o31_what_can_not_be_seen_is_named() {
        assert_eq!(plain("a\u{202e}b"), "a<U+202E>b");
        assert_eq!(plain("a\u{200b}"), "a<U+200B>");
        assert_eq!(plain("a\u{a0}b\u{3000}"), "a<U+00A0>b<U+3000>");
        assert_eq!(plain("\u{feff}\u{2066}x\u{2069}"), "<U+FEFF><U+2066>x<U+2069>");
        assert_eq!(plain("e\u{301}日本 עברית 🦀"), "e\u{301}日本 עברית 🦀");
    }
}
