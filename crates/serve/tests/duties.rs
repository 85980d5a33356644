//! Duties that run at clients over real connections: where they run, and when their leases are freed.
#![cfg(target_os = "linux")]
#![allow(clippy::indexing_slicing, clippy::panic, reason = "this is test code")]
#![allow(clippy::unwrap_used, reason = "this is test code")]

mod common;

use std::io::{Read, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use common::{Lines, PATIENCE, Server, Trust, text, wait_until};
use incumbent::clock;
use serde_json::{Value, json};

/// Nothing in a test waits for so long, so that what happens has another cause.
const LONG: Duration = Duration::from_secs(600);
/// So short that a test can wait for it, and long enough for a busy machine.
const SHORT: Duration = Duration::from_secs(3);

/// A client that reads all that it is sent at once, as a client has to.
struct Reader(Receiver<Value>);

impl Reader {
    fn of<S: Read + Write + Send + 'static>(mut lines: Lines<S>) -> Self {
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            while let Some(line) = lines.next() {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self(receiver)
    }

    fn next(&mut self) -> Option<Value> {
        match self.0.recv_timeout(PATIENCE) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("no line came"),
        }
    }

    fn until(&mut self, event: &str) -> Value {
        let until = clock::now() + PATIENCE;
        while clock::now() < until {
            let line = self.next().unwrap_or_else(|| panic!("the stream ended before {event}"));
            if line["event"] == event {
                return line;
            }
        }
        panic!("not in time: {event}");
    }
}

fn client(name: &str, duties: &[&str]) -> Value {
    json!({ "name": name, "duties": duties, "grace": "1s" })
}

/// The state of a duty, as everybody sees it.
fn state(server: &Server, duty: &str) -> (String, Option<String>) {
    let shown = server.get(&format!("/v1/duties/{}", duty.replace('/', "%2F")));
    if shown.status != 200 {
        return ("unknown".to_owned(), None);
    }
    let shown = shown.json();
    let state = text(&shown, "state").to_owned();
    (state, shown["node"].as_str().map(str::to_owned))
}

/// Waits until a node is known to serve the family.
fn is_there(server: &Server, node: &str) {
    wait_until("it is there", || {
        let members = server.get("/v1/members").json();
        let mut members = members["members"].as_array().unwrap().iter();
        members.any(|it| it["node"] == node && it["families"]["work"].is_array())
    });
}

#[test]
fn a_duty_is_started_moved_by_an_operator_and_never_trusted_twice() {
    let server = Server::new(SHORT * 3);
    let mut a = Reader::of(server.serve_here("work", client("a", &["one"])));
    let serving = a.next().unwrap();
    assert_eq!((text(&serving, "event"), text(&serving, "family")), ("serving", "work"));
    let start = a.until("start");
    assert_eq!((text(&start, "duty"), &start["term"]), ("one", &json!(1)));
    let (run, trust) = (text(&start, "run").to_owned(), Trust::of(&start));
    assert!(trust.is_held());
    assert_eq!(state(&server, "work/one").0, "assigning", "it hasn't said that it has started");
    assert_eq!(server.report(&run, json!({ "state": "started" })), 204);
    wait_until("it is active", || state(&server, "work/one").0 == "active");
    // Its trust can be asked for as that of a hold, and is renewed.
    let path = format!("/v1/holds/{run}/trust");
    let told = server.ask("POST", &path, Some(json!({ "nonce": "n" }))).json();
    assert_eq!((text(&told, "state"), text(&told, "nonce")), ("held", "n"));
    let until = trust.until();
    wait_until("it is renewed", || trust.until() > until);

    let mut b = Reader::of(server.serve_here("work", client("b", &["one"])));
    b.until("serving");
    is_there(&server, "b");
    let moved = server.ask("POST", "/v1/duties/work%2Fone/move", Some(json!({ "to": "b" })));
    assert_eq!(moved.status, 202, "{moved:?}");
    let stop = a.until("stop");
    assert_eq!((text(&stop, "run"), text(&stop, "why")), (run.as_str(), "resigned"));
    assert!(trust.is_held(), "it has its grace");
    assert_eq!(server.report(&run, json!({ "state": "stopped" })), 204);
    let start = b.until("start");
    assert_eq!(start["term"], 2);
    assert!(!trust.is_held() && Trust::of(&start).is_held());
    server.report(text(&start, "run"), json!({ "state": "started" }));
    wait_until("it runs at b", || {
        state(&server, "work/one") == ("active".to_owned(), Some("b".to_owned()))
    });
    let late = server.ask("POST", &path, Some(json!({})));
    assert_eq!((late.status, late.code().as_str()), (410, "lost"));
}

