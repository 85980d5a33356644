use std::time::Duration;

use incumbent_proving::store::assert_refused;
use tokio_postgres::config::TargetSessionAttrs;

use super::parse;
use crate::options::{Pooler, PostgresOptions, TlsMode};
use incumbent_store_common::Secret;

fn read(url: &str) -> PostgresOptions {
    parse(url, &|_| None).expect(url)
}

#[test]
fn everything_in_a_url_is_read() {
    let options = read(
        "postgresql://me:s%40cret@db.example:5433/app?sslmode=verify-full&sslrootcert=%2Fca.pem\
         &sslcert=c.pem&sslkey=k.pem&connect_timeout=7&application_name=billing\
         &options=-c%20work_mem%3D64kB&schema=jobs&prefix=x_&lock_timeout=250\
         &statement_timeout=4000&pooler=yes&target_session_attrs=primary",
    );
    assert_eq!(options.server(), "PostgreSQL db.example:5433/app");
    assert_eq!(options.names.records, "\"jobs\".\"x_records\"");
    assert_eq!(options.config.get_password(), Some(&b"s@cret"[..]));
    assert_eq!(options.config.get_options(), Some("-c work_mem=64kB"));
    assert_eq!(options.config.get_application_name(), Some("billing"));
    assert_eq!(options.tls.mode, TlsMode::VerifyFull);
    assert_eq!(options.tls.files.authorities, Some("/ca.pem".into()));
    assert_eq!(options.connect_timeout, Duration::from_secs(7));
    assert_eq!(options.lock_timeout, Duration::from_millis(250));
    assert_eq!(options.statement_timeout, Duration::from_secs(4));
    assert_eq!(options.pooler, Pooler::Yes);
    assert_eq!(options.config.get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
    let shown = format!("{options:?}");
    assert!(!shown.contains("cret") && shown.contains("db.example"), "{shown}");
}

#[test]
fn the_environment_fills_in_what_is_missing() {
    let environment = |name: &str| {
        let value = match name {
            "PGHOST" => "db",
            "PGPORT" => "6000",
            "PGUSER" => "me",
            "PGPASSWORD" => "secret",
            "PGDATABASE" => "app",
            "PGSSLMODE" => "require",
            _ => return None,
        };
        Some(value.to_owned())
    };
    let options = parse("postgres://", &environment).unwrap();
    assert_eq!(options.server(), "PostgreSQL db:6000/app");
    assert_eq!(options.config.get_password(), Some(&b"secret"[..]));
    assert_eq!(options.tls.mode, TlsMode::Require);
    assert!(!format!("{options:?}").contains("secret"));
    // What the URL says comes first.
    let options = parse("postgres://you:other@here:1/b", &environment).unwrap();
    assert_eq!(options.server(), "PostgreSQL here:1/b");
    assert_eq!(options.config.get_password(), Some(&b"other"[..]));
    let options = parse("postgres://you@here/b?passwordfile=%2Frun%2Fpw", &environment).unwrap();
    assert!(options.password == Secret::File("/run/pw".into()));
    assert_eq!(options.config.get_password(), None);
}

#[test]
fn several_hosts_and_sockets_are_read() {
    let options = read("postgres://me@a:1,b:2/app");
    assert_eq!(options.server(), "PostgreSQL a:1,b:2/app");
    assert_eq!(options.config.get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
    let options = read("postgres://me@/app?host=/var/run/postgresql");
    assert_eq!(options.server(), "PostgreSQL /var/run/postgresql:5432/app");
    let options = read("postgres://me@/app?hostaddr=10.0.0.1");
    assert_eq!(options.server(), "PostgreSQL 10.0.0.1:5432/app");
}

#[test]
fn what_is_not_understood_is_named_with_the_next_step_and_without_the_password() {
    for (query, value, step) in [
        ("sslmode=sometimes", "sslmode=sometimes", "verify-full"),
        ("sslmode=verify-full", "sslmode=verify-ca", "sslrootcert=system"),
        ("sslcert=a", "sslcert=", "both"),
        ("schema=a%22b", "schema=\"a\\\"b\"", "letters"),
        ("schema=", "schema=\"\"", "letters"),
        ("prefix=x;drop", "prefix=\"x;drop\"", "letters"),
        ("lock_timeout=soon", "lock_timeout=soon", "lock_timeout=2000"),
        ("lock_timeout=0", "lock_timeout=0", "milliseconds"),
        ("pooler=no", "pooler=no", "detect"),
        ("target_session_attrs=standby", "standby", "primary"),
        ("sslpassword=x", "sslpassword", "without a password"),
        ("prefix=%zz", "prefix", "%25"),
        ("color=red", "color", "schema, prefix"),
        ("pasword=hunter2", "pasword", "passwordfile="),
        ("keepalives_idle=x", "keepalives_idle", "postgres://user@host/database"),
    ] {
        let url = format!("postgres://me:hunter2@db/app?{query}");
        assert_refused(&[(&url, value, step)], |url| parse(url, &|_| None));
    }
    for url in ["mysql://me:hunter2@db/app", "host=db password=hunter2", "postgres:me:hunter2@db"] {
        assert_refused(&[(url, "", "postgres://")], |url| parse(url, &|_| None));
    }
}
