//! URLs of every store: parts that are wrong, options that aren't any, and files that they name.

use super::case::{Case, case, refused};

/// Commands that open the store, each in a way of its own.
const COMMANDS: &[&[&str]] = &[
    &["status", "--json"],
    &["run", "--lease", "a", "--", "true"],
    &["leader", "a"],
    &["store", "init"],
    &["evict", "a"],
    &["watch"],
    &["cordon", "a"],
    &["intents"],
];

const HOST: &str = "a port is a number from 1 to 65535, and an IPv6 address needs brackets";
const SIGNS: &str = "Write %40 for an @";
const HASH: &str = "Write %23 for it";
const ESCAPE: &str = "write %25 for the sign itself";
const TWICE: &str = "keep one";
const FILE: &str = "name a file, or leave it out";
const STORES: &str = "this program knows sqlite:";
const BLANK: &str = "remove that";
const ADDRESS: &str = "use an address such as https://";
const SECRET: &str = "set it in the environment";

/// URLs that aren't understood, with what is said of the value and the next step.
const REFUSED: &[(&str, &str, &str)] = &[
    ("postgres:", "\"postgres:…\"", "write postgres://user@host/database"),
    ("postgres:/db/app", "\"postgres:…\"", "write postgres://user@host/database"),
    ("postgres://db:port/app", "\"postgres://…\"", HOST),
    ("postgres://db:0/app", "\"postgres://…\"", HOST),
    ("postgres://db:65536/app", "\"postgres://…\"", HOST),
    ("postgres://::1/app", "\"postgres://…\"", HOST),
    ("postgres://[::1/app", "\"postgres://…\"", HOST),
    ("postgres://[::1]x/app", "\"postgres://…\"", HOST),
    ("postgres://a b/app", "\"postgres://…\"", HOST),
    ("postgres://db/app#x", "a #", HASH),
    ("postgres://me:hunter2", "\"postgres://…\"", HOST),
    ("postgres://me:hunter2/app", "\"postgres://…\"", HOST),
    ("postgres://me:hun/ter2@db/app", "an @ comes after", SIGNS),
    ("postgres://me:hunter2%@db/app", "the password", ESCAPE),
    ("postgres://me:hunter2%zz@db/app", "the password", ESCAPE),
    ("postgres://me:hunter2@db/a@b", "an @ comes after", SIGNS),
    ("postgres://me:hunter2@db/app?passwordfile=x", "passwordfile=", TWICE),
    ("postgres://db/app%ff", "app%ff", ESCAPE),
    ("postgres://db/app?sslmode=sometimes", "sslmode=sometimes", "verify-ca or verify-full"),
    ("postgres://db/app?sslmode=VERIFY-FULL", "sslmode=VERIFY-FULL", "or verify-full"),
    ("postgres://db/app?sslmode=verify-full", "sslmode=verify", "add sslrootcert=FILE"),
    ("postgres://db/app?sslcert=x", "sslcert=", "give both or neither"),
    ("postgres://db/app?sslpassword=hunter2", "sslpassword=", "leave it out"),
    ("postgres://db/app?color=red", "no \"color\"", "has the options schema"),
    ("postgres://db/app?busy=5", "no \"busy\"", "has the options schema"),
    ("postgres://db/app?pasword=hunter2", "no \"pasword\"", "passwordfile= names"),
    ("postgres://db/app?hunter2", "an unknown option", "the options are schema"),
    ("postgres://db/app?schema=", "schema=\"\"", "such as schema=incumbent"),
    ("postgres://db/app?schema=a;b", "schema=\"a;b\"", "such as schema=incumbent"),
    ("postgres://db/app?schema=a&schema=b", "schema=", TWICE),
    ("postgres://db/app?schema=%zz", "schema=…", ESCAPE),
    ("postgres://db/app?prefix=", "prefix=\"\"", "such as prefix=election_"),
    ("postgres://db/app?prefix=1", "prefix=\"1\"", "such as prefix=election_"),
    ("postgres://db/app?passwordfile=", "passwordfile=", FILE),
    ("postgres://db/app?lock_timeout=soon", "lock_timeout=soon", "use milliseconds"),
    ("postgres://db/app?lock_timeout=0", "lock_timeout=0", "use milliseconds"),
    ("postgres://db/app?statement_timeout=-1", "statement_timeout=-1", "use milliseconds"),
    ("postgres://db/app?pooler=maybe", "pooler=maybe", "use detect or yes"),
    ("postgres://db/app?target_session_attrs=standby", "=standby", "use any, read-write"),
    ("postgres://db/app?connect_timeout=soon", "`connect_timeout`", "Write postgres://"),
    ("postgres://db/app?keepalives=maybe", "`keepalives`", "Write postgres://"),
    ("postgres://db/app?port=x", "`port`", "Write postgres://"),
    ("postgres://db/app?hostaddr=x", "`hostaddr`", "Write postgres://"),
    ("postgres://db\t/app", "a control character", "Write postgres://"),
    ("postgres://db/app\n", "a line break", BLANK),
    (" postgres://db/app", "begins or ends with a blank", BLANK),
    ("mysql:db/app", "\"mysql:…\"", "write mysql://user@host/database"),
    ("mysql://me:hunter2@db", "names no database", "Write mysql://"),
    ("mysql://db/", "names no database", "Write mysql://"),
    ("mysql://me:hun/ter2@db/app", "an @ comes after", SIGNS),
    ("mysql://me:hunter2@db/app?passwordfile=x", "passwordfile=", TWICE),
    ("mysql://db/app?pasword=hunter2", "no \"pasword\"", "passwordfile= names"),
    ("mysql://db/app?sslmode=require", "no \"sslmode\"", "ssl-mode"),
    ("mysql://db/app?ssl-mode=maybe", "ssl-mode=maybe", "use DISABLED"),
    ("mysql://db:x/app", "\"mysql://…\"", HOST),
    ("mysql://a,b/app", "several hosts", "Write mysql://"),
    ("mysql://db/app?timeout=0", "timeout=0", "use milliseconds"),
    ("mysql://db/app?prefix=a-b", "prefix=\"a-b\"", "such as prefix=election_"),
    ("redis:h", "\"redis:…\"", "write redis://host:6379"),
    ("redis://", "\"redis://\"", HOST),
    ("redis://h:port", "\"redis://…\"", HOST),
    ("redis://me:hun/ter2@h", "an @ comes after", SIGNS),
    ("redis://me:hunter2@h?passwordfile=x", "passwordfile=", TWICE),
    ("redis://me@h", "a user and no password", "passwordfile= or the variable"),
    ("redis://h,i", "several hosts", "Write redis://"),
    ("redis://h/zero", "\"redis://h/zero\"", "as in redis://host:6379/2"),
    ("redis://h/-1", "\"redis://h/-1\"", "as in redis://host:6379/2"),
    ("redis://h/99999999999", "99999999999", "as in redis://host:6379/2"),
    ("redis://h?schema=a", "no \"schema\"", "has the options prefix"),
    ("redis://h?wait=all", "wait=all", "such as wait=1"),
    ("redis://h?eviction=maybe", "eviction=maybe", "use refuse or allow"),
    ("redis://h?cafile=x", "cafile=", "write rediss://"),
    ("rediss://h?certfile=x", "certfile=", "give both or neither"),
    ("redis://h#x", "a #", HASH),
    ("etcd:h", "\"etcd:…\"", "write etcd://host:2379"),
    ("etcd://", "\"etcd://\"", HOST),
    ("etcd://h:x", "\"etcd://…\"", HOST),
    ("etcd://me:hun/ter2@h", "an @ comes after", SIGNS),
    ("etcd://h?password=hunter2", "no \"password\"", "passwordfile= names"),
    ("etcd://h?passwordfile=x", "passwordfile=", "write etcd://user@host"),
    ("etcd://h?certfile=x", "certfile=", "write etcds://"),
    ("etcd://h?timeout=0", "timeout=0", "at most a third of the ttl"),
    ("etcd://h/%zz", "etcd://h/%zz", ESCAPE),
    ("nats:h", "\"nats:…\"", "write nats://host:4222"),
    ("nats://", "\"nats://\"", HOST),
    ("nats://::1", "\"nats://…\"", HOST),
    ("nats://me:hun/ter2@h", "an @ comes after", SIGNS),
    ("nats://h/x", "\"nats://h/x\"", "Write nats://host:4222"),
    ("nats://h?bucket=a.b", "bucket=\"a.b\"", "use up to 64"),
    ("nats://h?replicas=9", "replicas=9", "from 1 to 5"),
    ("nats://h?tls_first=maybe", "tls_first=maybe", "use true or false"),
    ("nats://h?tokenfile=x&creds=y", "several logins", TWICE),
    ("nats://h?creds=", "creds=", FILE),
    ("s3:b", "\"s3:…\"", "write s3://bucket/prefix"),
    ("s3://", "\"s3://\"", "write s3://bucket"),
    ("s3://b?endpoint=nonsense", "endpoint=nonsense", ADDRESS),
    ("s3://b?endpoint=", "endpoint=", ADDRESS),
    ("s3://b?endpoint=ftp://x", "endpoint=ftp://x", ADDRESS),
    ("s3://b?endpoint=http://", "endpoint=http://", ADDRESS),
    ("s3://b?endpoint=http%3A%2F%2Fme:hunter2%40h", "endpoint=…", "from the environment"),
    ("s3://b?proxy_url=nonsense", "proxy_url=nonsense", ADDRESS),
    ("s3://b?secret_access_key=hunter2", "secret_access_key=", SECRET),
    ("s3://b?secret_access_key_file=", "secret_access_key_file=", FILE),
    ("s3://b?secret_access_key_file=/no/such", "/no/such", "may read it"),
    ("s3://b?color=red", "color=", "have the options timeout"),
    ("s3://me:hunter2@b", "no user, password or port", "from the environment"),
    ("s3://b?timeout=0", "timeout=0", "such as timeout=2000"),
    ("s3://b?requests=0", "requests=0", "from 1 to 1000"),
    ("s3://b/#x", "a #", HASH),
    ("gs://b?base_url=nonsense", "base_url=nonsense", ADDRESS),
    ("gs://b?service_account_key=hunter2", "service_account_key=", SECRET),
    ("az://c?endpoint=nonsense", "endpoint=nonsense", ADDRESS),
    ("az://c?account_key=hunter2", "account_key=", SECRET),
    ("sqlite:", "no database file", "write sqlite:app.db"),
    ("sqlite::memory:", ":memory:", "use memory: or solo:"),
    ("sqlite:file:x", "file:x", "as in sqlite:app.db"),
    ("sqlite:a%zz.db", "a%zz.db", ESCAPE),
    ("sqlite:a%", "a%", ESCAPE),
    ("sqlite:a%00b.db", "a\\0b.db", "can't contain a NUL byte"),
    ("sqlite:a.db?busy", "busy=", "such as busy=2000"),
    ("sqlite:a.db?busy=soon", "busy=soon", "such as busy=2000"),
    ("sqlite:a.db?busy=-1", "busy=-1", "such as busy=2000"),
    ("sqlite:a.db?busy=60001", "busy=60001", "a third of the ttl"),
    ("sqlite:a.db?busy=99999999999999999999", "9999999999", "such as busy=2000"),
    ("sqlite:a.db?busy=1&busy=2", "busy=", TWICE),
    ("sqlite:a.db?color=hunter2", "no \"color\"", "has the options prefix"),
    ("sqlite:a.db?password=hunter2", "no \"password\"", "has the options prefix"),
    ("sqlite:a.db?mode=ro", "no \"mode\"", "has the options prefix"),
    ("sqlite:a.db?create=maybe", "create=maybe", "use yes or no"),
    ("sqlite:a.db?synchronous=off", "synchronous=off", "use full or normal"),
    ("sqlite:a.db?prefix=1x", "prefix=\"1x\"", "such as prefix=election_"),
    ("sqlite://me:hunter2@db/app", "an @ where others have", "with %40 for an @"),
    ("sqlite:me:hunter2@db", "an @ where others have", "with %40 for an @"),
    ("sqlite:~/app.db", "~/app.db", "write the directory itself"),
    ("sqlite:app.db ", "\"sqlite:app.db \"", "remove it"),
    ("sqlite:app.db\n", "\"sqlite:app.db\\n\"", "remove it"),
    ("sqlite:app.db\r", "\"sqlite:app.db\\r\"", "remove it"),
    ("sqlite:app\t.db", "\"sqlite:app\\t.db\"", "remove it"),
    ("\u{a0}sqlite:app.db", "begins or ends with a blank", BLANK),
    ("sqlite3:app.db", "\"sqlite3\"", "sqlite: was probably meant"),
    ("SQLITE:app.db", "\"SQLITE\"", "sqlite: was probably meant"),
    ("POSTGRES://db/app", "\"POSTGRES\"", "postgres: was probably meant"),
    ("postgre://db/app", "\"postgre\"", "postgres: was probably meant"),
    ("postgress://me:hunter2@db/app", "\"postgress\"", "postgres: was probably meant"),
    ("postgresql+psycopg2://db/app", "postgresql+psycopg2", "postgresql: was probably meant"),
    ("jdbc:postgresql://me:hunter2@db/app", "\"jdbc\"", STORES),
    ("mongo://me:hunter2@db", "\"mongo\"", STORES),
    ("http://me:hunter2@db", "\"http\"", STORES),
    ("memroy:", "\"memroy\"", "memory: was probably meant"),
    ("postgresql//db/app", "\"postgresql//db/app\"", "without quotes or signs"),
    ("/var/lib/app.db", "\"/var/lib/app.db\"", "a file as sqlite:app.db"),
    ("app.db", "\"app.db\"", "a file as sqlite:app.db"),
    ("undefined", "\"undefined\"", STORES),
    ("\"sqlite:app.db\"", "doesn't begin with", "without quotes or signs"),
    ("$STORE", "doesn't begin with", "without quotes or signs"),
    ("${STORE}", "doesn't begin with", "without quotes or signs"),
    ("host=db password=hunter2", "doesn't begin with", STORES),
    ("hunter2@db:5432/app", "doesn't begin with", STORES),
    ("://", "doesn't begin with", STORES),
    (":", "doesn't begin with", STORES),
    ("?", "doesn't begin with", STORES),
    ("\u{202e}postgres://db", "doesn't begin with", STORES),
];

