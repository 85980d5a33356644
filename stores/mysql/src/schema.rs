//! Makes the tables, and tells whether they are ours to use.

use std::time::Duration;

use incumbent_core::store::{Access, StoreError};
use incumbent_store_common::Sent;
use mysql_async::Error;

use crate::connection::{Connection, Row, text};
use crate::error::translate;
use crate::names::quoted;
use crate::options::MysqlOptions;

/// The format of the tables that this version reads and writes.
const FORMAT: i64 = 1;

const NO_SUCH_TABLE: u16 = 1146;

const SCHEMA: &str = include_str!("schema.sql");

/// The version of the fence's procedures, which the comment of the second has. The first had none.
const ASSERT_VERSION: u32 = 3;

/// The procedures of the fence. Each ends where a line is nothing but its end.
const ASSERT: &str = include_str!("assert.sql");
const END: &str = "\nEND;\n";

/// All that has to be run once, by a user that may make tables.
pub(crate) fn sql(options: &MysqlOptions) -> String {
    format!("{}\n{}", filled(options, SCHEMA), filled(options, ASSERT))
}

/// The same for the command line of the server, which has to be told where a procedure ends.
pub(crate) fn script(options: &MysqlOptions) -> String {
    let procedures = filled(options, ASSERT).replace(END, "\nEND //\n");
    format!("{}\nDELIMITER //\n{procedures}DELIMITER ;\n", filled(options, SCHEMA))
}

fn filled(options: &MysqlOptions, text: &str) -> String {
    let names = &options.names;
    text.replace("{records}", &names.records)
        .replace("{meta}", &names.meta)
        .replace("{leases}", &names.object("leases"))
        .replace("{members}", &names.object("members"))
        .replace("{key}", &names.object("key"))
        .replace("{assert}", &names.object("assert"))
        .replace("{assert_version}", &ASSERT_VERSION.to_string())
        .replace("{format}", &FORMAT.to_string())
}

/// The least rights that a user needs to use the tables once they are there.
pub(crate) fn grants(options: &MysqlOptions) -> String {
    let (names, database) = (&options.names, quoted(&options.database));
    let user = quoted(&options.user);
    let rights = match options.access {
        Access::Look => "SELECT",
        _ => "SELECT, INSERT, UPDATE, DELETE",
    };
    let tables = format!(
        "GRANT {rights} ON {database}.{} TO {user}@`%`;\n\
         GRANT SELECT ON {database}.{} TO {user}@`%`;\n",
        names.records, names.meta
    );
    if options.access == Access::Look {
        return tables;
    }
    // All that an application's user needs that only asserts terms.
    let assert = names.object("assert");
    format!("{tables}GRANT EXECUTE ON PROCEDURE {database}.{assert} TO {user}@`%`;\n")
}

/// The statement that finds what is there, as far as this user may see it.
pub(crate) fn question(options: &MysqlOptions) -> String {
    let names = ["records", "meta", "leases", "members"]
        .map(|name| format!("'{}{name}'", options.names.prefix()));
    format!(
        "SELECT CONVERT(TABLE_NAME USING utf8mb4), CONVERT(ENGINE USING utf8mb4) FROM \
         information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() \
         AND TABLE_NAME IN ({}) UNION ALL SELECT CONVERT(ROUTINE_NAME USING utf8mb4), \
         CONVERT(ROUTINE_COMMENT USING utf8mb4) FROM \
         information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE() \
         AND ROUTINE_NAME = '{}assert'",
        names.join(", "),
        options.names.prefix()
    )
}

/// The statement that finds the format of the tables. It fails where they are missing.
pub(crate) fn format_question(options: &MysqlOptions) -> String {
    format!("SELECT value FROM {} WHERE name = 'format'", options.names.meta)
}

/// What is there before anything is made.
pub(crate) struct Present {
    /// Names after the prefix, with the engines of tables and the comment of the procedure.
    pub(crate) objects: Vec<(String, Option<String>)>,
    /// What [`format_question`] found, if there was something to ask.
    pub(crate) format: Option<Vec<Row>>,
}

