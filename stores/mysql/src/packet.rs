//! Several statements, sent together: one round trip.

use incumbent_core::store::{Read, Write};
use incumbent_store_common::Sent;

use crate::connection::{Row, Set, text};
use crate::settings::is_on;
use crate::statement::{SERVER, Writer};

/// What a statement of a packet is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Begin,
    /// The write at this place of the exchange.
    Write(usize),
    Commit,
    Server,
    Keys,
    Prefix,
}

/// Statements on their way to the server.
///
/// One write stands alone and commits by itself. Several share a transaction, which begins and
/// ends within the packet, so that none is ever left open by a client that vanished. After an
/// error the server does nothing more of a packet: the commit that comes later isn't reached.
#[derive(Debug, Default)]
pub(crate) struct Packet {
    pub(crate) text: String,
    steps: Vec<Step>,
}

/// What the statements of a packet brought.
#[derive(Debug, Default)]
pub(crate) struct Unpacked {
    /// Places of writes, and whether each changed a row.
    pub(crate) writes: Vec<(usize, bool)>,
    /// Whether the server is read-only, so that what was refused may have been so for that (F20).
    pub(crate) read_only: bool,
    pub(crate) keys: Vec<Row>,
    pub(crate) prefixes: Vec<Vec<Row>>,
}

impl Packet {
    /// Some writes, in the order in which they are to be done, and some reads.
    pub(crate) fn new(writer: &Writer<'_>, writes: &[(usize, &Write)], reads: &[Read]) -> Self {
        let mut packet = Self::default();
        let together = writes.len() > 1;
        if together {
            packet.push(Step::Begin, "START TRANSACTION");
        }
        for (place, write) in writes {
            packet.push(Step::Write(*place), &writer.write(write));
        }
        if together {
            packet.push(Step::Commit, "COMMIT");
        }
        // Asked together with the rest: to ask only where a write was refused would take another round
        // trip, and far away a beat that is refused would never be answered in time (O14).
        packet.push(Step::Server, SERVER);
        for statement in writer.keys(reads) {
            packet.push(Step::Keys, &statement);
        }
        for read in reads {
            if let Read::Prefix(prefix) = read {
                packet.push(Step::Prefix, &writer.prefix(prefix));
            }
        }
        packet
    }

    fn push(&mut self, step: Step, statement: &str) {
        if !self.text.is_empty() {
            self.text.push(';');
        }
        self.text.push_str(statement);
        self.steps.push(step);
    }

    pub(crate) fn count(&self) -> usize {
        self.steps.len()
    }

    /// The write whose statement is the one after `done` others.
    pub(crate) fn write_at(&self, done: usize) -> Option<usize> {
        match self.steps.get(done) {
            Some(Step::Write(place)) => Some(*place),
            _ => None,
        }
    }

    /// Whether more than one write is in it.
    pub(crate) fn is_transaction(&self) -> bool {
        self.steps.first() == Some(&Step::Begin)
    }

    /// What may have been applied if the server says that the statement after `done` others
    /// failed.
    pub(crate) fn sent(&self, done: usize) -> Sent {
        let commit = self.steps.iter().position(|step| *step == Step::Commit);
        let write = self.steps.iter().position(|step| matches!(step, Step::Write(_)));
        match (commit, write) {
            (Some(commit), _) if done < commit => Sent::Nothing,
            (None, None) => Sent::Nothing,
            (Some(_), _) | (None, Some(_)) => Sent::Write,
        }
    }

    /// Whether the writes were done when the statement after `done` others failed.
    pub(crate) fn is_past_writes(&self, done: usize) -> bool {
        let last =
            self.steps.iter().rposition(|step| matches!(step, Step::Write(_) | Step::Commit));
        last.is_some_and(|last| done > last)
    }

    /// Sorts what came back.
    pub(crate) fn unpack(&self, sets: Vec<Set>) -> Unpacked {
        let mut unpacked = Unpacked::default();
        for (step, set) in self.steps.iter().zip(sets) {
            match step {
                Step::Begin | Step::Commit => {}
                Step::Write(place) => unpacked.writes.push((*place, set.affected > 0)),
                Step::Server => unpacked.read_only = is_read_only(&set.rows),
                Step::Keys => unpacked.keys.extend(set.rows),
                Step::Prefix => unpacked.prefixes.push(set.rows),
            }
        }
        unpacked
    }
}

/// What the rows of [`SERVER`] say. Without any, nothing is trusted.
fn is_read_only(rows: &[Row]) -> bool {
    rows.first().and_then(|row| text(row, 0)).is_none_or(is_on)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::Names;
    use incumbent_core::store::Key;

    #[test]
    fn what_a_failed_statement_leaves_behind_is_known() {
        let names = Names::new("x").unwrap();
        let writer = Writer::new(&names, "c");
        let delete = Write::Delete(Key::new("k"));
        let read = [Read::Prefix(Key::new(""))];

        // Nothing was written.
        let packet = Packet::new(&writer, &[], &read);
        assert_eq!(
            (packet.count(), packet.sent(0), packet.sent(1)),
            (2, Sent::Nothing, Sent::Nothing)
        );

        // One write commits by itself.
        let packet = Packet::new(&writer, &[(7, &delete)], &read);
        assert_eq!((packet.count(), packet.write_at(0)), (3, Some(7)));
        assert_eq!((packet.sent(0), packet.is_past_writes(0)), (Sent::Write, false));
        assert_eq!((packet.sent(1), packet.is_past_writes(1)), (Sent::Write, true));

        // Several commit together: begin, two writes, commit, server, prefix.
        let packet = Packet::new(&writer, &[(0, &delete), (1, &delete)], &read);
        assert!(packet.is_transaction());
        assert_eq!((packet.count(), packet.write_at(2)), (6, Some(1)));
        assert_eq!((packet.sent(2), packet.is_past_writes(2)), (Sent::Nothing, false));
        assert_eq!((packet.sent(3), packet.is_past_writes(3)), (Sent::Write, false));
        assert_eq!((packet.sent(4), packet.is_past_writes(4)), (Sent::Write, true));
    }
}
