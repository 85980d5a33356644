use super::*;

#[test]
fn what_may_be_seen_is_shown_and_no_more() {
    for (url, expected) in [
        ("sqlite:app.db", "sqlite:app.db"),
        ("sqlite:///a@b.db?busy=5", "sqlite:///a@b.db?busy=5"),
        ("sqlite://me:hunter2@db/app", "sqlite://…"),
        ("sqlite:app.db?key=hunter2", "sqlite:app.db?key=…"),
        ("memory:x", "memory:x"),
        ("app.db", "app.db"),
        ("host=db password=hunter2", "…"),
        ("hunter2@db:5432/app", "…"),
        ("postgres://db/app", "postgres://db/app"),
        ("postgres://me@db/app?sslmode=require", "postgres://…@db/app?sslmode=require"),
        ("postgres://me:hunter2@db/app", "postgres://…@db/app"),
        ("postgres://me:hun@ter2@db/app", "postgres://…@db/app"),
        ("postgres://me:hun/ter2@db/app", "postgres://…"),
        ("postgres://me:hun?ter2@db/app", "postgres://…"),
        ("postgres://me:hun#ter2@db/app", "postgres://…"),
        ("postgres://me:hunter2", "postgres://…"),
        ("postgres://me:1234567/app", "postgres://…"),
        ("postgres:me:hunter2@db", "postgres:…"),
        ("postgres://db/app?password=hun&ter2=x", "postgres://db/app?password=…"),
        ("postgres://db/app?pasword=hunter2", "postgres://db/app?pasword=…"),
        ("postgres://db?prefix=x_&hunter2", "postgres://db?prefix=x_&…"),
        ("postgres://%2Frun%2Fpg/app", "postgres://%2Frun%2Fpg/app"),
        ("postgres://a:1,[::1]:2/app", "postgres://a:1,[::1]:2/app"),
        ("s3://b/p?region=eu&secret_access_key=hunter2", "s3://b/p?region=eu&secret_access_key=…"),
        ("s3://b?endpoint=http%3A%2F%2Fme:hunter2%40h", "s3://b?endpoint=…"),
        ("mongo://me:hunter2@db?x=hunter2", "mongo://…@db?x=…"),
    ] {
        assert_eq!(shown(url), expected, "{url}");
        assert_eq!(has_secret(url), url.contains("ter2") || url.contains("1234567"), "{url}");
    }
}

#[test]
fn a_url_for_others_keeps_all_but_secrets() {
    for (url, expected) in [
        ("sqlite:app.db?busy=5", "sqlite:app.db?busy=5"),
        ("postgres://me:secret@db/app", "postgres://me@db/app"),
        ("postgres://me@db/app?sslmode=require", "postgres://me@db/app?sslmode=require"),
        ("postgres://me@db/app?password=x&schema=a", "postgres://me@db/app?schema=a"),
        ("postgres://me:sec/ret@db/app", "postgres://"),
        ("redis://:se@cret@db:6379/1", "redis://db:6379/1"),
        ("mysql://me@db/app?passwordfile=/run/p", "mysql://me@db/app?passwordfile=/run/p"),
        ("nats://token@a", "nats://a"),
        ("nats://me:secret@a", "nats://me@a"),
        ("s3://bucket?secret_access_key=x", "s3://bucket"),
    ] {
        assert_eq!(without_secrets(url), expected, "{url}");
    }
}

#[test]
fn a_url_is_taken_apart() {
    let url = "postgres://m%65:p@ss%2F@a:1,b/app%20x?schema=a%26b&ssl";
    let url = StoreUrl::parse(url, Form::POSTGRES, &|_| None).unwrap();
    assert_eq!(url.user().unwrap().as_deref(), Some("me"));
    assert_eq!(url.password().unwrap().as_deref(), Some("p@ss/"));
    let endpoints = url.endpoints(5432).unwrap();
    assert_eq!(endpoints.iter().map(Endpoint::to_string).collect::<Vec<_>>(), ["a:1", "b:5432"]);
    assert_eq!(url.path().unwrap(), "app x");
    let options = url.options().unwrap();
    assert_eq!(options.iter().collect::<Vec<_>>(), [("schema", "a&b"), ("ssl", "")]);
}

#[test]
fn what_is_not_certain_is_refused_with_the_remedy() {
    for (url, parts) in [
        ("redis://h", &["\"redis\"", "postgres://user@host/database"][..]),
        ("postgres://me:hun/ter2@db", &["%40", "%2F", "%3F", "%23"]),
        ("postgres://db/app?user=a@b", &["%40"]),
        ("postgres://db/app#x", &["%23"]),
        ("postgres://me:hunter2", &["host", "brackets"]),
        ("postgres://db:0/app", &["1 to 65535"]),
        ("postgres://db/app\n", &["line break"]),
        ("postgres://me:hunter2%@db", &["the password", "%25"]),
        ("postgres://db/a%zz", &["what follows the host", "%25"]),
        ("postgres://db?schema=%ff", &["schema=…", "UTF-8"]),
        ("postgres://db?schema=a&schema=b", &["schema=", "keep one"]),
        ("postgres://db?pasword=hunter2", &["\"pasword\"", "schema", "passwordfile="]),
        ("postgres://db?pooler=no", &["pooler=no", "detect or yes"]),
        ("postgres://db?lock_timeout=0", &["lock_timeout=0", "milliseconds from 1 to 60000"]),
        ("postgres://db?sslkey=", &["sslkey=", "name a file"]),
        ("postgres://db?hunter2", &["an unknown option", "schema"]),
        ("postgres://db?password=a&hunter2=b", &["an unknown option", "schema"]),
    ] {
        let said = StoreUrl::parse(url, Form::POSTGRES, &|_| None).and_then(|url| {
            url.user()?;
            url.password()?;
            url.path()?;
            url.options().map(drop)
        });
        let said = said.expect_err(url).to_string();
        for part in parts {
            assert!(said.contains(part), "{part:?} is missing in {said:?} about {url}");
        }
        assert!(!said.contains("ter2"), "{url}: {said}");
    }
}
