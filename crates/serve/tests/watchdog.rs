//! Clients that promised to report progress, and don't (F50).
#![cfg(target_os = "linux")]
#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "this is test code")]

mod common;

use std::time::Duration;

use common::{Server, Trust, pass, text, wait_until};
use incumbent::clock;
use serde_json::json;

#[test]
fn a_client_without_progress_is_told_no_more_and_then_replaced() {
    let server = Server::new(Duration::from_secs(6));
    let mut first = server.hold_here("scheduler", json!({ "name": "a", "watchdog": "2s" }));
    let elected = first.until("elected");
    let trust = Trust::of(&elected);
    let path = format!("/v1/holds/{}/progress", text(&elected, "hold"));
    // Twice as long as it may be silent.
    for _ in 0..20 {
        pass(Duration::from_millis(200));
        assert_eq!(server.ask("POST", &path, Some(json!({}))).status, 204);
    }
    assert!(trust.is_held(), "it reported progress");
    let mut told = trust.until();
    while trust.is_held() {
        told = told.max(trust.until());
        std::thread::park_timeout(Duration::from_millis(5));
    }
    let mut second = server.hold_here("scheduler", json!({ "name": "b" }));
    assert_eq!(first.until("stopping")["why"], "stuck");
    assert_eq!(first.until("lost")["why"], "stuck");
    assert_eq!(second.until("elected")["term"], 2);
    assert!(clock::now() >= told, "it was freed while its client might have trusted");
    let late = server.ask("POST", &path, Some(json!({})));
    assert_eq!((late.status, late.code().as_str()), (410, "lost"));
    let metrics = server.get("/metrics").text;
    let counted = |line: &str| {
        line.starts_with("incumbent_leases_lost_total") && line.contains("reason=\"stuck\"")
    };
    assert!(metrics.lines().any(counted), "{metrics}");
}

#[test]
fn a_duty_without_progress_is_aborted_and_started_again() {
    let server = Server::new(Duration::from_secs(6));
    let body = json!({ "name": "a", "duties": ["one"], "grace": "1s", "watchdog": "1s" });
    let mut a = server.serve_here("work", body);
    let start = a.until("start");
    let (run, trust) = (text(&start, "run").to_owned(), Trust::of(&start));
    pass(Duration::from_millis(1_500));
    assert!(trust.is_held(), "it hasn't said that it has started");
    assert_eq!(server.report(&run, json!({ "state": "started" })), 204);
    let said = json!({ "text": "half of it" });
    assert_eq!(server.ask("POST", &format!("/v1/holds/{run}/progress"), Some(said)).status, 204);
    assert_eq!(a.until("abort")["why"], "stuck");
    assert!(!trust.is_held());
    assert_eq!(server.report(&run, json!({ "state": "stopped" })), 204);
    let again = a.until("start");
    assert_ne!(text(&again, "run"), run);
    wait_until("it is seen to fail", || {
        let shown = server.get("/v1/duties/work%2Fone").json();
        shown["failures"].as_u64() > Some(0) || shown["error"].is_string()
    });
}
