//! A connection of the driver, and how statements are sent over it.

use std::pin::pin;
use std::task::{Context, Waker};

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, DriverError, Error, Value};

/// A row as the text protocol brings it.
pub(crate) type Row = Vec<Value>;

/// What one statement of a packet brought.
#[derive(Debug)]
pub(crate) struct Set {
    /// How many rows it changed.
    pub(crate) affected: u64,
    /// What it selected.
    pub(crate) rows: Vec<Row>,
}

/// A statement of a packet failed: those before it were done, those after it were not begun.
#[derive(Debug)]
pub(crate) struct Stopped {
    /// The number of statements that were done.
    pub(crate) done: usize,
    pub(crate) error: Error,
}

/// A connection that is closed at once when it is dropped, whatever was going on. It has no
/// `Debug`, because the driver's would show its options.
pub(crate) struct Connection {
    conn: Option<Conn>,
}

impl Connection {
    pub(crate) fn new(conn: Conn) -> Self {
        Self { conn: Some(conn) }
    }

    /// Sends several statements as one packet, which is one round trip, and collects what each
    /// brought.
    pub(crate) async fn packet(&mut self, text: &str, count: usize) -> Result<Vec<Set>, Stopped> {
        let stopped = |done, error| Stopped { done, error };
        let conn = self.conn().map_err(|error| stopped(0, error))?;
        let mut result = conn.query_iter(text).await.map_err(|error| stopped(0, error))?;
        let mut sets = Vec::with_capacity(count);
        for done in 0..count {
            let affected = result.affected_rows();
            let mut rows = Vec::new();
            while let Some(row) = result.next().await.map_err(|error| stopped(done, error))? {
                rows.push(row.unwrap());
            }
            sets.push(Set { affected, rows });
        }
        Ok(sets)
    }

    /// Runs one statement and collects its rows.
    pub(crate) async fn run(&mut self, statement: &str) -> Result<Vec<Row>, Error> {
        let sets = self.packet(statement, 1).await.map_err(|stopped| stopped.error)?;
        Ok(sets.into_iter().next().map(|set| set.rows).unwrap_or_default())
    }

    /// Sees whether the server is still there.
    pub(crate) async fn ping(&mut self) -> Result<(), Error> {
        self.conn()?.ping().await
    }

    fn conn(&mut self) -> Result<&mut Conn, Error> {
        self.conn.as_mut().ok_or(Error::Driver(DriverError::ConnectionClosed))
    }
}

impl Drop for Connection {
    /// Left to itself the driver would read all that is still to come, on a task of its own, and
    /// wait for it as long as the server likes. Begun and not finished, its farewell marks the
    /// connection as closed and sends what can be sent at once (F18).
    fn drop(&mut self) {
        if let Some(conn) = self.conn.take() {
            let farewell = pin!(conn.disconnect());
            let _ = farewell.poll(&mut Context::from_waker(Waker::noop()));
        }
    }
}

/// The text in a column, unless it is NULL or no text.
pub(crate) fn text(row: &Row, column: usize) -> Option<&str> {
    bytes(row, column).and_then(|bytes| std::str::from_utf8(bytes).ok())
}

/// The bytes in a column, unless it is NULL.
pub(crate) fn bytes(row: &Row, column: usize) -> Option<&[u8]> {
    match row.get(column) {
        Some(Value::Bytes(bytes)) => Some(bytes),
        _ => None,
    }
}
