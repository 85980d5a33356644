//! Indexes that can't be mixed up. All are made from the vectors that they index; those that come
//! from outside are checked on entry.

use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// The index of something.
pub(crate) trait At: Copy {
    fn at(index: usize) -> Self;
    fn index(self) -> usize;
}

macro_rules! indexes {
    ($($(#[$doc:meta])* $name:ident),*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub(crate) struct $name(u32);

        impl At for $name {
            fn at(index: usize) -> Self {
                Self(u32::try_from(index).unwrap_or(u32::MAX))
            }

            fn index(self) -> usize {
                self.0 as usize
            }
        }
    )*};
}

indexes! {
    /// A node, in order of ids.
    NodeAt,
    /// A duty, in order of family and name.
    DutyAt,
    /// A class of duties that the same nodes can run.
    ClassAt,
    /// A family.
    FamilyAt,
    /// A name that duties are pinned to.
    PinAt,
    /// A family that is spread over the values of a label.
    SpreadAt,
    /// Duties that are kept apart.
    ApartAt,
    /// Duties that differ in nothing that matters.
    KindAt
}

/// A value for each index of a kind.
#[derive(Clone, Debug)]
pub(crate) struct Column<K, T> {
    cells: Vec<T>,
    kind: PhantomData<K>,
}

impl<K: At, T> Column<K, T> {
    pub(crate) fn filled(length: usize, value: T) -> Self
    where
        T: Clone,
    {
        vec![value; length].into()
    }

    pub(crate) fn len(&self) -> usize {
        self.cells.len()
    }

    pub(crate) fn push(&mut self, value: T) -> K {
        self.cells.push(value);
        K::at(self.cells.len() - 1)
    }

    pub(crate) fn keys(&self) -> impl DoubleEndedIterator<Item = K> + Clone + use<K, T> {
        (0..self.cells.len()).map(K::at)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (K, &mut T)> {
        self.cells.iter_mut().enumerate().map(|(index, value)| (K::at(index), value))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (K, &T)> {
        self.cells.iter().enumerate().map(|(index, value)| (K::at(index), value))
    }
}

impl<K, T> From<Vec<T>> for Column<K, T> {
    fn from(cells: Vec<T>) -> Self {
        Self { cells, kind: PhantomData }
    }
}

impl<K, T> FromIterator<T> for Column<K, T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        Vec::from_iter(values).into()
    }
}

impl<K: At, T> Index<K> for Column<K, T> {
    type Output = T;

    #[allow(clippy::indexing_slicing, reason = "a key comes from the column, or was checked")]
    fn index(&self, key: K) -> &T {
        &self.cells[key.index()]
    }
}

impl<K: At, T> IndexMut<K> for Column<K, T> {
    #[allow(clippy::indexing_slicing, reason = "a key comes from the column, or was checked")]
    fn index_mut(&mut self, key: K) -> &mut T {
        &mut self.cells[key.index()]
    }
}
