//! Holding leases over real connections: who holds one, and when it is freed.
#![cfg(target_os = "linux")]

mod common;

use std::time::Duration;

use common::{Server, Trust, pass, text, wait_until};
use incumbent::clock;
use serde_json::json;

/// Nothing in a test waits for so long, so that what happens has another cause.
const LONG: Duration = Duration::from_secs(600);
/// So short that a test can wait for it, and long enough for a busy machine.
const SHORT: Duration = Duration::from_secs(3);

#[test]
fn a_hold_waits_is_elected_and_is_freed_by_its_client() {
    let server = Server::new(LONG);
    let mut first = server.hold("scheduler", json!({ "name": "a", "address": "a:80" }));
    assert_eq!(first.status, 200);
    let waiting = first.next().unwrap();
    assert_eq!((text(&waiting, "event"), &waiting["ttl_ms"]), ("waiting", &json!(600_000)));
    let elected = first.until("elected");
    assert_eq!((text(&elected, "lease"), &elected["term"]), ("scheduler", &json!(1)));
    let hold = text(&elected, "hold").to_owned();
    assert_eq!(hold.len(), 32);
    // The file is as docs/http.md says, and only who was told its name can find it.
    let (trust, bytes) = (Trust::of(&elected), Trust::of(&elected).bytes());
    assert_eq!(&bytes[..8], b"INCTRST1");
    assert_eq!(bytes[16..24], 1_u64.to_le_bytes());
    let id = u128::from_str_radix(&hold, 16).unwrap().to_be_bytes();
    assert_eq!(bytes[24..40], id);
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let boot = u128::from_str_radix(&boot.trim().replace('-', ""), 16).unwrap().to_be_bytes();
    assert_eq!(bytes[40..56], boot);
    assert!(trust.is_held());
    let directory = std::path::Path::new(text(&elected, "trust_file")).parent().unwrap();
    let mode = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(directory).unwrap());
    assert_eq!(mode & 0o777, 0o711);

    let mut second = server.hold("scheduler", json!({ "name": "b" }));
    loop {
        let line = second.until("waiting");
        if line["behind"]["node"] == "a" {
            break;
        }
    }
    assert_eq!(server.delete(&hold), 204);
    assert_eq!(first.until("lost")["why"], "deleted");
    assert!(first.next().is_none(), "lost is the last line");
    assert!(!trust.is_held());
    let elected = second.until("elected");
    assert_eq!(elected["term"], 2);
    assert_ne!(text(&elected, "hold"), hold);
    assert_eq!(server.delete(&hold), 204, "once more does no harm");
    let trust = server.ask("POST", &format!("/v1/holds/{hold}/trust"), Some(json!({})));
    assert_eq!((trust.status, trust.code().as_str()), (410, "lost"));
    let unknown = server.ask("PUT", &format!("/v1/holds/{}", "0".repeat(32)), Some(json!({})));
    assert_eq!((unknown.status, unknown.code().as_str()), (404, "no-such-hold"));
}

#[test]
fn trust_is_told_with_the_nonce_and_never_in_the_stream() {
    let server = Server::new(LONG);
    let mut stream = server.hold("scheduler", json!({ "name": "a" }));
    let mut lines = vec![stream.next().unwrap()];
    while lines.last().unwrap()["event"] != "elected" {
        lines.push(stream.next().unwrap());
    }
    for line in &lines {
        // Settings are there; nothing that counts from a moment is.
        let fields = line.as_object().unwrap().keys();
        let known = [
            "event",
            "hold",
            "lease",
            "behind",
            "ttl_ms",
            "grace_ms",
            "renew_ms",
            "term",
            "member",
            "trust_file",
        ];
        assert!(fields.clone().all(|field| known.contains(&field.as_str())), "{line}");
    }
    let elected = lines.last().unwrap();
    let path = format!("/v1/holds/{}/trust", text(elected, "hold"));
    let before = clock::now();
    let answer = server.ask("POST", &path, Some(json!({ "nonce": "n-1" })));
    assert_eq!(answer.headers["cache-control"], "no-store");
    let answer = answer.json();
    assert_eq!((text(&answer, "nonce"), text(&answer, "state")), ("n-1", "held"));
    let told = before + Duration::from_millis(answer["trusted_for_ms"].as_u64().unwrap());
    assert!(told <= Trust::of(elected).until(), "counted from before, it never exceeds the file");
    assert!(told > clock::now());
}