/// URLs that are understood, and of which nothing answers: at a port that nobody listens on.
const UNREACHED: &[(&str, &str, &str)] = &[
    ("postgres://127.0.0.1:1/app", "127.0.0.1:1", "Check that its server is running"),
    ("postgres://127.0.0.1:1/app/", "127.0.0.1:1/app/", "the host and the port are right"),
    ("postgres://[::1]:1/app", "[::1]:1", "Check that its server is running"),
    ("postgres://under_score.invalid:1/app", "under_score.invalid", "the host and the port"),
    ("postgres://me:hunter2@127.0.0.1:1/app", "…@127.0.0.1:1", "Check that its server is running"),
    ("mysql://127.0.0.1:1/app", "127.0.0.1:1", "Check that its server is running"),
    ("redis://127.0.0.1:1/", "127.0.0.1:1", "Check that its server is running"),
    ("etcd://127.0.0.1:1", "127.0.0.1:1", "Check that its server is running"),
    ("nats://127.0.0.1:1/", "127.0.0.1:1", "Check that the server is running"),
    ("postgres://127.0.0.1:1/app?passwordfile=missing", "missing", "may read it"),
    ("postgres://127.0.0.1:1/app?passwordfile=.", "a directory", "holds what it should"),
    ("postgres://127.0.0.1:1/app?passwordfile=empty", "empty: the file is empty", "holds what"),
    ("postgres://127.0.0.1:1/app?passwordfile=line", "line: the file is empty", "holds what"),
    ("postgres://127.0.0.1:1/app?passwordfile=noise", "UTF-8", "holds what it should"),
    ("postgres://127.0.0.1:1/app?passwordfile=large", "64 KiB", "holds what it should"),
    ("postgres://127.0.0.1:1/app?passwordfile=/dev/zero", "not a regular file", "holds what"),
    (
        "postgres://127.0.0.1:1/app?passwordfile=password",
        "Connection refused",
        "its server is running",
    ),
    ("postgres://127.0.0.1:1/app?sslmode=verify-full&sslrootcert=missing", "missing", "PEM file"),
    ("postgres://127.0.0.1:1/app?sslmode=verify-full&sslrootcert=.", "directory", "PEM file"),
    ("postgres://127.0.0.1:1/app?sslmode=verify-full&sslrootcert=key.pem", "key.pem", "PEM file"),
    ("postgres://127.0.0.1:1/app?sslcert=key.pem&sslkey=cert.pem", "sslcert=key.pem", "PEM file"),
    ("mysql://127.0.0.1:1/app?passwordfile=missing", "missing", "may read it"),
    ("mysql://me@127.0.0.1:1/app?passwordfile=.", "a directory", "may read it"),
    ("mysql://127.0.0.1:1/app?ssl-mode=VERIFY_CA&ssl-ca=missing", "ssl-ca=missing", "PEM file"),
    ("nats://127.0.0.1:1?tokenfile=missing", "tokenfile=missing", "may read it"),
    ("nats://me@127.0.0.1:1?passwordfile=empty", "empty", "Check that the file is there"),
    ("nats://127.0.0.1:1?creds=password", "creds=password", "as `nsc generate creds` writes it"),
    ("nats://127.0.0.1:1?nkey=password", "nkey=password", "begins with SU"),
    ("tls://127.0.0.1:1?cafile=missing", "cafile=missing", "PEM file"),
    ("tls://127.0.0.1:1?certfile=key.pem&keyfile=cert.pem", "certfile=key.pem", "PEM file"),
    ("sqlite:.", "a directory", "Name a file in it"),
    ("sqlite:/dev/null", "/dev/null: this is a device", "Name a regular file"),
    ("sqlite:noise", "not a database", "name another file"),
    ("sqlite:missing.db", "missing.db", "store init"),
    ("sqlite:trial.db/", "trial.db/", "correct the path"),
    ("sqlite:trial.db#x", "trial.db#x", "correct the path"),
    ("sqlite:nodir/x.db", "nodir/x.db", "correct the path"),
    ("sqlite:empty/x.db", "empty/x.db", "correct the path"),
    ("sqlite:trial.db,b.db", "trial.db,b.db", "correct the path"),
    ("sqlite://localhost/x.db", "localhost/x.db", "correct the path"),
];

