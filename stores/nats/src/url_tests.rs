use std::time::Duration;

use super::*;

fn bare(text: &str) -> Result<NatsOptions, StoreError> {
    parse(text, &|_| None)
}

#[test]
fn a_url_names_servers_and_bucket() {
    let options = bare("nats://a,b:4333,[::1]:4444/?bucket=x&replicas=3&timeout=900").unwrap();
    assert_eq!(options.servers, ["a:4222", "b:4333", "[::1]:4444"]);
    assert_eq!((options.bucket.as_str(), options.replicas), ("x", 3));
    assert_eq!(options.timeout, Duration::from_millis(900));
    assert!(!options.tls && options.hints && options.login == Login::None);
    assert!(bare("tls://a").unwrap().tls);
}

#[test]
fn logins_come_from_the_url_a_file_or_the_environment() {
    let given = |text: &str| Secret::Given(text.to_owned());
    let user = |secret| Login::User("me".to_owned(), secret);
    assert_eq!(bare("nats://me:p%40ss@a").unwrap().login, user(given("p@ss")));
    let file = Secret::File("/f".into());
    assert_eq!(bare("nats://me@a?passwordfile=/f").unwrap().login, user(file));
    assert_eq!(bare("nats://secret@a").unwrap().login, Login::Token(given("secret")));
    let environment = |name: &str| (name == "NATS_PASSWORD").then(|| "env".to_owned());
    assert_eq!(parse("nats://me@a", &environment).unwrap().login, user(given("env")));
    let environment = |name: &str| (name == "NATS_CREDS").then(|| "/c".to_owned());
    let creds = Login::Credentials("/c".into());
    assert_eq!(parse("nats://a", &environment).unwrap().login, creds);
    assert_eq!(bare("nats://a?creds=/c").unwrap().login, creds);
    assert_eq!(bare("nats://a?nkey=/k").unwrap().login, Login::Key("/k".into()));
}

#[test]
fn what_is_wrong_is_named_and_secrets_are_not() {
    let wrong = [
        ("http://me:hush@a", "not the URL of NATS"),
        ("nats://", "no host"),
        ("nats://me:hush@", "no host"),
        ("nats://me:hush@a:port", "port"),
        ("nats://me:hush@a/b", "may follow the host"),
        ("nats://me:hush@a#x", "#"),
        ("nats://me:hush@a?passwordfile=/f", "keep one"),
        ("nats://me:hush@a?creds=/f", "several logins"),
        ("nats://:hush@a", "no user"),
        ("nats://me:hush@a?bucket=a.b", "bucket"),
        ("nats://me:hush@a?replicas=0", "replicas"),
        ("nats://me:hush@a?replicas=1&replicas=1", "twice"),
        ("nats://me:hush@a?timeout=0", "milliseconds"),
        ("nats://me:hush@a?inbox=a..b", "inbox"),
        ("nats://me:hush@a?hints=maybe", "push or off"),
        ("nats://me:hush@a?tls_first=maybe", "true or false"),
        ("nats://me:hush@a?certfile=/c", "belong together"),
        ("nats://a?secret=hush", "but no \"secret\""),
        ("hush", "not the URL of NATS"),
    ];
    for (url, why) in wrong {
        let said = bare(url).unwrap_err().to_string();
        assert!(said.contains(why), "{url}: {said}");
        assert!(url == "hush" || !said.contains("hush"), "{url}: {said}");
    }
}

#[test]
fn debug_shows_no_secret() {
    for url in ["nats://me:hush@a", "nats://hush@a"] {
        let shown = format!("{:?}", bare(url).unwrap());
        assert!(!shown.contains("hush"), "{shown}");
    }
}