#[test]
fn each_hold_is_a_member_of_its_own_without_evidence() {
    let server = Server::new(LONG);
    let mut one = server.hold_here("one", json!({ "name": "client", "labels": { "zone": "x" } }));
    let mut two = server.hold_here("two", json!({ "name": "client" }));
    let (one, two) = (one.until("elected"), two.until("elected"));
    assert_ne!(one["member"], two["member"]);
    let cluster = server.service.node().cluster().clone();
    let mut members = Vec::new();
    wait_until("the profiles are there", || {
        members = server.runtime().block_on(cluster.members()).unwrap();
        members.iter().filter(|member| member.node == "client").count() == 2
    });
    for member in members.iter().filter(|member| member.node == "client") {
        let evidence = member.host.as_ref().and_then(|host| host.evidence.as_ref());
        assert!(evidence.is_none(), "the end of the server proves nothing about its client");
    }
}

#[test]
fn a_killed_client_on_the_unix_socket_is_followed_at_once() {
    let server = Server::new(LONG);
    let mut first = server.curl("scheduler", json!({ "name": "a" }));
    first.until("elected");
    let mut second = server.curl("scheduler", json!({ "name": "b" }));
    second.until("waiting");
    first.child.kill().unwrap();
    first.child.wait().unwrap();
    // The ttl is ten minutes: nothing but the proof of its death lets the other have it.
    assert_eq!(second.until("elected")["term"], 2);
}

#[test]
fn a_closed_connection_of_a_living_process_frees_nothing_while_told_trust_lasts() {
    let server = Server::new(SHORT);
    let mut first = server.hold_here("scheduler", json!({ "name": "a" }));
    let elected = first.until("elected");
    let trust = Trust::of(&elected);
    let mut second = server.hold_here("scheduler", json!({ "name": "b" }));
    let told = trust.until();
    drop(first);
    wait_until("the file says that it is over", || !trust.is_held());
    second.until("elected");
    assert!(clock::now() >= told, "it was freed while its client might have trusted");
}

#[test]
fn a_closed_tcp_connection_frees_nothing_either() {
    let server = Server::new(SHORT);
    let mut first = server.hold("scheduler", json!({ "name": "a" }));
    let elected = first.until("elected");
    let told = Trust::of(&elected).until();
    let mut second = server.hold_here("scheduler", json!({ "name": "b" }));
    drop(first);
    second.until("elected");
    assert!(clock::now() >= told);
}

#[test]
fn who_promised_to_stop_first_is_taken_at_its_word() {
    let server = Server::new(LONG);
    let mut second;
    {
        let mut first = server.hold("scheduler", json!({ "name": "a", "on_close": "ended" }));
        first.until("elected");
        second = server.hold("scheduler", json!({ "name": "b", "on_close": "ended" }));
        second.until("waiting");
    }
    assert_eq!(second.until("elected")["term"], 2);
}

#[test]
fn what_was_told_over_http_is_kept_after_the_connection_is_gone() {
    let server = Server::new(SHORT);
    let mut first = server.hold("scheduler", json!({ "name": "a" }));
    let hold = text(&first.until("elected"), "hold").to_owned();
    let asked = server.ask("POST", &format!("/v1/holds/{hold}/trust"), Some(json!({}))).json();
    let latest = clock::now() + Duration::from_millis(asked["trusted_for_ms"].as_u64().unwrap());
    let mut second = server.hold_here("scheduler", json!({ "name": "b" }));
    drop(first);
    second.until("elected");
    // In whole milliseconds, rounded down.
    assert!(clock::now() + Duration::from_millis(50) >= latest);
}

