//! Opens connections, and finds out what is at the other end.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use incumbent_core::store::{Access, Lane, StoreError};
use incumbent_store_common::{Connect, Sent, lane_name, within};
use tokio::runtime::Handle;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Config, Error};

use crate::error::translate;
use crate::exchange::standby;
use crate::facts::Facts;
use crate::options::{Pooler, PostgresOptions};
use crate::schema::{self, Present};
use crate::session::{Line, Session};
use crate::{passfile, tls};

/// The oldest server that has all that is used here.
const OLDEST: i32 = 130_000;

/// Opens connections on the runtime on which the store was opened.
#[derive(Clone)]
pub(crate) struct PostgresConnect {
    pub(crate) options: Arc<PostgresOptions>,
    pub(crate) handle: Handle,
    /// What its connections are for, for people who look at the server.
    pub(crate) purpose: &'static str,
}

impl Connect for PostgresConnect {
    type Session = Session;

    /// A connection that is ready to be used, or why there is none.
    async fn connect(&self) -> Result<Session, StoreError> {
        let (options, server) = (&self.options, self.options.server());
        let hosts = u32::try_from(options.config.get_hosts().len()).unwrap_or(1).max(1);
        let span = options.connect_timeout.saturating_mul(hosts);
        let (line, pooled) = within(&server, "connecting", span, self.start()).await?;
        let probing = probe(line.client(), options, pooled);
        let (facts, present) =
            within(&server, "the first question", options.connect_timeout, probing).await?;
        // Making the tables may have to wait for others who do the same.
        let span = options.connect_timeout.max(options.statement_timeout) + Duration::from_secs(1);
        let preparing = async {
            let tables = schema::prepare(line.client(), options, &present).await?;
            keep_commits(line.client(), options, &facts).await.map(|()| tables)
        };
        let tables = within(&server, "looking at the tables", span, preparing).await?;
        let changes = self.purpose == lane_name(Lane::Change);
        Ok(line.session(options, &self.handle, facts, tables, changes))
    }

    fn server(&self) -> String {
        self.options.server()
    }
}

impl PostgresConnect {
    /// Connects with settings of our own; a pooler refuses them or forgets to pass them on.
    async fn start(&self) -> Result<(Line, bool), StoreError> {
        let options = &self.options;
        let mut config = passfile::fill(options)?;
        let name = options.config.get_application_name().unwrap_or("incumbent");
        config.application_name(format!("{name} {}", self.purpose));
        config.ssl_mode(options.tls.mode.driver());
        if options.pooler == Pooler::Yes {
            let line = self.dial(&config).await;
            return Ok((line.map_err(|error| self.fail(&error))?, true));
        }
        let mut direct = config.clone();
        direct.options(settings(options));
        match self.dial(&direct).await {
            Ok(line) => Ok((line, false)),
            Err(Trouble::Driver(error)) if refuses_settings(&error) => {
                let line = self.dial(&config).await.map_err(|error| self.fail(&error))?;
                Ok((line, true))
            }
            Err(error) => Err(self.fail(&error)),
        }
    }

    async fn dial(&self, config: &Config) -> Result<Line, Trouble> {
        let connector = tls::connector(&self.options.tls).map_err(Trouble::Ours)?;
        let halves = config.connect(connector).await.map_err(Trouble::Driver)?;
        Ok(Line::start(halves, &self.handle))
    }

    fn fail(&self, trouble: &Trouble) -> StoreError {
        match trouble {
            Trouble::Ours(error) => error.clone(),
            Trouble::Driver(error) => translate(&self.options, error, Sent::Nothing).error,
        }
    }
}

enum Trouble {
    Ours(StoreError),
    Driver(Error),
}

/// What every session of ours has set, after what the URL's `options` say. All is looked up by
/// primary key, also by a plan made when the table was small, and so what is prepared is planned
/// once. The last is a mark: whoever doesn't find it there talks through a pooler.
fn settings(options: &PostgresOptions) -> String {
    let given = options.config.get_options().unwrap_or_default();
    let (lock, statement) =
        (options.lock_timeout.as_millis(), options.statement_timeout.as_millis());
    format!(
        "{given} -c lock_timeout={lock} -c statement_timeout={statement} \
         -c idle_in_transaction_session_timeout={statement} -c search_path=pg_catalog \
         -c enable_seqscan=off -c jit=off -c plan_cache_mode=force_generic_plan \
         -c default_transaction_isolation=read\\ committed \
         -c default_transaction_read_only=off -c incumbent.session=own"
    )
}

