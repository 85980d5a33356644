use anyhow::{Result, ensure};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts, OptsBuilder, Statement};

use super::{Bare, Connecting, Swapping, fresh, value};

/// A prepared update of one row by its primary key.
pub(crate) struct Mysql {
    connection: Conn,
    update: Statement,
    round: u64,
}

impl Mysql {
    pub(crate) fn connect(url: &str) -> Connecting<'_> {
        Box::pin(async move {
            let base = url.split('?').next().unwrap_or(url).replace("mariadb://", "mysql://");
            let options = OptsBuilder::from_opts(Opts::from_url(&base)?).prefer_socket(false);
            let mut connection = Conn::new(options).await?;
            let table = fresh();
            let columns = "id INT PRIMARY KEY, value TEXT, stamp BIGINT";
            connection.query_drop(format!("CREATE TABLE {table} ({columns})")).await?;
            connection.query_drop(format!("INSERT INTO {table} VALUES (1, '', 0)")).await?;
            let update =
                format!("UPDATE {table} SET value = ?, stamp = ? WHERE id = 1 AND stamp = ?");
            let update = connection.prep(update).await?;
            Ok(Box::new(Self { connection, update, round: 0 }) as Box<dyn Bare>)
        })
    }

    async fn update(&mut self) -> Result<()> {
        let before = self.round;
        self.round += 1;
        let values = (value(self.round), self.round, before);
        self.connection.exec_drop(&self.update, values).await?;
        let rows = self.connection.affected_rows();
        ensure!(rows == 1, "{rows} rows were swapped");
        Ok(())
    }
}

impl Bare for Mysql {
    fn swap(&mut self) -> Swapping<'_> {
        Box::pin(self.update())
    }
}