#[test]
fn what_is_not_reported_as_stopped_is_freed_when_told_trust_is_over() {
    let server = Server::new(SHORT * 3);
    let mut a = Reader::of(server.serve_here("work", client("a", &["one"])));
    let start = a.until("start");
    let trust = Trust::of(&start);
    server.report(text(&start, "run"), json!({ "state": "started" }));
    let mut b = Reader::of(server.serve_here("work", client("b", &["one"])));
    b.until("serving");
    let at_a = ("active".to_owned(), Some("a".to_owned()));
    wait_until("it is active", || state(&server, "work/one") == at_a);
    is_there(&server, "b");
    let moved = server.ask("POST", "/v1/duties/work%2Fone/move", Some(json!({ "to": "b" })));
    assert_eq!(moved.status, 202, "{moved:?}");
    a.until("stop");
    let mut told = trust.until();
    // The client says nothing: after its grace it is told no more, and only then is the lease free.
    while trust.is_held() {
        told = told.max(trust.until());
        std::thread::park_timeout(Duration::from_millis(5));
    }
    assert_eq!(text(&a.until("abort"), "duty"), "one");
    assert_eq!(b.until("start")["term"], 2);
    assert!(clock::now() >= told, "it was freed while its client might have trusted");
}

#[test]
fn a_killed_client_is_followed_at_once_in_all_its_duties() {
    let server = Server::new(LONG);
    let mut a = server.curl_serve("work", client("a", &["one", "two"]));
    for _ in 0..2 {
        let start = a.until("start");
        server.report(text(&start, "run"), json!({ "state": "started" }));
    }
    let mut b = Reader::of(server.serve_here("work", client("b", &["one", "two"])));
    b.until("serving");
    a.child.kill().unwrap();
    a.child.wait().unwrap();
    // The ttl is ten minutes: nothing but the proof of its death lets the other have them.
    let mut duties: Vec<String> =
        (0..2).map(|_| text(&b.until("start"), "duty").to_owned()).collect();
    duties.sort();
    assert_eq!(duties, ["one", "two"]);
}

#[test]
fn a_closed_connection_of_a_living_process_frees_no_duty_while_told_trust_lasts() {
    let server = Server::new(SHORT);
    let mut a = server.serve("work", client("a", &["one"]));
    let start = a.until("start");
    let trust = Trust::of(&start);
    let mut b = Reader::of(server.serve_here("work", client("b", &["one"])));
    b.until("serving");
    let told = trust.until();
    drop(a);
    wait_until("the file says that it is over", || !trust.is_held());
    assert!(b.until("start")["term"].as_u64() >= Some(2));
    assert!(clock::now() >= told, "it was freed while its client might have trusted");
}

#[test]
fn a_client_that_says_it_has_ended_gives_all_back_at_once() {
    let server = Server::new(LONG);
    let mut a = server.serve("work", client("a", &["one"]));
    let hold = text(&a.until("serving"), "hold").to_owned();
    let trust = Trust::of(&a.until("start"));
    let mut b = Reader::of(server.serve("work", client("b", &["one"])));
    b.until("serving");
    let shown = server.get(&format!("/v1/holds/{hold}")).json();
    assert_eq!(text(&shown, "state"), "serving");
    assert_eq!(server.delete(&hold), 204);
    assert_eq!(text(&a.until("lost"), "why"), "deleted");
    assert!(!trust.is_held());
    assert_eq!(b.until("start")["term"], 2);
    assert_eq!(server.delete(&hold), 204, "once more does no harm");
}

#[test]
fn a_client_elsewhere_that_is_not_heard_of_loses_its_duties() {
    let server = Server::new(SHORT);
    let mut a = server.serve("work", client("a", &["one"]));
    let trust = Trust::of(&a.until("start"));
    assert_eq!(text(&a.until("lost"), "why"), "unheard");
    assert!(a.next().is_none(), "lost is the last line");
    wait_until("the file says so", || !trust.is_held());
}

