use std::time::Duration;

use incumbent_core::store::StoreError;
use incumbent_proving::store::assert_refused;

use crate::options::{Eviction, RedisOptions};
use incumbent_store_common::Secret;

fn parse(url: &str) -> Result<RedisOptions, StoreError> {
    super::parse(url, &|_| None)
}

#[test]
fn servers_are_read_in_every_usual_form() {
    let server = |url: &str| parse(url).unwrap().server();
    assert_eq!(server("redis://localhost"), "Redis localhost:6379/0");
    assert_eq!(server("redis://localhost/"), "Redis localhost:6379/0");
    assert_eq!(server("redis://10.0.0.7:7000/3"), "Redis 10.0.0.7:7000/3");
    assert_eq!(server("redis://[::1]:7000?prefix=a"), "Redis [::1]:7000/0");
}

#[test]
fn all_options_are_read() {
    let url = "redis://me:p%40ss%2F%3F%23@h:1/2?prefix=a:b&connect_timeout=100&timeout=200&wait=1\
               &eviction=allow&hints=off";
    let expected = RedisOptions::new("h", 1)
        .login(Some("me"), "p@ss/?#")
        .database(2)
        .prefix("a:b")
        .connect_timeout(Duration::from_millis(100))
        .timeout(Duration::from_millis(200))
        .wait(1)
        .eviction(Eviction::Allow)
        .hints(false);
    assert_eq!(parse(url).unwrap(), expected);
    assert_eq!(parse("redis://h:1?").unwrap(), RedisOptions::new("h", 1));
}

#[test]
fn passwords_come_from_the_url_a_file_or_the_environment() {
    let environment = |name: &str| (name == "REDISCLI_AUTH").then(|| "from env".to_owned());
    let password = |url: &str| super::parse(url, &environment).unwrap().password;
    assert_eq!(password("redis://:secret@h"), Secret::Given("secret".to_owned()));
    assert_eq!(password("redis://h?passwordfile=/a%20b"), Secret::File("/a b".into()));
    assert_eq!(password("redis://h"), Secret::Given("from env".to_owned()));
    assert_eq!(password("redis://me@h"), Secret::Given("from env".to_owned()));
    assert_eq!(parse("redis://h").unwrap().password, Secret::None);
}

#[cfg(feature = "tls")]
#[test]
fn certificates_are_read() {
    let options = parse("rediss://h?cafile=/ca&certfile=/cert&keyfile=/key").unwrap();
    let tls = options.tls.unwrap();
    assert_eq!(tls.authorities, Some("/ca".into()));
    assert_eq!(tls.identity, Some(("/cert".into(), "/key".into())));
}

#[test]
fn what_is_not_understood_is_named_with_the_next_step() {
    let cases = [
        ("postgres://a", "\"postgres\"", "redis://host:6379"),
        ("redis:h", "\"redis\"", "redis://host:6379"),
        ("redis://", "", "redis://"),
        ("redis:///0", "", "redis://"),
        ("redis://h:port", "port", "redis://"),
        ("redis://h/zero", "database", "redis://host:6379/2"),
        ("redis://h/-1", "database", "redis://host:6379/2"),
        ("redis://h#x", "#", "%23"),
        ("redis://h?prefix={a}", "{a}", "letters"),
        ("redis://h?prefix=", "\"\"", "letters"),
        ("redis://h?timeout=soon", "timeout=soon", "timeout=2000"),
        ("redis://h?timeout=0", "timeout=0", "milliseconds"),
        ("redis://h?wait=all", "wait=all", "wait=1"),
        ("redis://h?eviction=yes", "eviction=yes", "refuse or allow"),
        ("redis://h?hints=", "hints=", "push or off"),
        ("redis://h?color=red", "color=", "prefix"),
        ("redis://h?wait=1&wait=2", "wait=", "keep one"),
        ("redis://h?cafile=/x", "cafile=", "rediss://"),
        ("redis://me@h", "user", "REDISCLI_AUTH"),
        ("redis://:a@h?passwordfile=/x", "passwordfile=", "keep one"),
    ];
    assert_refused(&cases, parse);
}

#[test]
fn passwords_are_never_shown() {
    for url in [
        "redis://me:s3cret@h:1/2",
        "redis://me:s3cret@h:port",
        "redis://me:s3/cret@h",
        "redis://me:s3cret@h/x",
        "redis://me:s3cret@h?color=s3cret",
        "redis://me:s3cret@h#",
        "redis://me:s3cret@",
        "redis://me:s3%ff@h",
        "rdis://me:s3cret@h",
    ] {
        let shown = match parse(url) {
            Ok(options) => format!("{options:?} {} {}", options.server(), options.acl()),
            Err(error) => format!("{error} {error:?}"),
        };
        assert!(!shown.contains("s3"), "{url}: {shown}");
    }
}
