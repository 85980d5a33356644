//! Which URLs are understood, and what is said about the others.

use std::time::Duration;

use incumbent_proving::store::assert_refused;

use super::parse;
use crate::options::EtcdOptions;
use incumbent_store_common::Secret;

fn read(url: &str) -> EtcdOptions {
    parse(url, &|_| None).unwrap_or_else(|error| panic!("{url}: {error}"))
}

fn places(url: &str) -> Vec<String> {
    read(url).endpoints.iter().map(ToString::to_string).collect()
}

#[test]
fn endpoints_are_read_in_every_usual_form() {
    assert_eq!(places("etcd://localhost"), ["localhost:2379"]);
    assert_eq!(places("etcd://localhost:4001/"), ["localhost:4001"]);
    assert_eq!(places("etcd://a:1,b,10.0.0.3:3/p"), ["a:1", "b:2379", "10.0.0.3:3"]);
    assert_eq!(places("etcd://[::1]:5,[fe80::1]/p"), ["[::1]:5", "[fe80::1]:2379"]);
}

#[test]
fn the_prefix_starts_with_a_slash_and_ends_without() {
    for (url, prefix) in [
        ("etcd://h", "/incumbent"),
        ("etcd://h/", "/incumbent"),
        ("etcd://h?timeout=100", "/incumbent"),
        ("etcd://h/a", "/a"),
        ("etcd://h/a/b/", "/a/b"),
        ("etcd://h/a%20%3F%c3%a9", "/a ?é"),
    ] {
        assert_eq!(read(url).prefix(), prefix, "{url}");
    }
}

#[test]
fn a_password_comes_from_the_file_the_url_or_the_environment() {
    let password = |url: &str| {
        let variable = |name: &str| (name == "ETCDCTL_PASSWORD").then(|| "env".to_owned());
        let user = parse(url, &variable).unwrap().user.unwrap();
        match user.password {
            Secret::None => user.name,
            Secret::Given(password) => format!("{} {password}", user.name),
            Secret::File(path) => format!("{} file {}", user.name, path.display()),
        }
    };
    assert_eq!(password("etcd://me@h"), "me env");
    assert_eq!(password("etcd://me:a%40b%2Fc@h"), "me a@b/c");
    assert_eq!(password("etcd://me@h?passwordfile=/run/p"), "me file /run/p");
    assert_eq!(read("etcd://h").user.map(|user| user.name), None);
}

#[test]
fn all_parameters_are_read() {
    let url = "etcds://h?cafile=/a&certfile=/b&keyfile=/c&timeout=1500&connect_timeout=300";
    let options = read(url);
    let tls = options.tls.unwrap();
    assert_eq!(tls.authorities, Some("/a".into()));
    assert_eq!(tls.identity, Some(("/b".into(), "/c".into())));
    assert_eq!(options.timeout, Duration::from_millis(1500));
    assert_eq!(options.connect_timeout, Duration::from_millis(300));
}

#[test]
fn what_is_not_understood_is_named_with_the_next_step() {
    let long = format!("etcd://h/{}", "x".repeat(201));
    let cases = [
        ("redis://h", "redis", "etcd://host:2379"),
        ("etcd://", "no host", "host:2379"),
        ("etcd://h,", "no host", "host:2379"),
        ("etcd://h:", "port", "host:2379"),
        ("etcd://h:x", "port", "host:2379"),
        ("etcd://h:0", "65535", "host:2379"),
        ("etcd://h:70000", "65535", "host:2379"),
        ("etcd://a b", "host", "host:2379"),
        ("etcd://[::1", "host", "brackets"),
        ("etcd://[x]:1", "host", "brackets"),
        ("etcd://[::1]x", "host", "brackets"),
        ("etcd://h/a%zz", "follows the host", "%25"),
        ("etcd://h/a%ff", "follows the host", "UTF-8"),
        ("etcd://h/a%00b", "a\\0b", "control characters"),
        (&long, "xxx", "200"),
        ("etcd://me@h", "\"me\"", "passwordfile=FILE"),
        ("etcd://@h", "user", "leave the @ out"),
        ("etcd://me:x@h?passwordfile=/x", "passwordfile", "keep one"),
        ("etcd://h?passwordfile=/x", "passwordfile", "user@host"),
        ("etcd://h?cafile=/x", "cafile", "etcds://"),
        ("etcds://h?certfile=/x", "certfile", "both or neither"),
        ("etcds://h?cafile=", "cafile", "name a file"),
        ("etcd://h?timeout=soon", "timeout=soon", "timeout=2000"),
        ("etcd://h?timeout=0", "timeout=0", "third of the ttl"),
        ("etcd://h?connect_timeout=60001", "60001", "third of the ttl"),
        ("etcd://h?timeout=1&timeout=2", "timeout", "keep one"),
        ("etcd://h?color=red", "color", "passwordfile"),
        ("etcd://h?password=secret", "password", "passwordfile="),
    ];
    assert_refused(&cases, |url| parse(url, &|_| None));
}

#[test]
fn no_password_is_ever_shown() {
    for url in [
        "etcd://me:secret@h:x",
        "etcd://me:secret%@h",
        "etcd://:secret@h",
        "redis://me:secret@h",
        "etcd://h?password=secret",
        "etcd://me:secret@h?x=secret",
        "etcd://me:secret@h?timeout=1&timeout=2",
    ] {
        let error = parse(url, &|_| None).expect_err(url);
        assert!(!error.message.contains("secret"), "{url}: {error}");
    }
    assert!(!format!("{:?}", read("etcd://me:secret@h")).contains("secret"));
}
