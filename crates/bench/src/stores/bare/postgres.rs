use anyhow::{Result, ensure};
use tokio_postgres::{Client, NoTls, Statement};

use super::{Bare, Connecting, Swapping, fresh, value};

/// A prepared update of one row by its primary key, committed as the server does by default.
pub(crate) struct Postgres {
    client: Client,
    update: Statement,
    round: u64,
}

impl Postgres {
    pub(crate) fn connect(url: &str) -> Connecting<'_> {
        Box::pin(async move {
            let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
            tokio::runtime::Handle::current().spawn(async move {
                let _ = connection.await;
            });
            let table = fresh();
            // As much room in each page as the store leaves, so that neither grows.
            client
                .batch_execute(&format!(
                    "CREATE TABLE {table} (key text PRIMARY KEY, value text, stamp text) \
                     WITH (fillfactor = 50); INSERT INTO {table} VALUES ('member', '', '0')"
                ))
                .await?;
            let update = format!(
                "UPDATE {table} SET value = $1, stamp = $2 WHERE key = 'member' AND stamp = $3"
            );
            let update = client.prepare(&update).await?;
            Ok(Box::new(Self { client, update, round: 0 }) as Box<dyn Bare>)
        })
    }

    async fn update(&mut self) -> Result<()> {
        let before = self.round.to_string();
        self.round += 1;
        let after = self.round.to_string();
        let rows =
            self.client.execute(&self.update, &[&value(self.round), &after, &before]).await?;
        ensure!(rows == 1, "{rows} rows were swapped");
        Ok(())
    }
}

impl Bare for Postgres {
    fn swap(&mut self) -> Swapping<'_> {
        Box::pin(self.update())
    }
}
