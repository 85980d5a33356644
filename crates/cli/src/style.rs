//! Colours for terminals. `anstream` takes them away where there is none, or `NO_COLOR` is set.

use anstyle::{AnsiColor, Style};

/// Titles and heads of tables.
pub(crate) const HEAD: Style = Style::new().bold();
/// What is as it should be.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// Work that goes on.
pub(crate) const WORK: Style = AnsiColor::Cyan.on_default();
/// What is wrong.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
/// What deserves a look.
pub(crate) const ODD: Style = AnsiColor::Yellow.on_default();
/// What is there for completeness.
pub(crate) const DIM: Style = Style::new().dimmed();
/// What is as plain as can be.
pub(crate) const PLAIN: Style = Style::new();
