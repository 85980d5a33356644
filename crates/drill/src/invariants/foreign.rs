//! Nothing of the application's runs on the threads of incumbent's own.

use incumbent::testing::{Thread, thread};

use crate::book::Pages;

pub(crate) const NAME: &str = "foreign";

pub(crate) fn check(pages: &mut Pages, what: &str) {
    if let Some(own @ (Thread::Beats | Thread::Runners)) = thread() {
        pages.violate(NAME, format!("{what} of the application's ran on the thread {own:?}"));
    }
}