/// PgBouncer's words for settings that it doesn't know.
fn refuses_settings(error: &Error) -> bool {
    error.as_db_error().is_some_and(|error| error.message().contains("startup parameter"))
}

const PROBE: &str = "SELECT pg_is_in_recovery(), current_setting('server_version_num')::int4, \
     current_setting('server_encoding'), current_setting('fsync'), \
     current_setting('synchronous_commit'), current_setting('synchronous_standby_names'), \
     coalesce(current_setting('incumbent.session', true), '') = 'own', \
     to_regnamespace($1) IS NOT NULL, \
     to_regclass($2) IS NOT NULL AND to_regclass($3) IS NOT NULL, \
     (SELECT relpersistence FROM pg_class WHERE oid = to_regclass($2)), \
     has_table_privilege(to_regclass($2)::oid, 'SELECT') \
     AND has_table_privilege(to_regclass($3)::oid, 'SELECT') \
     AND ($4 OR has_table_privilege(to_regclass($2)::oid, 'INSERT') \
     AND has_table_privilege(to_regclass($2)::oid, 'UPDATE') \
     AND has_table_privilege(to_regclass($2)::oid, 'DELETE')), \
     (SELECT count(*) FROM pg_stat_replication)";

/// Whether there are tables by now, if there were none when the session was opened to look.
pub(crate) async fn has_tables(session: &Session) -> Result<bool, StoreError> {
    if !session.tables.load(Ordering::Acquire) {
        let options = &session.options;
        let looking = async {
            let (_, present) = probe(session.client(), options, session.pooled).await?;
            schema::prepare(session.client(), options, &present).await
        };
        let (server, span) = (options.server(), options.statement_timeout);
        let found = within(&server, "looking for tables", span, looking).await?;
        session.tables.store(found, Ordering::Release);
    }
    Ok(session.tables.load(Ordering::Acquire))
}

async fn probe(
    client: &Client,
    options: &PostgresOptions,
    pooled: bool,
) -> Result<(Facts, Present), StoreError> {
    let names = &options.names;
    let (schema, looks) = (names.schema(), options.access == Access::Look);
    let parameters: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 4] = [
        (&schema, Type::TEXT),
        (&names.records, Type::TEXT),
        (&names.meta, Type::TEXT),
        (&looks, Type::BOOL),
    ];
    let fail = |error: &Error| translate(options, error, Sent::Nothing).error;
    let rows = client.query_typed(PROBE, &parameters).await.map_err(|error| fail(&error))?;
    let row = rows.first().ok_or_else(|| StoreError::unavailable("no answer to a question"))?;
    let read = || -> Result<_, Error> {
        let facts = Facts {
            version: row.try_get(1)?,
            pooled: pooled || !row.try_get::<_, bool>(6)?,
            fsync: row.try_get::<_, &str>(3)? == "on",
            synchronous_commit: row.try_get(4)?,
            synchronous_standby_names: row.try_get(5)?,
            standbys: row.try_get(11)?,
        };
        let present = Present {
            schema: row.try_get(7)?,
            tables: row.try_get(8)?,
            persistence: row.try_get(9)?,
            rights: row.try_get(10)?,
        };
        Ok((row.try_get::<_, bool>(0)?, row.try_get::<_, String>(2)?, facts, present))
    };
    let (in_recovery, encoding, facts, present) = read().map_err(|error| fail(&error))?;
    let server = options.server();
    if in_recovery {
        return Err(standby(options));
    }
    if facts.version < OLDEST {
        return Err(StoreError::rejected(format!(
            "{server}: version {} is too old: PostgreSQL 13 or later is needed",
            facts.version / 10_000
        )));
    }
    if encoding != "UTF8" {
        return Err(StoreError::rejected(format!(
            "{server}: the database's encoding is {encoding}, but records are UTF-8. Make a \
             database with ENCODING 'UTF8' and name it in the URL"
        )));
    }
    Ok((facts, present))
}

/// An acknowledged write has to survive a crash, whatever the server does for others. Through a
/// pooler this travels with each statement.
async fn keep_commits(
    client: &Client,
    options: &PostgresOptions,
    facts: &Facts,
) -> Result<(), StoreError> {
    if facts.pooled || facts.synchronous_commit != "off" {
        return Ok(());
    }
    let set = client.batch_execute("SET synchronous_commit = on").await;
    set.map_err(|error| translate(options, &error, Sent::Nothing).error)
}
