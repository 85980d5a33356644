//! Makes the tables, and tells whether they are ours to use.

use incumbent_core::store::{Access, StoreError};
use incumbent_store_common::Sent;
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;

use crate::error;
use crate::names::{Names, quoted};
use crate::options::PostgresOptions;

/// The format of the tables that this version reads and writes.
const FORMAT: i32 = 1;

/// The version of the fence's function. Older programs don't know that there is one, so it has a
/// number of its own.
const ASSERT: i32 = 4;

const SCHEMA: &str = concat!(include_str!("schema.sql"), "\n", include_str!("assert.sql"));

/// Two processes that make something at once take turns.
const TURN: &str = "SELECT pg_advisory_xact_lock(5282440815046917);\n";

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
        .replace("{key}", &names.object("key"))
        .replace("{assert}", &names.object("assert"))
        .replace("{turn}", &names.object("turn"))
        .replace("{turns}", &names.object("turns"))
        .replace("{turns_planned}", &names.object("turns_planned"))
        .replace("{examine}", &names.object("examine"))
        .replace("{assert_version}", &ASSERT.to_string())
        .replace("{format}", &FORMAT.to_string())
}

/// The least rights that a role needs to use the tables once they are there, and to assert terms.
/// An application's role that does nothing else needs the first and the last.
pub(crate) fn grants(options: &PostgresOptions) -> String {
    let tables = table_grants(options);
    if options.access == Access::Look {
        return tables;
    }
    let (assert, role) = (options.names.object("assert"), quoted(&options.user()));
    format!("{tables}GRANT EXECUTE ON FUNCTION {assert}(text, text, bigint) TO {role};\n")
}

/// Tables of a former version may be without the function.
fn table_grants(options: &PostgresOptions) -> String {
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
            table_grants(options)
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

/// What the tables say about themselves, and whether this role may add to them: their owner may,
/// so that a function with its owner's rights can do what it is for.
async fn check_format(client: &Client, options: &PostgresOptions) -> Result<(), StoreError> {
    let Names { meta, records, .. } = &options.names;
    let sql = format!(
        "SELECT (SELECT value FROM {meta} WHERE name = 'format'), \
         (SELECT value FROM {meta} WHERE name = 'assert'), \
         pg_has_role(relowner, 'USAGE') AND has_schema_privilege(relnamespace, 'CREATE') \
         FROM pg_class WHERE oid = to_regclass($1)"
    );
    let rows = client.query_typed(&sql, &[(records, Type::TEXT)]).await;
    let rows = rows.map_err(|error| error::translate(options, &error, Sent::Nothing).error)?;
    let row = rows.first();
    let format = row.and_then(|row| row.try_get::<_, i32>(0).ok());
    match format {
        Some(FORMAT) => {}
        Some(newer) if newer > FORMAT => {
            return Err(StoreError::rejected(format!(
                "{}: the tables have format {newer}, made by a newer version of incumbent than \
                 this one, which knows format {FORMAT}. Upgrade this program, or choose another \
                 prefix= or schema=",
                options.server()
            )));
        }
        found => {
            return Err(StoreError::rejected(format!(
                "{}: the table {meta} says format {}, which no version of incumbent wrote. Choose \
                 another prefix= or schema=",
                options.server(),
                found.map_or("nothing".to_owned(), |format| format.to_string())
            )));
        }
    }
    let assert = row.and_then(|row| row.try_get::<_, i32>(1).ok());
    let may = row.is_some_and(|row| row.try_get(2).unwrap_or(false));
    if may && options.access != Access::Look && assert.is_none_or(|version| version < ASSERT) {
        let text = filled(options, &format!("{TURN}{}", include_str!("assert.sql")));
        // Without it everything works but the fence's function, as before there was one.
        let _ = client.batch_execute(&text).await;
    }
    Ok(())
}
