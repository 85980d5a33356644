//! The servers that all share, each private to this run.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use anyhow::{Context as _, Result, anyhow};
use incumbent_proving::Server;
use incumbent_proving::server::{etcd, kubernetes, postgres, redis, zookeeper};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio_postgres::{Client, NoTls};

use super::build;
use super::contender::{Contender, Store};

/// Those that could be started.
pub(crate) struct Servers {
    running: BTreeMap<Store, Server>,
    /// What Kubernetes keeps its objects in.
    _etcd: Option<Server>,
    files: TempDir,
    runtime: Runtime,
    /// To PostgreSQL, as its administrator.
    administrator: Option<Client>,
}

/// What one role did to PostgreSQL.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Statements {
    pub(crate) calls: f64,
    /// Bytes of the log of writes.
    pub(crate) written: f64,
}

/// The two roles that processes have on PostgreSQL while what they cost is counted.
pub(crate) const ROLES: [&str; 2] = ["leader", "waiter"];

impl Servers {
    /// Starts what these contenders need. Of what can't be started it says why.
    pub(crate) fn start(wanted: &[&Contender]) -> Result<(Self, BTreeMap<Store, String>)> {
        let mut missing = BTreeMap::new();
        let mut running = BTreeMap::new();
        let mut below = None;
        for store in Store::ALL {
            if store == Store::Sqlite || !wanted.iter().any(|it| it.store == store) {
                continue;
            }
            match catch_unwind(AssertUnwindSafe(|| serve(store, &mut below))) {
                Ok(Ok(server)) => {
                    running.insert(store, server);
                }
                Ok(Err(error)) => {
                    missing.insert(store, format!("its server doesn't start: {error:#}"));
                }
                Err(_) => {
                    missing.insert(store, "its server doesn't start; see above".to_owned());
                }
            }
        }
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let administrator = match running.get(&Store::Postgres) {
            Some(server) => Some(runtime.block_on(administer(server, wanted))?),
            None => None,
        };
        let files = tempfile::Builder::new().prefix("incumbent-peers-").tempdir()?;
        Ok((Self { running, _etcd: below, files, runtime, administrator }, missing))
    }

    /// Where a contender finds its store. On PostgreSQL each has a database of its own.
    pub(crate) fn url(&self, contender: &Contender, role: &str) -> Result<String> {
        let server = self.running.get(&contender.store);
        let server = || server.with_context(|| format!("{} doesn't run", contender.store.title()));
        Ok(match contender.store {
            Store::Sqlite => {
                format!("sqlite:{}", self.files.path().join("peers.db").display())
            }
            Store::Redis => redis::url(server()?),
            Store::Etcd => etcd::url(server()?),
            Store::Zookeeper => zookeeper::url(server()?),
            Store::Kubernetes => kubernetes::url(server()?),
            Store::Postgres => {
                let (port, database) = (server()?.port(), database(contender));
                format!("postgres://{role}@127.0.0.1:{port}/{database}")
            }
        })
    }

    /// What each role has done in a contender's database so far.
    pub(crate) fn statements(&self, contender: &Contender) -> Result<[Statements; 2]> {
        let client = self.administrator.as_ref().context("PostgreSQL doesn't run")?;
        let query = "SELECT coalesce(sum(calls), 0)::float8, coalesce(sum(wal_bytes), 0)::float8 \
            FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid \
            JOIN pg_roles r ON r.oid = s.userid WHERE d.datname = $1 AND r.rolname = $2";
        let mut found = [Statements::default(); 2];
        let database = database(contender);
        for (role, place) in ROLES.iter().zip(&mut found) {
            let row = self.runtime.block_on(client.query_one(query, &[&database, role]))?;
            *place = Statements { calls: row.try_get(0)?, written: row.try_get(1)? };
        }
        Ok(found)
    }
}

fn database(contender: &Contender) -> String {
    format!("peer_{}", contender.key.replace('-', "_"))
}

fn serve(store: Store, below: &mut Option<Server>) -> Result<Server> {
    Ok(match store {
        Store::Redis => redis::start(&[]),
        Store::Etcd => etcd::start(&[]),
        Store::Zookeeper => zookeeper::start(),
        Store::Kubernetes => {
            let program = build::api_server()?;
            let etcd = below.insert(etcd::start(&[]));
            kubernetes::start(&program, etcd.port())
        }
        Store::Postgres | Store::Sqlite => postgres::start(&[
            "max_connections=500",
            "shared_preload_libraries=pg_stat_statements",
            "pg_stat_statements.max=20000",
        ]),
    })
}

async fn administer(server: &Server, wanted: &[&Contender]) -> Result<Client> {
    let (client, connection) = tokio_postgres::connect(&postgres::url(server, "postgres"), NoTls)
        .await
        .map_err(|error| anyhow!("PostgreSQL: {error}"))?;
    tokio::runtime::Handle::current().spawn(connection);
    client.batch_execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements").await?;
    for role in ROLES {
        // Whoever comes second uses what the first has made.
        client.batch_execute(&format!("CREATE ROLE {role} LOGIN SUPERUSER")).await?;
    }
    for contender in wanted.iter().filter(|it| it.store == Store::Postgres) {
        client.batch_execute(&format!("CREATE DATABASE {}", database(contender))).await?;
    }
    Ok(client)
}