#[test]
fn a_stopped_client_does_not_hold_its_lease_for_ever() {
    let server = Server::new(SHORT);
    let mut first = server.curl("scheduler", json!({ "name": "a" }));
    let trust = Trust::of(&first.until("elected"));
    first.signal("-STOP");
    let mut second = server.hold_here("scheduler", json!({ "name": "b" }));
    // It reads all the while, for who doesn't is not heard of either.
    let elected = std::thread::spawn(move || {
        second.until("elected");
        (clock::now(), second)
    });
    let mut last = trust.until();
    wait_until("it isn't renewed any more", || {
        last = last.max(trust.until());
        !trust.is_held()
    });
    let (elected, _second) = elected.join().unwrap();
    assert!(elected >= last, "it was freed while its client might have trusted");
    // Once it goes on, it reads that it is over.
    first.signal("-CONT");
    assert_eq!(first.until("stopping")["why"], "unheard");
    first.until("lost");
}

/// A connection of which one way is closed isn't closed: somebody may still read it.
#[test]
fn a_half_closed_unix_socket_frees_nothing_while_told_trust_lasts() {
    let server = Server::new(SHORT);
    let stream = std::os::unix::net::UnixStream::connect(&server.unix).unwrap();
    let half = stream.try_clone().unwrap();
    let body = json!({ "name": "a", "on_close": "ended" });
    let mut first = common::Lines::post(stream, "/v1/leases/scheduler/hold", &body);
    let trust = Trust::of(&first.until("elected"));
    let mut second = server.hold_here("scheduler", json!({ "name": "b" }));
    let elected = std::thread::spawn(move || {
        second.until("elected");
        (clock::now(), second)
    });
    let told = trust.until();
    half.shutdown(std::net::Shutdown::Write).unwrap();
    let (elected, _second) = elected.join().unwrap();
    assert!(elected >= told, "it was freed while its client might have trusted");
    drop(first);
}

#[test]
fn a_client_elsewhere_has_to_be_heard_of() {
    let server = Server::new(SHORT);
    let mut silent = server.hold("silent", json!({ "name": "a" }));
    silent.until("elected");
    let mut lively = server.hold("lively", json!({ "name": "a" }));
    let hold = text(&lively.until("elected"), "hold").to_owned();
    let until = clock::now() + SHORT * 3;
    while clock::now() < until {
        let put = server.ask("PUT", &format!("/v1/holds/{hold}"), Some(json!({}))).json();
        assert_eq!(put["state"], "held", "{put}");
        pass(SHORT / 6);
    }
    assert_eq!(silent.until("stopping")["why"], "unheard");
    assert_eq!(silent.until("lost")["why"], "unheard");
    assert_eq!(server.get("/leader/lively").status, 200);
    assert_eq!(server.get("/leader/silent").status, 503);
}

#[test]
fn a_hold_that_shall_resign_has_its_grace_and_is_trusted_in_it() {
    let server = Server::new(SHORT);
    let mut first = server.hold_here("scheduler", json!({ "name": "a", "grace": "6s" }));
    let elected = first.until("elected");
    let (trust, hold) = (Trust::of(&elected), text(&elected, "hold").to_owned());
    let asked = server.ask("POST", "/v1/leases/scheduler/resign", Some(json!({})));
    assert_eq!(asked.status, 202);
    assert_eq!(first.until("stopping")["why"], "resigned");
    assert_eq!(server.get("/leader/scheduler").status, 503, "it leads no more");
    // Who reads is alive.
    let reading = std::thread::spawn(move || while first.next().is_some() {});
    // Longer than a ttl: without renewal trust would have run out.
    let until = clock::now() + SHORT + SHORT / 3;
    while clock::now() < until {
        assert!(trust.is_held(), "the work has its grace");
        pass(Duration::from_millis(50));
    }
    let mut second = server.hold_here("scheduler", json!({ "name": "b" }));
    second.until("waiting");
    assert_eq!(server.delete(&hold), 204);
    reading.join().unwrap();
    second.until("elected");
    // F30: who has just resigned stands back, also as a new member.
    let mut again = server.hold_here("scheduler", json!({ "name": "a" }));
    again.until("waiting");
}

#[test]
fn after_the_grace_nothing_more_is_told() {
    let server = Server::new(SHORT);
    let mut first = server.hold_here("scheduler", json!({ "name": "a", "grace": "100ms" }));
    let trust = Trust::of(&first.until("elected"));
    let mut second = server.hold_here("scheduler", json!({ "name": "b" }));
    second.until("waiting");
    let told = trust.until();
    assert_eq!(server.ask("POST", "/v1/leases/scheduler/resign", Some(json!({}))).status, 202);
    first.until("lost");
    assert!(!trust.is_held());
    second.until("elected");
    assert!(clock::now() >= told);
}