impl Present {
    fn has(&self, name: &str) -> bool {
        self.objects.iter().any(|(known, _)| known.eq_ignore_ascii_case(name))
    }

    /// Whether the procedures are there, of this version or a later one.
    fn has_procedures(&self) -> bool {
        let found = self.objects.iter().find(|(known, _)| known.eq_ignore_ascii_case("assert"));
        let comment = found.and_then(|(_, comment)| comment.as_deref());
        let version = comment.and_then(|it| it.strip_prefix("version ")).map(str::parse::<u32>);
        version.and_then(Result::ok).is_some_and(|version| version >= ASSERT_VERSION)
    }
}

/// Makes what is missing and checks what is there. False if there are no tables, and they are only
/// to be looked at.
pub(crate) async fn prepare(
    connection: &mut Connection,
    options: &MysqlOptions,
    present: &Present,
) -> Result<bool, StoreError> {
    let tables = present.has("records") && present.has("meta");
    let looks = options.access == Access::Look;
    if looks && !tables {
        // A user sees only tables on which it has a right, so that only asking tells whether they
        // are missing or denied.
        return match connection.run(&format_question(options)).await {
            Ok(rows) => check_format(options, &rows).map(|()| true),
            Err(Error::Server(said)) if said.code == NO_SUCH_TABLE => Ok(false),
            Err(error) => Err(translate(options, &error, Sent::Nothing).error),
        };
    }
    if !tables {
        make_tables(connection, options).await?;
    }
    let views = tables && present.has("leases") && present.has("members");
    if !looks && !views {
        make_views(connection, options).await;
    }
    if !looks && !present.has_procedures() {
        make_procedures(connection, options, present.has("assert")).await;
    }
    let other = present.objects.iter().find_map(|(name, engine)| {
        let engine = engine.as_deref().filter(|_| name.eq_ignore_ascii_case("records"))?;
        (!engine.eq_ignore_ascii_case("InnoDB")).then_some(engine)
    });
    if let Some(engine) = other {
        let records = &options.names.records;
        return Err(StoreError::rejected(format!(
            "{}: the table {records} has the engine {engine}, which loses records or can't \
             compare and swap. Run: ALTER TABLE {records} ENGINE = InnoDB;",
            options.server()
        )));
    }
    let mut rows = present.format.clone().filter(|_| tables).unwrap_or_default();
    // Whoever makes the tables writes their format a moment later.
    for patience in [0, 10, 50, 200, 500] {
        if !rows.is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(patience)).await;
        let asked = connection.run(&format_question(options)).await;
        rows = asked.map_err(|error| translate(options, &error, Sent::Nothing).error)?;
    }
    check_format(options, &rows).map(|()| true)
}

/// The statements of the schema, one by one: views apart from all else.
fn statements(options: &MysqlOptions, views: bool) -> Vec<String> {
    let text = without_comments(&filled(options, SCHEMA));
    let statements = text.split(";\n").map(|statement| statement.trim().trim_end_matches(';'));
    statements
        .filter(|statement| !statement.is_empty() && statement.contains(" VIEW ") == views)
        .map(str::to_owned)
        .collect()
}

/// The procedures, one by one, in place of a former version's if there is one. MariaDB replaces in one
/// step and keeps the grants, to who has the right to alter them too; MySQL can't, and refuses, so
/// that there the former ones stay until they are dropped. Servers before MySQL 8.0.29 don't know IF
/// NOT EXISTS here.
fn procedures(options: &MysqlOptions, replace: bool) -> Vec<String> {
    let create =
        if replace { "CREATE /*M!100000 OR REPLACE */ PROCEDURE" } else { "CREATE PROCEDURE" };
    let text = without_comments(&filled(options, ASSERT)) + "\n";
    let text = text.replace("CREATE PROCEDURE IF NOT EXISTS", create);
    let bodies = text.split(END).map(str::trim).filter(|body| !body.is_empty());
    bodies.map(|body| format!("{body}\nEND")).collect()
}

