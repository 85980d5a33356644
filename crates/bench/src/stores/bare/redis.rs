use anyhow::{Result, ensure};
use redis::Script;
use redis::aio::MultiplexedConnection;

use super::{Bare, Connecting, Swapping, fresh, value};

/// Redis compares only in scripts; this is the shortest that does.
const SWAP: &str = "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end \
                    redis.call('SET', KEYS[1], ARGV[2]) return 1";

pub(crate) struct Redis {
    connection: MultiplexedConnection,
    script: Script,
    key: String,
    round: u64,
}

impl Redis {
    pub(crate) fn connect(url: &str) -> Connecting<'_> {
        Box::pin(async move {
            let base = url.split('?').next().unwrap_or(url);
            let client = redis::Client::open(base)?;
            let mut connection = client.get_multiplexed_async_connection().await?;
            let key = fresh();
            redis::cmd("SET").arg(&key).arg(value(0)).exec_async(&mut connection).await?;
            let script = Script::new(SWAP);
            Ok(Box::new(Self { connection, script, key, round: 0 }) as Box<dyn Bare>)
        })
    }

    async fn run(&mut self) -> Result<()> {
        let mut call = self.script.key(&self.key);
        call.arg(value(self.round)).arg(value(self.round + 1));
        let swapped: i64 = call.invoke_async(&mut self.connection).await?;
        ensure!(swapped == 1, "it was not swapped");
        self.round += 1;
        Ok(())
    }
}

impl Bare for Redis {
    fn swap(&mut self) -> Swapping<'_> {
        Box::pin(self.run())
    }
}
