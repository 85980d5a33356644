//! Who gets in, and what for.

use std::process::Command;

use incumbent_proving::Authority;
use incumbent_serve::{Address, Listener, ServeError};
use rcgen::{SanType, date_time_ymd};
use serde_json::json;

use crate::common::Server;
use crate::stage::{Stage, Wants, named};

const ALICE: &str = "0123456789abcdef-alice";

#[test]
fn only_who_has_a_certificate_of_the_authority_gets_in() {
    let stage = Stage::new();
    let known = stage.identity("known");
    assert_eq!(stage.get(&known, "/v1/leases").status, 200);
    // Not even to what needs no role.
    let nobody = stage.refusal(None).unwrap();
    assert!(nobody.contains("CertificateRequired"), "{nobody}");
    let elsewhere = Authority::new().issue("known", stage.directory.path(), "elsewhere");
    assert!(stage.refusal(Some(&elsewhere)).is_some());
    let mut expired = named("known");
    expired.not_before = date_time_ymd(2001, 1, 1);
    expired.not_after = date_time_ymd(2002, 1, 1);
    let expired = stage.authority.sign(expired, stage.directory.path(), "expired");
    let said = stage.refusal(Some(&expired)).unwrap();
    assert!(said.contains("Expired"), "{said}");
    let mut nameless = rcgen::CertificateParams::default();
    nameless.distinguished_name = rcgen::DistinguishedName::new();
    let nameless = stage.authority.sign(nameless, stage.directory.path(), "nameless");
    assert!(stage.refusal(Some(&nameless)).is_some(), "nobody could say who acted");
    // The Unix socket has its directory's rights.
    let unix = std::os::unix::net::UnixStream::connect(&stage.server.unix).unwrap();
    let headers = [("host", "localhost"), ("connection", "close")];
    assert_eq!(crate::common::ask(unix, "GET", "/v1/leases", &headers, "").status, 200);
}

#[test]
fn without_roles_every_certificate_may_do_all_and_the_audit_log_names_it() {
    let stage = Stage::new();
    let freeze = |name: &str, headers: &[(&str, &str)]| {
        stage.ask(Some(&stage.identity(name)), "PUT", "/v1/freeze", headers, Some(json!({})))
    };
    // A name of this server that nobody told it: certificates prove who is meant.
    assert_eq!(freeze("alice", &[("host", "incumbent.example:7443")]).status, 202);
    let act = &stage.get(&stage.identity("bob"), "/v1/audit").json()["acts"][0];
    assert_eq!((&act["who"], &act["act"]), (&json!("CN=alice"), &json!("freeze")));
    // A browser shows certificates by itself, also for another site.
    let foreign = freeze("alice", &[("origin", "https://evil.example")]);
    assert_eq!((foreign.status, foreign.code().as_str()), (403, "cross-site"));
}

#[test]
fn roles_go_by_the_part_of_the_certificate_that_is_named() {
    let roles = "operator cn:alice\nclient dns:shop.internal\nread-only uri:spiffe://corp/board\n";
    let stage = Stage::wanting(&Wants { roles: Some(roles), ..Wants::default() });
    let mut board = named("whatever");
    board.subject_alt_names = vec![SanType::URI("spiffe://corp/board".try_into().unwrap())];
    let board = stage.authority.sign(board, stage.directory.path(), "board");
    let mut posing = named("shop.internal");
    posing.subject_alt_names = vec![SanType::DnsName("alice".try_into().unwrap())];
    let posing = stage.authority.sign(posing, stage.directory.path(), "posing");
    let (alice, shop) = (stage.identity("alice"), stage.identity("Shop.internal"));
    for (identity, statuses) in [
        (&board, [200, 403, 403]),
        (&shop, [200, 201, 403]),
        (&alice, [200, 201, 202]),
        (&posing, [403, 403, 403]),
    ] {
        let post = |path: &str| {
            let body = Some(json!({ "name": "a", "wait": "10s" }));
            let body = if path.ends_with("resign") { Some(json!({})) } else { body };
            stage.ask(Some(identity), "POST", path, &[], body)
        };
        let lease = format!("/v1/leases/{}", identity.0.file_stem().unwrap().to_str().unwrap());
        let seen = stage.get(identity, "/v1/leases");
        let held = post(&format!("{lease}/acquire"));
        let resigned = post(&format!("{lease}/resign"));
        assert_eq!([seen.status, held.status, resigned.status], statuses, "{lease}: {held:?}");
        // What needs no role has none.
        assert_eq!(stage.get(identity, "/livez").status, 200);
    }
    let refused = stage.get(&posing, "/v1/leases");
    assert_eq!(refused.code(), "not-allowed");
    for part in ["CN=shop.internal", "--certificate-roles", "cn:shop.internal, dns:alice"] {
        assert!(refused.text.contains(part), "{part} in {}", refused.text);
    }
    let less = stage.ask(Some(&shop), "PUT", "/v1/freeze", &[], Some(json!({})));
    assert!(less.text.contains("the certificate"), "{}", less.text);
}