#[test]
fn an_evicted_hold_is_lost_and_its_told_trust_is_kept() {
    let server = Server::new(SHORT);
    let mut first = server.hold_here("scheduler", json!({ "name": "a" }));
    let elected = first.until("elected");
    let trust = Trust::of(&elected);
    let mut second = server.hold_here("scheduler", json!({ "name": "b" }));
    second.until("waiting");
    let told = trust.until();
    let evict = format!("/v1/members/{}/evict", text(&elected, "member"));
    assert_eq!(server.ask("POST", &evict, Some(json!({}))).status, 202);
    assert_eq!(first.until("lost")["why"], "evicted");
    assert!(!trust.is_held());
    second.until("elected");
    assert!(clock::now() >= told, "it was freed while its client might have trusted");
}

/// F61: a waiter whose own member is closed while it waits joins anew, and is elected all the same.
#[test]
fn a_waiter_that_loses_its_member_is_elected_all_the_same() {
    let server = Server::new(SHORT);
    let mut first = server.hold_here("scheduler", json!({ "name": "a" }));
    let hold = text(&first.until("elected"), "hold").to_owned();
    let reading = std::thread::spawn(move || while first.next().is_some() {});
    let mut second = server.hold_here("scheduler", json!({ "name": "b" }));
    second.until("waiting");
    let member = || {
        let members = server.get("/v1/members").json()["members"].as_array().unwrap().clone();
        let alive = |it: &serde_json::Value| it["node"] == "b" && it["state"] == "alive";
        members.iter().find(|it| alive(it)).map(|it| text(it, "id").to_owned())
    };
    wait_until("it is a member", || member().is_some());
    let before = member();
    let evict = format!("/v1/members/{}/evict", before.as_deref().unwrap());
    assert_eq!(server.ask("POST", &evict, Some(json!({}))).status, 202);
    wait_until("it is another member", || member().is_some() && member() != before);
    assert_eq!(server.delete(&hold), 204);
    reading.join().unwrap();
    assert_eq!(second.until("elected")["term"], 2);
}

#[test]
fn a_lease_can_be_held_without_a_stream() {
    let server = Server::new(SHORT);
    let held = server.ask("POST", "/v1/leases/scheduler/acquire", Some(json!({ "name": "a" })));
    assert_eq!(held.status, 201, "{held:?}");
    let hold = text(&held.json(), "hold").to_owned();
    assert_eq!(held.headers["location"], format!("/v1/holds/{hold}"));
    assert!(held.json().get("trusted_for_ms").is_none());
    let body = json!({ "name": "b", "wait": false });
    let refused = server.ask("POST", "/v1/leases/scheduler/acquire", Some(body));
    assert_eq!((refused.status, refused.code().as_str()), (409, "held"));
    assert_eq!(refused.json()["holder"]["node"], "a");
    let body = json!({ "name": "b", "wait": "50ms" });
    let late = server.ask("POST", "/v1/leases/scheduler/acquire", Some(body));
    assert_eq!((late.status, late.code().as_str()), (504, "timeout"));
    let shown = server.get(&format!("/v1/holds/{hold}"));
    assert_eq!((shown.status, text(&shown.json(), "state")), (200, "held"));
    assert_eq!(server.delete(&hold), 204);
    let next = server.ask("POST", "/v1/leases/scheduler/acquire", Some(json!({ "name": "b" })));
    assert_eq!((next.status, &next.json()["term"]), (201, &json!(2)));
    // Its client is never heard of again.
    let mut third = server.hold_here("scheduler", json!({ "name": "c" }));
    assert_eq!(third.until("elected")["term"], 3);
}

