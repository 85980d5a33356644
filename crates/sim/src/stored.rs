//! What a record holds, and what it was read as.

use std::any::Any;
use std::cell::RefCell;
use std::rc::Rc;

use serde::de::DeserializeOwned;

/// The bytes of a record. Many checkers look at it, before it is replaced and after, and it is read
/// once for each kind of record that they take it for.
#[derive(Debug)]
pub(crate) struct Stored {
    bytes: Vec<u8>,
    read: RefCell<Vec<Box<dyn Any>>>,
}

impl Stored {
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        Self { bytes, read: RefCell::default() }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The record, if it is of this kind.
    pub(crate) fn read<T: DeserializeOwned + 'static>(&self) -> Option<Rc<T>> {
        let mut read = self.read.borrow_mut();
        let mut known = read.iter().filter_map(|record| record.downcast_ref::<Option<Rc<T>>>());
        if let Some(record) = known.next() {
            return record.clone();
        }
        let text = std::str::from_utf8(&self.bytes).ok();
        let record: Option<Rc<T>> =
            text.and_then(|text| serde_json::from_str(text).ok()).map(Rc::new);
        read.push(Box::new(record.clone()));
        record
    }
}
