//! Looking needs the right to read and no more, and makes nothing (O36).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests")]

mod common;

use std::path::Path;
use std::process::{Command, Stdio};

use common::{Ran, Trial, program};
use incumbent::family;

/// Every command that only looks and ends by itself.
const LOOKS: &[&[&str]] = &[
    &["status"],
    &["status", "--json"],
    &["leader", "scheduler"],
    &["history"],
    &["history", "scheduler", "--json"],
    &["duties"],
    &["explain", "shard/1"],
    &["plan", "--dry-run"],
    &["rollout", "status"],
    &["intents"],
    &["store", "repair"],
];

/// A cluster with a leader and a duty.
fn lively(trial: &Trial) -> (incumbent::Node, incumbent::Leadership, incumbent::Serving) {
    let node = trial.node("billing-1");
    let leadership = trial.elected(&mut node.campaign("scheduler").unwrap());
    let serving = trial.serving(&node, family("shard").duties(["1"]));
    trial.until_named(&node);
    let standing = || trial.run(&["duties", "--json"]).stdout.contains("\"shard/1\"");
    common::eventually("the duty is known", standing);
    (node, leadership, serving)
}

/// Runs every look, and follows the cluster for a line.
fn look_at_all(command: impl Fn(&[&str]) -> Command) {
    for look in LOOKS {
        Ran::of(command(look)).succeeds();
    }
    Ran::of(command(&["status"])).says(&["billing-1", "scheduler", "shard/1"]);
    let mut watch = command(&["watch", "--json"]);
    let mut watch = watch.stdout(Stdio::piped()).spawn().unwrap();
    let first = common::first_line(&mut watch);
    watch.kill().unwrap();
    watch.wait().unwrap();
    assert!(first.contains("\"state\"") && first.contains("billing-1"), "{first}");
}

#[test]
fn o36_a_postgres_role_with_select_alone_can_look() {
    let trial = Trial::on_postgres();
    let lively = lively(&trial);
    let postgres = trial.postgres.as_ref().unwrap();
    let (schema, role) = (&postgres.schema, format!("looks_{}", postgres.schema));
    postgres.sql(&format!(
        "CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA {schema} TO {role}; \
         GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role}"
    ));
    let url = trial.url().replacen("postgres@", &format!("{role}@"), 1);
    let command = |arguments: &[&str]| {
        let mut command = trial.command(arguments);
        command.env("INCUMBENT_STORE", &url);
        command
    };
    look_at_all(command);
    // Who wants a change is told what is missing.
    let refused = Ran::of(command(&["resign", "scheduler"])).ends_with(69);
    refused.complains(&["may not read and write", "GRANT SELECT, INSERT"]);
    // Without a right to read, looking says what would be enough.
    postgres.sql(&format!("REVOKE SELECT ON ALL TABLES IN SCHEMA {schema} FROM {role}"));
    let refused = Ran::of(command(&["status"])).ends_with(69);
    let refused = refused.complains(&["GRANT SELECT ON"]);
    assert!(!refused.stderr.contains("INSERT"), "{refused:#?}");
    drop(lively);
    postgres.sql(&format!("DROP OWNED BY {role}; DROP ROLE {role}"));
}

#[test]
fn o36_looking_at_postgres_makes_nothing() {
    let trial = Trial::on_postgres();
    let postgres = trial.postgres.as_ref().unwrap();
    let (schema, other) = (&postgres.schema, format!("{}_other", postgres.schema));
    let url = trial.url().replace(schema, &other);
    let command = |arguments: &[&str]| {
        let mut command = trial.command(arguments);
        command.env("INCUMBENT_STORE", &url);
        command
    };
    Ran::of(command(&["status"])).succeeds().says(&["empty", "nobody has ever joined"]);
    Ran::of(command(&["leader", "scheduler"])).ends_with(1);
    let made = format!("SELECT nspname FROM pg_namespace WHERE nspname = '{other}'");
    assert_eq!(postgres.sql(&made), Vec::<String>::new());
}

