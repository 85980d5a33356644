//! What a PostgreSQL server does, as it counts it, and what its processes have used.

use std::fmt;
use std::time::Duration;

use anyhow::{Context as _, Result};
use incumbent::{Moment, clock};
use tokio_postgres::{Client, NoTls};

pub(crate) async fn connect(url: &str) -> Result<Client> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::runtime::Handle::current().spawn(async move {
        let _ = connection.await;
    });
    Ok(client)
}

/// Counters at a moment, or what was added to them between two.
pub(crate) struct Load {
    at: Moment,
    span: Duration,
    /// Each statement of incumbent's is a transaction of its own.
    statements: f64,
    read: f64,
    written: f64,
    /// Seconds of all processes of the server; nothing where they aren't on this machine.
    cpu: Option<f64>,
}

impl Load {
    pub(crate) async fn read(client: &Client) -> Result<Self> {
        let counters = "SELECT xact_commit + xact_rollback, tup_fetched, \
                        tup_inserted + tup_updated + tup_deleted FROM pg_stat_database \
                        WHERE datname = current_database()";
        let row = client.query_one(counters, &[]).await?;
        let process: i32 = client.query_one("SELECT pg_backend_pid()", &[]).await?.try_get(0)?;
        let number = |place| -> Result<f64> { Ok(row.try_get::<_, i64>(place)? as f64) };
        Ok(Self {
            at: clock::now(),
            span: Duration::ZERO,
            statements: number(0)?,
            read: number(1)?,
            written: number(2)?,
            cpu: cpu(process).ok(),
        })
    }

    pub(crate) fn since(&self, before: &Self) -> Self {
        Self {
            at: self.at,
            span: self.at.since(before.at),
            statements: self.statements - before.statements,
            read: self.read - before.read,
            written: self.written - before.written,
            cpu: self.cpu.zip(before.cpu).map(|(after, before)| after - before),
        }
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.span.as_secs_f64();
        match self.cpu {
            Some(cpu) => write!(f, "{:.1} %", 100.0 * cpu / seconds)?,
            None => write!(f, "not on this machine")?,
        }
        for count in [self.statements, self.read, self.written] {
            write!(f, " | {:.0}", count / seconds)?;
        }
        Ok(())
    }
}

/// Seconds that a server has used: its first process, all that it started and that still run,
/// and all that have ended. One of them is given.
fn cpu(backend: i32) -> Result<f64> {
    let first = stat(backend)?.parent;
    let mut ticks = stat(first)?.own + stat(first)?.ended;
    for entry in std::fs::read_dir("/proc")? {
        let Some(process) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // One that has just ended is counted with its parent.
        ticks += stat(process).ok().filter(|it| it.parent == first).map_or(0.0, |it| it.own);
    }
    Ok(ticks / rustix::param::clock_ticks_per_second() as f64)
}

struct Stat {
    parent: i32,
    /// Ticks of its own, and of children that have ended.
    own: f64,
    ended: f64,
}

fn stat(process: i32) -> Result<Stat> {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The name before this may hold anything.
    let (_, rest) = text.rsplit_once(')').context("a strange /proc")?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let field = |number: usize| fields.get(number).copied().context("a strange /proc");
    let ticks = |number| -> Result<f64> { Ok(field(number)?.parse()?) };
    Ok(Stat {
        parent: field(1)?.parse()?,
        own: ticks(11)? + ticks(12)?,
        ended: ticks(13)? + ticks(14)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_knows_its_parent() {
        let own = i32::try_from(std::process::id()).unwrap();
        let parent = i32::try_from(std::os::unix::process::parent_id()).unwrap();
        assert_eq!(stat(own).unwrap().parent, parent);
    }
}