#[test]
fn tokens_count_beside_certificates() {
    let tokens = format!("operator alice {ALICE}\n");
    let (bearer, wrong) = (format!("Bearer {ALICE}"), "Bearer 0123456789abcdef-mallory");
    let freeze = |stage: &Stage, authorization: Option<&str>| {
        let headers: Vec<_> = authorization.map(|it| ("authorization", it)).into_iter().collect();
        let identity = stage.identity("shop");
        stage.ask(Some(&identity), "PUT", "/v1/freeze", &headers, Some(json!({}))).status
    };
    // A certificate alone opens nothing that the token file was made to guard.
    let both = Stage::wanting(&Wants { tokens: Some(&tokens), ..Wants::default() });
    assert_eq!(freeze(&both, None), 401);
    assert_eq!(freeze(&both, Some(wrong)), 401);
    assert_eq!(freeze(&both, Some(&bearer)), 202);
    let headers = [("authorization", bearer.as_str())];
    let audit = both.ask(Some(&both.identity("shop")), "GET", "/v1/audit", &headers, None);
    let act = &audit.json()["acts"][0];
    assert_eq!(act["who"], "alice");
    assert!(act["from"].as_str().unwrap().ends_with(", certificate CN=shop"), "{act}");
    // Unless somebody has given roles to certificates.
    let roles = Some("operator cn:shop");
    let either = Stage::wanting(&Wants { tokens: Some(&tokens), roles, ..Wants::default() });
    assert_eq!(freeze(&either, None), 202);
    assert_eq!(freeze(&either, Some(wrong)), 401);
    // Without certificates, tokens travel encrypted.
    let wants = Wants { tokens: Some(&tokens), no_certificates: true, ..Wants::default() };
    let hidden = Stage::wanting(&wants);
    assert_eq!(hidden.ask(None, "GET", "/v1/leases", &[], None).status, 401);
    assert_eq!(hidden.ask(None, "GET", "/v1/leases", &headers, None).status, 200);
}

#[test]
fn it_listens_elsewhere_only_where_somebody_is_asked_who_they_are() {
    let encrypted = Stage::wanting(&Wants { no_certificates: true, ..Wants::default() });
    let elsewhere = Address::Tcp(([0, 0, 0, 0], 0).into());
    let bind = |server: &Server| {
        server.runtime().block_on(Listener::bind(&elsewhere, &server.service)).map(|it| it.url())
    };
    let refused = bind(&encrypted.server).unwrap_err();
    assert!(matches!(refused, ServeError::Unsafe(_)));
    for flag in ["--token-file", "--client-ca", "--tls-cert", "--tls-key"] {
        assert!(refused.to_string().contains(flag), "{refused}");
    }
    let url = bind(&Stage::new().server).unwrap().unwrap();
    assert!(url.starts_with("https://0.0.0.0:"), "{url}");
    // Nobody is known on this one, so that a page's name for it is refused as without encryption.
    let host = |host| encrypted.ask(None, "GET", "/v1/leases", &[("host", host)], None).status;
    assert_eq!((host("localhost"), host("evil.example")), (200, 421));
}

#[test]
fn both_versions_of_http_are_spoken() {
    let stage = Stage::new();
    let (certificate, key) = stage.identity("curl");
    for (version, said) in [("--http1.1", "1.1 200"), ("--http2", "2 200")] {
        let url = format!("https://localhost:{}/v1/leases", stage.server.tcp.port());
        let curl = |tls: &str| {
            Command::new("curl")
                .args([
                    "-s",
                    version,
                    &format!("--tlsv{tls}"),
                    "--tls-max",
                    tls,
                    "-o",
                    "/dev/null",
                    "-w",
                    "%{http_version} %{http_code}",
                ])
                .args(["--connect-to", &format!("localhost::{}", stage.server.tcp.ip())])
                .args(["--cacert", stage.path("ca.crt").to_str().unwrap()])
                .args(["--cert", certificate.to_str().unwrap(), "--key", key.to_str().unwrap()])
                .arg(&url)
                .output()
                .unwrap()
        };
        for tls in ["1.2", "1.3"] {
            assert_eq!(String::from_utf8(curl(tls).stdout).unwrap(), said, "{version} {tls}");
        }
    }
}
