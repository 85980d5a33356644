//! Makes the tables, and tells whether they are ours to use.

use incumbent_core::store::{Access, StoreError};
use incumbent_store_common::Sent;
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;

use crate::error;
use crate::names::quoted;
use crate::options::PostgresOptions;

/// The format of the tables that this version reads and writes.
const FORMAT: i32 = 1;

const SCHEMA: &str = include_str!("schema.sql");

/// All that has to be run once, by a role that may make tables.
pub(crate) fn sql(options: &PostgresOptions) -> String {
    let names = &options.names;
    let text = if names.is_public() { without_schema() } else { SCHEMA.to_owned() };
    filled(options, &text)
}

/// Asking for a schema that is there already would need rights on the database.
fn without_schema() -> String {
    SCHEMA.replace("CREATE SCHEMA IF NOT EXISTS {schema};\n\n", "")
}

fn filled(options: &PostgresOptions, text: &str) -> String {
    let names = &options.names;
    text.replace("{schema}", &names.schema())
        .replace("{records}", &names.records)
        .replace("{meta}", &names.meta)
        .replace("{json}", &names.object("json"))
        .replace("{leases}", &names.object("leases"))
        .replace("{members}", &names.object("members"))
        .replace("{format}", &FORMAT.to_string())
}

/// The least rights that a role needs to use the tables once they are there.
pub(crate) fn grants(options: &PostgresOptions) -> String {
    let (names, role) = (&options.names, quoted(&options.user()));
    let rights = match options.access {
        Access::Look => "SELECT",
        _ => "SELECT, INSERT, UPDATE, DELETE",
    };
    format!(
        "GRANT USAGE ON SCHEMA {schema} TO {role};\n\
         GRANT {rights} ON {records} TO {role};\n\
         GRANT SELECT ON {meta} TO {role};\n",
        schema = names.schema(),
        records = names.records,
        meta = names.meta,
    )
}

/// What is there before anything is made.
pub(crate) struct Present {
    pub(crate) schema: bool,
    pub(crate) tables: bool,
    /// `u` if a crash would empty the table.
    pub(crate) persistence: Option<i8>,
    /// Whether this role may do with records what the store is opened for.
    pub(crate) rights: Option<bool>,
}

/// Makes what is missing and checks what is there. False if there are no tables, and they are only
/// to be looked at.
pub(crate) async fn prepare(
    client: &Client,
    options: &PostgresOptions,
    present: &Present,
) -> Result<bool, StoreError> {
    let looks = options.access == Access::Look;
    if !present.tables && looks {
        return Ok(false);
    }
    if !present.tables {
        make(client, options, present).await?;
    } else if present.rights == Some(false) {
        return Err(StoreError::rejected(format!(
            "{}: the role {} may not {} {}. Let its owner run:\n{}",
            options.server(),
            options.user(),
            if looks { "read" } else { "read and write" },
            options.names.records,
            grants(options)
        )));
    }
    // A crash concerns those who hold leases there, and not those who look.
    let unlogged = present.persistence.is_some_and(|kind| kind == b'u'.cast_signed());
    if unlogged && !looks {
        let records = &options.names.records;
        return Err(StoreError::rejected(format!(
            "{}: the table {records} is unlogged, so a crash of the server would empty it and \
             terms would start again. Run: ALTER TABLE {records} SET LOGGED;",
            options.server()
        )));
    }
    check_format(client, options).await.map(|()| true)
}

async fn make(
    client: &Client,
    options: &PostgresOptions,
    present: &Present,
) -> Result<(), StoreError> {
    let text = if present.schema { filled(options, &without_schema()) } else { sql(options) };
    // Sent as one message and without BEGIN, this is one transaction.
    let Err(error) = client.batch_execute(&text).await else { return Ok(()) };
    if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) {
        let reason = error.as_db_error().map_or("", |error| error.message());
        return Err(StoreError::rejected(format!(
            "{}: the tables {}… are missing and the role {} may not make them ({reason}). Let a \
             role that may run this once, in one transaction:\n{text}\n{}",
            options.server(),
            options.names.object(""),
            options.user(),
            grants(options)
        )));
    }
    Err(error::translate(options, &error, Sent::Nothing).error)
}

async fn check_format(client: &Client, options: &PostgresOptions) -> Result<(), StoreError> {
    let meta = &options.names.meta;
    let sql = format!("SELECT value FROM {meta} WHERE name = $1");
    let rows = client.query_typed(&sql, &[(&"format", Type::TEXT)]).await;
    let rows = rows.map_err(|error| error::translate(options, &error, Sent::Nothing).error)?;
    let format = rows.first().and_then(|row| row.try_get::<_, i32>(0).ok());
    match format {
        Some(FORMAT) => Ok(()),
        Some(newer) if newer > FORMAT => Err(StoreError::rejected(format!(
            "{}: the tables have format {newer}, made by a newer version of incumbent than this \
             one, which knows format {FORMAT}. Upgrade this program, or choose another prefix= \
             or schema=",
            options.server()
        ))),
        found => Err(StoreError::rejected(format!(
            "{}: the table {meta} says format {}, which no version of incumbent wrote. Choose \
             another prefix= or schema=",
            options.server(),
            found.map_or("nothing".to_owned(), |format| format.to_string())
        ))),
    }
}
