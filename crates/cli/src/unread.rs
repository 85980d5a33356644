//! Records that can't be read, wherever that is told.

use incumbent::Unreadable;

use crate::out::{plain, say};
use crate::session::Session;
use crate::style::BAD;
use crate::table;

/// So many are named in a remark.
const MOST: usize = 3;

/// What to do about them.
pub(crate) const NEXT: &str = "`incumbent store repair` says what can be done, and changes nothing";

/// Warns that there are some, below what can be shown.
pub(crate) fn remark(session: &Session, unreadable: &[Unreadable]) {
    if unreadable.is_empty() {
        return;
    }
    for it in unreadable.iter().take(MOST) {
        session.remark(format!("{BAD}warning:{BAD:#} {}", plain(&it.to_string())));
    }
    if let Some(more @ 1..) = unreadable.len().checked_sub(MOST) {
        session.remark(format!("and {more} more"));
    }
    session.remark(format!("What depends on it is not shown. {NEXT}."));
}

/// Prints all of them.
pub(crate) fn print(unreadable: &[Unreadable]) {
    if unreadable.is_empty() {
        return;
    }
    say!("");
    let (records, it) = match unreadable.len() {
        1 => ("1 record".to_owned(), "it"),
        several => (format!("{several} records"), "them"),
    };
    say!("{BAD}{records} can't be read{BAD:#}, and what depends on {it} is not shown.");
    for it in unreadable {
        say!("  {}", table::paragraph(&format!("{}: {}", it.key, it.reason), 4));
    }
    say!("{NEXT}.");
}