pub(crate) fn cases() -> Vec<Case> {
    let words = COMMANDS.iter().cycle();
    let mut cases: Vec<Case> =
        REFUSED.iter().zip(words).map(|(row, words)| one(row, words)).collect();
    cases.extend(UNREACHED.iter().map(unreached));
    cases.extend(by_words());
    cases
}

fn one((url, value, next): &(&str, &str, &str), words: &[&str]) -> Case {
    let known = is_built(url);
    let (value, next) = if known { (*value, *next) } else { ("needs the feature", "enable it") };
    refused(words, value, next).with("INCUMBENT_STORE", *url).says("INCUMBENT_STORE")
}

fn unreached((url, value, next): &(&str, &str, &str)) -> Case {
    if !is_built(url) {
        return one(&(url, value, next), &["status"]);
    }
    let pem = |what: &str| format!("-----BEGIN {what}-----\nAAAA\n-----END {what}-----\n");
    case(69, &["status"], value, next)
        .with("INCUMBENT_STORE", *url)
        .file("empty", "")
        .file("line", "\n")
        .file("noise", b"a\xff\x00\x01 no database at all".repeat(50))
        .file("large", vec![b'a'; 70_000])
        .file("password", "hunter2\n")
        .file("cert.pem", pem("CERTIFICATE"))
        .file("key.pem", pem("PRIVATE KEY"))
}

