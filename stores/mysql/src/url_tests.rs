use std::time::Duration;

use incumbent_proving::store::assert_refused;

use super::parse;
use crate::options::{MysqlOptions, SslMode};
use incumbent_store_common::Secret;

fn read(url: &str) -> MysqlOptions {
    parse(url, &|_| None).expect(url)
}

#[test]
fn everything_in_a_url_is_read() {
    let options = read(
        "mariadb://me%40x:s%40cret@db.example:3307/app%2Db?ssl-mode=verify_identity\
         &ssl-ca=%2Fca.pem&ssl-cert=c.pem&ssl-key=k.pem&ssl-hostname=other&prefix=x_\
         &connect_timeout=700&timeout=4000",
    );
    assert_eq!(options.server(), "MySQL db.example:3307/app-b");
    assert_eq!(options.user, "me@x");
    assert!(options.password == Secret::Given("s@cret".to_owned()));
    assert_eq!(options.names.records, "`x_records`");
    assert_eq!(options.tls.mode, SslMode::VerifyIdentity);
    assert_eq!(options.tls.files.authorities, Some("/ca.pem".into()));
    assert_eq!(options.tls.hostname.as_deref(), Some("other"));
    assert_eq!(options.connect_timeout, Duration::from_millis(700));
    assert_eq!(options.timeout, Duration::from_secs(4));
    let shown = format!("{options:?}");
    assert!(!shown.contains("cret") && shown.contains("db.example"), "{shown}");
}

#[test]
fn what_is_left_open_has_its_usual_value() {
    let options = read("mysql://db/app");
    assert_eq!(options.server(), "MySQL db:3306/app");
    assert_eq!(options.user, "root");
    assert!(options.password == Secret::None);
    assert_eq!(options.tls.mode, SslMode::Preferred);
    assert_eq!(read("mysql://me@[::1]:1/app").server(), "MySQL [::1]:1/app");
    assert_eq!(read("mysql://10.0.0.1/app").server(), "MySQL 10.0.0.1:3306/app");
    let options = read("mysql://localhost/app?socket=%2Frun%2Fmysqld.sock");
    assert_eq!(options.server(), "MySQL /run/mysqld.sock/app");
}

#[test]
fn a_password_comes_from_the_url_a_file_or_the_environment() {
    let environment = |name: &str| match name {
        "MYSQL_PWD" => Some("secret".to_owned()),
        "USER" => Some("me".to_owned()),
        _ => None,
    };
    let options = parse("mysql://db/app", &environment).unwrap();
    assert_eq!(options.user, "me");
    assert!(options.password == Secret::Given("secret".to_owned()));
    assert!(!format!("{options:?}").contains("secret"));
    let options = parse("mysql://you:other@db/app", &environment).unwrap();
    assert!(options.password == Secret::Given("other".to_owned()));
    let options = parse("mysql://you@db/app?passwordfile=%2Frun%2Fpw", &environment).unwrap();
    assert!(options.password == Secret::File("/run/pw".into()));
}

#[test]
fn what_is_not_understood_is_named_with_the_next_step() {
    let cases = [
        ("postgres://me:hunter2@db/app", "postgres", "mysql://user@host/database"),
        ("mysql://me:hunter2@db", "names no database", "mysql://user@host/database"),
        ("mysql://me:hunter2@db:port/app", "port", "mysql://user@host/database"),
        ("mysql://me:hunter2%zz@db/app", "the password", "%25"),
        ("mysql://db/app?prefix=1x", "1x", "letters"),
        ("mysql://db/app?prefix=x;drop", "x;drop", "letters"),
        ("mysql://db/app?ssl-mode=maybe", "maybe", "VERIFY_CA"),
        ("mysql://db/app?ssl-cert=a", "ssl-cert", "both or neither"),
        ("mysql://db/app?ssl-mode=DISABLED&ssl-ca=a", "DISABLED", "VERIFY_IDENTITY"),
        ("mysql://db/app?timeout=soon", "timeout=soon", "timeout=2000"),
        ("mysql://db/app?timeout=0", "timeout=0", "milliseconds"),
        ("mysql://db/app?pasword=hunter2", "pasword", "passwordfile"),
        ("mysql://db/app?timeout=1&timeout=2", "timeout", "keep one"),
        ("mysql://me:hunter2@db/app?passwordfile=a", "passwordfile=", "keep one"),
    ];
    assert_refused(&cases, |url| parse(url, &|_| None));
}