#[test]
fn when_the_server_ends_its_clients_end_first() {
    let server = Server::new(SHORT);
    let mut obedient = server.hold_here("one", json!({ "name": "a", "grace": "30s" }));
    let hold = text(&obedient.until("elected"), "hold").to_owned();
    let mut stubborn = server.hold_here("two", json!({ "name": "b", "grace": "100ms" }));
    let trust = Trust::of(&stubborn.until("elected"));
    let told = trust.until();
    let (service, runtime) = (server.service.clone(), server.runtime().handle().clone());
    let ending = runtime.spawn(async move { service.shut_down().await });
    assert_eq!(obedient.until("stopping")["why"], "shutdown");
    let refused = server.ask("POST", "/v1/leases/x/hold", Some(json!({ "name": "c" })));
    assert_eq!((refused.status, refused.code().as_str()), (503, "stopping"));
    assert_eq!((server.get("/readyz").status, server.get("/livez").status), (503, 200));
    assert!(!ending.is_finished());
    assert_eq!(server.delete(&hold), 204);
    server
        .runtime()
        .block_on(async { tokio::time::timeout(common::PATIENCE, ending).await })
        .unwrap()
        .unwrap();
    assert!(clock::now() >= told, "it left while a client might have trusted");
    assert!(!trust.is_held());
}

#[test]
fn a_runtime_that_is_dropped_keeps_what_was_told() {
    let mut server = Server::new(SHORT);
    let mut first = server.hold_here("scheduler", json!({ "name": "a" }));
    let trust = Trust::of(&first.until("elected"));
    let other = Server::with(server.store.clone(), SHORT, incumbent_serve::Access::open());
    let mut second = other.hold_here("scheduler", json!({ "name": "b" }));
    second.until("waiting");
    let told = trust.until();
    server.runtime.take().unwrap().shutdown_timeout(Duration::from_secs(5));
    second.until("elected");
    assert!(clock::now() >= told, "it was freed while its client might have trusted");
}

#[test]
fn events_are_sent_if_they_are_asked_for() {
    let server = Server::new(LONG);
    let stream = std::net::TcpStream::connect(server.tcp).unwrap();
    let mut text = String::new();
    {
        use std::io::{BufRead, BufReader, Write};
        let mut stream = stream;
        let body = "{\"name\":\"a\"}";
        write!(
            stream,
            "POST /v1/leases/x/hold HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut reader = BufReader::new(stream);
        while !text.contains("event: elected\ndata: {") {
            assert!(reader.read_line(&mut text).unwrap() > 0);
        }
    }
    assert!(text.contains("content-type: text/event-stream"));
    assert!(text.contains("event: waiting\ndata: {"));
}

#[test]
fn one_attempt_is_one_attempt() {
    let server = Server::new(LONG);
    let body = json!({ "name": "a", "wait": false });
    let mut first = server.hold("scheduler", body.clone());
    first.until("elected");
    let refused = server.ask("POST", "/v1/leases/scheduler/hold", Some(body));
    assert_eq!((refused.status, refused.code().as_str()), (409, "held"));
    let bad = [
        json!({}),
        json!({ "name": "" }),
        json!({ "name": "a", "unknown": 1 }),
        json!({ "name": "a", "ttl": "1ms" }),
        json!({ "name": "a", "grace": "1h" }),
        json!({ "name": "a", "wait": "2h" }),
        json!({ "name": "a", "on_close": "perhaps" }),
    ];
    for body in bad {
        let refused = server.ask("POST", "/v1/leases/scheduler/hold", Some(body.clone()));
        assert_eq!((refused.status, refused.code().as_str()), (400, "bad-request"), "{body}");
    }
    let refused =
        server.ask("POST", "/v1/leases/incumbent%2Fleader/hold", Some(json!({ "name": "a" })));
    assert_eq!(refused.status, 400);
}

#[test]
fn o62_what_is_held_is_read_no_more() {
    let server = Server::new(LONG);
    for number in 0..20 {
        let path = format!("/v1/leases/{number}/acquire");
        assert_eq!(server.ask("POST", &path, Some(json!({ "name": "a" }))).status, 201);
    }
    pass(Duration::from_secs(2));
    let requests = || server.requests.load(std::sync::atomic::Ordering::SeqCst);
    let before = requests();
    pass(Duration::from_secs(3));
    // Each holder beats every 200 s, and the server's own node every 5.
    let asked = requests() - before;
    assert!(asked < 20, "{asked} requests in 3 s");
}
