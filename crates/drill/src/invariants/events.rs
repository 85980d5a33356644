//! Elected and lost come in order, each exactly once, with terms that grow.

use incumbent::Event;

use crate::book::Pages;

pub(crate) const NAME: &str = "events";

pub(crate) fn check(pages: &mut Pages, process: usize, event: &Event) {
    match event {
        Event::State(state) => {
            pages.told.retain(|(of, _), _| *of != process);
            for (lease, term) in &state.leads {
                pages.told.insert((process, lease.clone()), *term);
            }
        }
        Event::Elected { lease, term } => {
            let former = pages.told.insert((process, lease.clone()), *term);
            if let Some(former) = former {
                let story = format!(
                    "process {process} was told of term {term} of {lease}, and never of the end of {former}"
                );
                pages.violate(NAME, story);
            }
            let by = pages.elected.get(&(lease.clone(), *term)).copied();
            if by.is_some_and(|by| by != process) {
                let story = format!(
                    "process {process} was told of the term {term} of {lease} that {by:?} has"
                );
                pages.violate(NAME, story);
            }
        }
        Event::Lost { lease, term, .. } => {
            let known = pages.told.remove(&(process, lease.clone()));
            if known != Some(*term) {
                let story = format!(
                    "process {process} was told that it lost term {term} of {lease}, and believed in {known:?}"
                );
                pages.violate(NAME, story);
            }
        }
        _ => {}
    }
}
