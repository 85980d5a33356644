use anyhow::{Result, ensure};
use rusqlite::Connection;

use super::{Bare, Connecting, Swapping, value};

/// A prepared update of one row, in a file of its own with the durability that the store has.
pub(crate) struct Sqlite {
    connection: Connection,
    round: i64,
}

impl Sqlite {
    pub(crate) fn connect(url: &str) -> Connecting<'_> {
        Box::pin(async move {
            let path = format!("{}.bare", url.trim_start_matches("sqlite:"));
            let connection = Connection::open(path)?;
            connection.execute_batch(
                "PRAGMA journal_mode = wal; PRAGMA synchronous = full;
                 CREATE TABLE bare (key TEXT PRIMARY KEY, value TEXT, stamp INTEGER) WITHOUT ROWID;
                 INSERT INTO bare VALUES ('member', '', 0);",
            )?;
            Ok(Box::new(Self { connection, round: 0 }) as Box<dyn Bare>)
        })
    }

    fn update(&mut self) -> Result<()> {
        let before = self.round;
        self.round += 1;
        let update = "UPDATE bare SET value = ?1, stamp = ?2 WHERE key = 'member' AND stamp = ?3";
        let mut update = self.connection.prepare_cached(update)?;
        let rows = update.execute((value(self.round.unsigned_abs()), self.round, before))?;
        ensure!(rows == 1, "{rows} rows were swapped");
        Ok(())
    }
}

impl Bare for Sqlite {
    fn swap(&mut self) -> Swapping<'_> {
        Box::pin(async { self.update() })
    }
}