/// URLs on the command line, where it is no variable that is wrong.
fn by_words() -> Vec<Case> {
    let long = format!("sqlite:{}.db", "x".repeat(300));
    vec![
        refused(&["--store", "mongo://me:hunter2@db", "status"], "mongo", STORES)
            .never("INCUMBENT_STORE"),
        refused(&["--store", "postgres://me:hunter2@db:x/app", "status"], "postgres://…", HOST)
            .never("INCUMBENT_STORE"),
        refused(&["status", "--store=postgres://me:hunter2@db:x/app"], "postgres://…", HOST)
            .never("INCUMBENT_STORE"),
        refused(&["store", "init", "postgres://me:hunter2@db:x/app"], "postgres://…", HOST)
            .never("INCUMBENT_STORE"),
        refused(&["store", "init", "app.db"], "\"app.db\"", "sqlite:app.db"),
        refused(&["store", "init", "sqlite:a.db", "sqlite:b.db"], "sqlite:b.db", "Usage:"),
        refused(&["store", "schema", "mongo://db"], "mongo://db", STORES),
        refused(&["store", "schema", "sqlite:a.db?busy=x"], "busy=x", "such as busy=2000"),
        refused(
            &["run", "--store", "memory:", "--lease", "a", "--", "true"],
            "memory:",
            "name one",
        ),
        refused(&["run", "--store", "solo:", "--lease", "a", "--", "true"], "solo:", "name one"),
        refused(&["doctor", "--store", "solo:"], "solo:", "name one that others can reach"),
        refused(&["demo", "--tour", "--store", "memory:"], "memory:", "such as --store sqlite:"),
        case(69, &["store", "init", "sqlite:/no/such/x.db"], "/no/such", "Make it"),
        case(69, &["store", "init", "sqlite:trial.db/x.db"], "Not a directory", "its directory"),
        case(69, &["store", "init", &long], "xxxx", "ame"),
        case(
            69,
            &["--store", "sqlite:a\u{202e}c.db", "status"],
            "a<U+202E>c.db",
            "correct the path",
        ),
    ]
}

/// Whether this program can open the store of this URL, or knows none that it could be.
fn is_built(url: &str) -> bool {
    match url.split_once(':').map_or("", |(scheme, _)| scheme) {
        "postgres" | "postgresql" => cfg!(feature = "postgres"),
        "mysql" | "mariadb" => cfg!(feature = "mysql"),
        "redis" | "rediss" => cfg!(feature = "redis"),
        "etcd" | "etcds" => cfg!(feature = "etcd"),
        "nats" | "tls" => cfg!(feature = "nats"),
        "s3" | "gs" | "az" => cfg!(feature = "object-storage"),
        _ => true,
    }
}