fn without_comments(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with("--"));
    lines.collect::<Vec<_>>().join("\n")
}

async fn make_tables(
    connection: &mut Connection,
    options: &MysqlOptions,
) -> Result<(), StoreError> {
    for statement in statements(options, false) {
        let Err(error) = connection.run(&statement).await else { continue };
        if let Error::Server(said) = &error
            && matches!(said.code, 1044 | 1142 | 1227)
        {
            return Err(StoreError::rejected(format!(
                "{}: the tables {}… are missing and the user {} may not make them ({}). Let a \
                 user that may run this once, in the database {}:\n{}\n{}",
                options.server(),
                options.names.prefix(),
                options.user,
                said.message,
                options.database,
                sql(options),
                grants(options)
            )));
        }
        return Err(translate(options, &error, Sent::Nothing).error);
    }
    Ok(())
}

/// The views are for people alone, so a user that may not make them goes without.
async fn make_views(connection: &mut Connection, options: &MysqlOptions) {
    for statement in statements(options, true) {
        let _ = connection.run(&statement).await;
    }
}

/// Without the procedures everything works but the fence's, so a user that may not make them goes
/// without. They may also be there already, and not be shown to this user, or be in use for longer
/// than this session waits: then whoever connects next replaces them.
async fn make_procedures(connection: &mut Connection, options: &MysqlOptions, replace: bool) {
    for statement in procedures(options, replace) {
        let _ = connection.run(&statement).await;
    }
}

fn check_format(options: &MysqlOptions, rows: &[Row]) -> Result<(), StoreError> {
    let meta = &options.names.meta;
    let format = rows.first().and_then(|row| text(row, 0)).and_then(|value| value.parse().ok());
    match format {
        Some(FORMAT) => Ok(()),
        Some(newer) if newer > FORMAT => Err(StoreError::rejected(format!(
            "{}: the tables have format {newer}, made by a newer version of incumbent than this \
             one, which knows format {FORMAT}. Upgrade this program, or choose another prefix=",
            options.server()
        ))),
        found => Err(StoreError::rejected(format!(
            "{}: the table {meta} says format {}, which no version of incumbent wrote. Choose \
             another prefix=",
            options.server(),
            found.map_or("nothing".to_owned(), |format: i64| format.to_string())
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_is_cut_at_its_statements() {
        let options = MysqlOptions::parse("mysql://me@db/app?prefix=x_").unwrap();
        let tables = statements(&options, false);
        assert_eq!(tables.len(), 3, "{tables:#?}");
        assert!(tables.iter().all(|statement| statement.contains("`x_")), "{tables:#?}");
        let views = statements(&options, true);
        assert_eq!(views.len(), 2, "{views:#?}");
        assert!(!sql(&options).contains('{'), "{}", sql(&options));
        let replaced = procedures(&options, true).join("");
        assert_eq!(replaced.matches("OR REPLACE */ PROCEDURE `x_").count(), 2, "{replaced}");
        let procedures = procedures(&options, false);
        assert_eq!(procedures.len(), 2, "{procedures:#?}");
        for procedure in &procedures {
            assert!(procedure.starts_with("CREATE PROCEDURE `x_"), "{procedure}");
            assert!(procedure.ends_with("\nEND"), "{procedure}");
        }
        assert_eq!(script(&options).matches("\nEND //\n").count(), 2, "{}", script(&options));
    }

    #[test]
    fn rights_name_the_user_whatever_it_is() {
        let options = MysqlOptions::parse("mysql://o%27brien@db/a%60b").unwrap();
        let grants = grants(&options);
        assert!(grants.contains("`a``b`.`incumbent_records` TO `o'brien`@`%`"), "{grants}");
    }
}
