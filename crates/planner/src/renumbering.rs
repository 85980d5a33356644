//! Where things went that are numbered in order, when some came and some left.

use crate::index::{At, Column};

/// Where things went that are numbered in order, when some came and some left.
pub(crate) struct Renumbering<K> {
    was: Column<K, Option<K>>,
    now: Column<K, Option<K>>,
}

impl<K: At> Renumbering<K> {
    /// What each was before, and how many there were.
    pub(crate) fn new(was: Column<K, Option<K>>, before: usize) -> Self {
        let mut now = Column::filled(before, None);
        for (at, was) in was.iter() {
            if let Some(was) = was {
                now[*was] = Some(at);
            }
        }
        Self { was, now }
    }

    /// What it is now, unless it left.
    pub(crate) fn now(&self, before: K) -> Option<K> {
        self.now[before]
    }

    /// What it was, unless it is new.
    pub(crate) fn was(&self, at: K) -> Option<K> {
        self.was[at]
    }

    pub(crate) fn column<T: Clone>(
        &self,
        before: &Column<K, T>,
        mut fresh: impl FnMut(K) -> T,
    ) -> Column<K, T> {
        let cell =
            |(at, was): (K, &Option<K>)| was.map_or_else(|| fresh(at), |was| before[was].clone());
        self.was.iter().map(cell).collect()
    }

    /// The same things by what they are now, without those that left.
    pub(crate) fn list(&self, list: &mut Vec<K>) {
        let now = list.drain(..).filter_map(|before| self.now(before)).collect();
        *list = now;
    }

    pub(crate) fn len(&self) -> usize {
        self.was.len()
    }
}
