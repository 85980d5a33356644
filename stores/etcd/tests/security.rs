//! Passwords, rights and certificates.
#![allow(clippy::panic, clippy::expect_used)] // A test fails by panicking, its helpers too.

mod common;

use std::fs;
use std::path::PathBuf;

use common::{
    Hints, Server, applied, assert_says, beat, block_on, change, connect, create, eventually, find,
    http, until_readable,
};
use incumbent_core::store::{Access, ErrorKind, Lane};
use incumbent_etcd::{EtcdOptions, EtcdStore};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
};

const SECRET: &str = "s3cr:t@/?#%";
/// The same as a URL carries it.
const ENCODED: &str = "s3cr%3At%40%2F%3F%23%25";

/// A server that asks for passwords: `app` may use `/app/`, `looker` read it, `guest` nothing.
fn guarded() -> Server {
    let server = Server::start(&[]);
    let post = |path: &str, json: &str| http::post(server.port(), path, json);
    post("/v3/auth/user/add", r#"{"name":"root","password":"root"}"#);
    post("/v3/auth/user/add", &format!(r#"{{"name":"app","password":"{SECRET}"}}"#));
    post("/v3/auth/user/add", r#"{"name":"guest","password":"guest"}"#);
    post("/v3/auth/role/add", r#"{"name":"root"}"#);
    post("/v3/auth/role/add", r#"{"name":"app"}"#);
    // From `/app/` to `/app0`, which is what etcdctl's --prefix=true says.
    let range = r#"{"permType":"READWRITE","key":"L2FwcC8=","range_end":"L2FwcDA="}"#;
    post("/v3/auth/role/grant", &format!(r#"{{"name":"app","perm":{range}}}"#));
    post("/v3/auth/user/add", r#"{"name":"looker","password":"looker"}"#);
    post("/v3/auth/role/add", r#"{"name":"look"}"#);
    let range = range.replace("READWRITE", "READ");
    post("/v3/auth/role/grant", &format!(r#"{{"name":"look","perm":{range}}}"#));
    post("/v3/auth/user/grant", r#"{"user":"looker","role":"look"}"#);
    post("/v3/auth/user/grant", r#"{"user":"root","role":"root"}"#);
    post("/v3/auth/user/grant", r#"{"user":"app","role":"app"}"#);
    post("/v3/auth/enable", "{}");
    server
}

#[test]
fn a_password_lets_in_and_rights_on_the_prefix_are_enough() {
    block_on(async {
        let server = guarded();
        let file = server.path().join("password");
        fs::write(&file, format!("{SECRET}\n")).expect("a file");
        let place = format!("127.0.0.1:{}/app", server.port());
        let urls = [
            format!("etcd://app:{ENCODED}@{place}"),
            format!("etcd://app@{place}?passwordfile={}", file.display()),
        ];
        for (round, url) in urls.iter().enumerate() {
            let store = connect(url).await;
            let hints = Hints::of(&store, "c").ready().await;
            let key = format!("k{round}");
            let version = applied(&store, create(&key, "1")).await;
            let before = hints.count();
            applied(&store, change(&key, &version, "2")).await;
            eventually("the hint", || hints.count() > before).await;
            assert!(!format!("{store:?}").contains("s3cr"), "{store:?}");
        }
    });
}

#[test]
fn whoever_may_not_is_rejected_with_the_next_step() {
    block_on(async {
        let server = guarded();
        let place = format!("127.0.0.1:{}", server.port());
        for (url, words) in [
            (format!("etcd://app:wr0ng@{place}/app"), ["authentication failed", "password"]),
            (format!("etcd://nobody:wr0ng@{place}/app"), ["authentication failed", "password"]),
            (format!("etcd://{place}/app"), ["user name is empty", "etcd://user@host"]),
            (format!("etcd://guest:guest@{place}/app"), ["permission denied", "grant-permission"]),
            (format!("etcd://app:{ENCODED}@{place}/other"), ["permission denied", "PREFIX/"]),
        ] {
            let error = EtcdStore::connect(&url).await.expect_err(&url);
            assert_says(&error, ErrorKind::Rejected, &words);
            assert!(!error.message.contains("wr0ng"), "{error}");
            assert!(!error.message.contains("s3cr"), "{error}");
        }
    });
}

#[test]
fn a_token_that_the_server_forgot_is_made_anew() {
    block_on(async {
        let server = guarded();
        let url = format!("etcd://app:{ENCODED}@127.0.0.1:{}/app", server.port());
        let store = connect(&url).await;
        let hints = Hints::of(&store, "c").ready().await;
        let mut version = applied(&store, create("k", "1")).await;
        // Tokens live in the memory of the process.
        server.kill();
        server.resume();
        until_readable(&store).await;
        assert!(find(&store, "k").await.is_some());
        for value in ["2", "3"] {
            version = applied(&store, beat("k", &version, value)).await;
        }
        let before = hints.count();
        eventually("the watch", || hints.count() >= before.max(2)).await;
        let before = hints.count();
        version = applied(&store, change("k", &version, "4")).await;
        eventually("the hint", || hints.count() > before).await;

        // A change of rights makes tokens too old: a write is then surely not applied, and the
        // next attempt works.
        let root = http::post(
            server.port(),
            "/v3/auth/authenticate",
            r#"{"name":"root","password":"root"}"#,
        );
        let token = root.split("\"token\":\"").nth(1).and_then(|rest| rest.split('"').next());
        http::post_as(server.port(), "/v3/auth/role/add", r#"{"name":"late"}"#, token);
        let mut errors = 0;
        loop {
            let writes = vec![beat("k", &version, "5")];
            match common::send(&store, Lane::Beat, writes, vec![]).await {
                Ok(_) => break,
                Err(error) => {
                    assert_eq!(error.kind, ErrorKind::Unavailable, "{error}");
                    errors += 1;
                    assert!(errors < 3, "{error}");
                }
            }
        }
    });
}

#[test]
fn a_user_where_no_passwords_are_asked_for_does_no_harm() {
    block_on(async {
        let server = Server::start(&[]);
        let store = connect(&format!("etcd://app:x@127.0.0.1:{}/app", server.port())).await;
        let version = applied(&store, create("k", "1")).await;
        let found = find(&store, "k").await.expect("a record");
        assert_eq!((found.version, found.value), (version, b"1".to_vec()));
    });
}

/// An authority, and certificates that it signed.
struct Certificates {
    directory: PathBuf,
    ca: String,
}

impl Certificates {
    fn make(directory: PathBuf) -> Self {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(vec![]).expect("parameters");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "test authority");
        let ca = params.self_signed(&key).expect("an authority").pem();
        let issuer = Issuer::new(params, key);
        let made = Self { directory, ca: "ca.pem".to_owned() };
        fs::write(made.path("ca.pem"), ca).expect("a file");
        made.sign(&issuer, "server", &["127.0.0.1"], ExtendedKeyUsagePurpose::ServerAuth);
        made.sign(&issuer, "app", &[], ExtendedKeyUsagePurpose::ClientAuth);
        made
    }

    fn sign(
        &self,
        issuer: &Issuer<'_, KeyPair>,
        name: &str,
        hosts: &[&str],
        usage: ExtendedKeyUsagePurpose,
    ) {
        let key = KeyPair::generate().expect("a key");
        let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
        let mut params = CertificateParams::new(hosts).expect("parameters");
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages = vec![usage];
        let certificate = params.signed_by(&key, issuer).expect("a certificate");
        fs::write(self.path(&format!("{name}.pem")), certificate.pem()).expect("a file");
        fs::write(self.path(&format!("{name}.key")), key.serialize_pem()).expect("a file");
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().expect("text").to_owned()
    }
}

#[test]
fn tls_encrypts_and_tells_whom_it_does_not_trust() {
    block_on(async {
        let place = tempfile::tempdir().expect("a directory");
        let made = Certificates::make(place.path().to_owned());
        let [certificate, key, ca] = ["server.pem", "server.key", &made.ca].map(|n| made.text(n));
        let server = Server::start_as("https", &["--cert-file", &certificate, "--key-file", &key]);
        let base = format!("etcds://127.0.0.1:{}/tls", server.port());
        let store = connect(&format!("{base}?cafile={ca}")).await;
        let hints = Hints::of(&store, "c").ready().await;
        let version = applied(&store, create("k", "1")).await;
        let before = hints.count();
        applied(&store, change("k", &version, "2")).await;
        eventually("the hint", || hints.count() > before).await;

        // Not signed by an authority of this machine.
        let error = EtcdStore::connect(&base).await.expect_err("not trusted");
        assert_eq!(error.kind, ErrorKind::Rejected, "{error}");
        // Signed for another name.
        let url = format!("etcds://localhost:{}/tls?cafile={ca}", server.port());
        let error = EtcdStore::connect(&url).await.expect_err("another name");
        assert_says(&error, ErrorKind::Rejected, &["cafile=", "localhost"]);
        // Files that hold something else, or aren't there.
        for (parameter, file) in [("cafile", key.as_str()), ("cafile", "/nowhere/ca.pem")] {
            let error = EtcdStore::connect(&format!("{base}?{parameter}={file}")).await;
            let error = error.expect_err("no certificate");
            assert_says(&error, ErrorKind::Rejected, &["cafile", file, "PEM"]);
        }
        // Without encryption nobody answers as etcd does.
        let url = format!("etcd://127.0.0.1:{}/tls?timeout=2000", server.port());
        assert!(EtcdStore::connect(&url).await.is_err());
    });
}

#[test]
fn a_client_certificate_is_shown_where_the_server_asks_for_one() {
    block_on(async {
        let place = tempfile::tempdir().expect("a directory");
        let made = Certificates::make(place.path().to_owned());
        let [certificate, key, ca] = ["server.pem", "server.key", &made.ca].map(|n| made.text(n));
        let arguments = [
            ["--cert-file", &certificate],
            ["--key-file", &key],
            ["--trusted-ca-file", &ca],
            ["--client-cert-auth", "true"],
        ];
        // etcd wants this one in the form --flag=value.
        let arguments: Vec<String> =
            arguments.iter().map(|[name, value]| format!("{name}={value}")).collect();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let server = Server::start_as("https", &arguments);
        let base = format!("etcds://127.0.0.1:{}/tls?cafile={ca}", server.port());
        let [own, secret] = ["app.pem", "app.key"].map(|name| made.text(name));
        let store = connect(&format!("{base}&certfile={own}&keyfile={secret}")).await;
        applied(&store, create("k", "1")).await;
        let error = EtcdStore::connect(&format!("{base}&timeout=3000")).await;
        let error = error.expect_err("no certificate");
        assert_ne!(error.kind, ErrorKind::Unknown, "{error}");
    });
}

#[test]
fn o36_a_user_that_may_only_read_can_look() {
    block_on(async {
        let server = guarded();
        let place = format!("127.0.0.1:{}/app", server.port());
        let store = connect(&format!("etcd://app:{ENCODED}@{place}")).await;
        let version = applied(&store, create("k", "1")).await;
        let options = EtcdOptions::parse(&format!("etcd://looker:looker@{place}"));
        let options = options.expect("options").access(Access::Look);
        assert!(options.rights().contains("--prefix=true read '/app/'"), "{}", options.rights());
        let looker = EtcdStore::connect_with(options).await.expect("it opens");
        assert!(find(&looker, "k").await.is_some());
        let hints = Hints::of(&looker, "c").ready().await;
        let before = hints.count();
        applied(&store, change("k", &version, "2")).await;
        eventually("a hint for who looks", || hints.count() > before).await;
        let error = common::write(&looker, create("l", "1")).await.expect_err("no right");
        assert_says(&error, ErrorKind::Rejected, &["permission denied"]);
    });
}