#[test]
fn a_duty_that_failed_is_started_again_and_one_that_ended_is_done() {
    let server = Server::new(LONG);
    let mut a = Reader::of(server.serve_here("work", client("a", &["one"])));
    let first = a.until("start");
    let trust = Trust::of(&first);
    let failed = json!({ "state": "failed", "error": "the disk is full" });
    assert_eq!(server.report(text(&first, "run"), failed), 204);
    let again = a.until("start");
    assert_ne!(first["run"], again["run"], "each run has an id of its own");
    assert_eq!(first["term"], again["term"]);
    assert!(!trust.is_held() && Trust::of(&again).is_held());
    server.report(text(&again, "run"), json!({ "state": "started" }));
    assert_eq!(server.report(text(&again, "run"), json!({ "state": "stopped" })), 204);
    wait_until("it is done", || state(&server, "work/one").0 == "done");
}

#[test]
fn a_newer_version_prepares_before_a_duty_changes_over_to_it() {
    // That it is prepared is told with a beat.
    let server = Server::new(SHORT * 7);
    let versioned = |name: &str, version: &str| {
        let mut body = client(name, &["one"]);
        body["version"] = version.into();
        body["prepares"] = true.into();
        body
    };
    let mut a = Reader::of(server.serve_here("work", versioned("a", "1")));
    let start = a.until("start");
    server.report(text(&start, "run"), json!({ "state": "started" }));
    wait_until("it is active", || state(&server, "work/one").0 == "active");
    let mut b = Reader::of(server.serve_here("work", versioned("b", "2")));
    let hold = text(&b.until("serving"), "hold").to_owned();
    assert_eq!(text(&b.until("prepare"), "duty"), "one");
    assert!(Trust::of(&start).is_held(), "it runs on meanwhile");
    assert_eq!(server.report(&hold, json!({ "state": "prepared", "duty": "one" })), 204);
    a.until("stop");
    server.report(text(&start, "run"), json!({ "state": "stopped" }));
    assert_eq!(b.until("start")["term"], 2);
}

#[test]
fn what_is_reported_of_the_wrong_thing_is_refused() {
    let server = Server::new(LONG);
    let mut a = Reader::of(server.serve_here("work", client("a", &["one"])));
    let serving = a.until("serving");
    let (hold, run) = (text(&serving, "hold"), text(&a.until("start"), "run").to_owned());
    for body in [json!({ "state": "started" }), json!({ "state": "prepared" })] {
        assert_eq!(server.report(hold, body), 400);
    }
    assert_eq!(server.report(&run, json!({ "state": "prepared", "duty": "one" })), 400);
    assert_eq!(server.report(&run, json!({ "state": "asleep" })), 400);
    assert_eq!(server.report(&"0".repeat(32), json!({ "state": "started" })), 404);
    let mut lease = server.hold_here("scheduler", json!({ "name": "a" }));
    let elected = lease.until("elected");
    assert_eq!(server.report(text(&elected, "hold"), json!({ "state": "started" })), 400);
    let refused = server.ask("POST", "/v1/families/a%2Fb/serve", Some(client("a", &["one"])));
    assert_eq!((refused.status, refused.code().as_str()), (400, "bad-request"));
}

#[test]
fn shutting_down_tells_each_duty_to_stop_and_waits_for_it() {
    let server = Server::new(LONG);
    let mut a = Reader::of(server.serve_here("work", client("a", &["one"])));
    let start = a.until("start");
    server.report(text(&start, "run"), json!({ "state": "started" }));
    wait_until("it is active", || state(&server, "work/one").0 == "active");
    let service = server.service.clone();
    let shut = server.runtime().spawn(async move { service.shut_down().await });
    assert_eq!(text(&a.until("stop"), "why"), "shutdown");
    assert!(!shut.is_finished(), "the client may trust");
    server.report(text(&start, "run"), json!({ "state": "stopped" }));
    assert_eq!(text(&a.until("lost"), "why"), "shutdown");
    server.runtime().block_on(shut).unwrap();
}