#[test]
fn o36_a_file_that_can_only_be_read_can_be_looked_at() {
    let Some(nobody) = Nobody::new() else {
        panic!("this test gives its rights away, and needs to be root for that")
    };
    let trial = Trial::with_store();
    let lively = lively(&trial);
    let directory = trial.path();
    open_to_all(directory);
    let command = |arguments: &[&str]| nobody.command(&trial, arguments);
    // While nodes have it open, its log is there.
    look_at_all(command);
    let refused = Ran::of(command(&["resign", "scheduler"])).ends_with(69);
    refused.complains(&["can only be read"]);
    drop(lively);
    let (log, path) = (directory.join("trial.db-wal"), directory.join("trial.db"));
    common::eventually("the last one closes the file", || !log.exists());
    // Nobody has it open: nothing is made by looking, and all is there to be seen.
    let before = (std::fs::read(&path).unwrap(), names(directory));
    Ran::of(command(&["history", "scheduler"])).succeeds().says(&["billing-1"]);
    let with_rights = trial.run(&["status"]).succeeds();
    with_rights.says(&["scheduler"]);
    assert_eq!((std::fs::read(&path).unwrap(), names(directory)), before);
}

#[test]
fn o36_looking_at_a_file_makes_neither_file_nor_tables() {
    let trial = Trial::new();
    // The default store, where nobody was yet.
    let mut command = program(&["status"]);
    command.env("XDG_STATE_HOME", trial.path()).env("HOME", trial.path());
    Ran::of(command).succeeds().says(&["empty"]);
    assert_eq!(names(trial.path()), Vec::<String>::new());
    // A file of the application's, without our tables.
    let path = trial.path().join("trial.db");
    let application = rusqlite::Connection::open(&path).unwrap();
    application.execute_batch("CREATE TABLE theirs (x)").unwrap();
    trial.run(&["status"]).succeeds().says(&["empty"]);
    let tables = "SELECT count(*) FROM sqlite_schema";
    let count: i64 = application.query_row(tables, [], |row| row.get(0)).unwrap();
    let mode: String = application.query_row("PRAGMA journal_mode", [], |row| row.get(0)).unwrap();
    assert_eq!((count, mode.as_str()), (1, "delete"));
    // One that was named and isn't there is a mistake.
    std::fs::remove_file(&path).unwrap();
    trial.run(&["status"]).ends_with(69).complains(&["there is no file", "store init"]);
    assert_eq!(names(trial.path()), Vec::<String>::new());
}

fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}

fn open_to_all(directory: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let mode = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(directory, 0o755);
    for name in names(directory) {
        mode(&directory.join(name), 0o644);
    }
}

/// A user without rights, and a copy of the program that it may run.
struct Nobody {
    directory: tempfile::TempDir,
}

impl Nobody {
    const ID: u32 = 65534;

    fn new() -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            return None;
        }
        let directory = tempfile::tempdir().unwrap();
        std::fs::copy(env!("CARGO_BIN_EXE_incumbent"), directory.path().join("incumbent")).unwrap();
        open_to_all(directory.path());
        use std::os::unix::fs::PermissionsExt;
        let program = directory.path().join("incumbent");
        std::fs::set_permissions(program, std::fs::Permissions::from_mode(0o755)).unwrap();
        Some(Self { directory })
    }

    fn command(&self, trial: &Trial, arguments: &[&str]) -> Command {
        use std::os::unix::process::CommandExt;
        let mut command = Command::new(self.directory.path().join("incumbent"));
        command.args(arguments).uid(Self::ID).gid(Self::ID);
        command.env("INCUMBENT_STORE", trial.url()).env("INCUMBENT_CLUSTER", "trial");
        command.env("INCUMBENT_CONFIG", "/dev/null").current_dir("/");
        command
    }
}
