//! What Prometheus scrapes, and the rules that it alerts by: as promtool, which is a part of it, reads them.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "this is test code")]

mod common;

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use common::{Server, text};
use serde_json::json;

const LONG: Duration = Duration::from_secs(600);

/// F67: what is shown is the trust of the moment, and nobody's id.
#[test]
fn a_scrape_tells_who_holds_and_says_it_in_prometheus_own_words() {
    let server = Server::new(LONG);
    let mut hold = server.hold_here("odd%20%22lease%22%5C", json!({ "name": "a" }));
    let elected = hold.until("elected");
    let page = server.get("/metrics");
    assert_eq!(page.status, 200);
    let line = r#"incumbent_lease_held{cluster="default",lease="odd \"lease\"\\",node="a"} 1"#;
    assert!(page.text.contains(line), "{}", page.text);
    let alias = r#"leader_election_master_status{name="odd \"lease\"\\"} 1"#;
    assert!(page.text.contains(alias), "{}", page.text);
    assert!(!page.text.contains(text(&elected, "member")), "no member's id is a label");
    promtool(&["check", "metrics"], &repository(), &page.text);

    let open = [("accept", "application/openmetrics-text")];
    let open = server.ask_with("GET", "/metrics", &open, None).text;
    assert!(open.contains(line) && open.ends_with("# EOF\n"), "{open}");

    server.delete(text(&elected, "hold"));
    let page = server.get("/metrics").text;
    assert!(!page.contains(line) && !page.contains(alias), "{page}");
}

/// The table of names in the documentation is what is shown, no more and no less, but for what nothing has
/// happened of here.
#[test]
fn the_table_of_names_is_true() {
    let server = Server::new(LONG);
    server.hold_here("scheduler", json!({ "name": "a" })).until("elected");
    let page = server.get("/metrics").text;
    let shown: BTreeSet<&str> =
        page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    let table = std::fs::read_to_string(repository().join("docs/metrics.md")).unwrap();
    let told: BTreeSet<&str> =
        table.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    let untold: Vec<_> = shown.difference(&told).collect();
    assert!(untold.is_empty(), "docs/metrics.md doesn't tell of {untold:?}");
    // The server itself stands for nothing here, and no duty is there.
    let quiet = [
        "incumbent_duties",
        "incumbent_elections_won_total",
        "incumbent_hand_over_seconds",
        "incumbent_leaderless_seconds_total",
        "incumbent_leases_lost_total",
    ];
    let missing: Vec<_> = told.difference(&shown).filter(|name| !quiet.contains(name)).collect();
    assert!(missing.is_empty(), "docs/metrics.md tells of {missing:?}");
}

/// Each alert fires when it should, and not before.
#[test]
fn alert_rules_pass_their_tests() {
    let rules = repository().join("ops/prometheus");
    promtool(&["check", "rules", "alerts.yml"], &rules, "");
    promtool(&["test", "rules", "alerts_test.yml"], &rules, "");
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn promtool(arguments: &[&str], directory: &Path, input: &str) {
    let mut child = Command::new("promtool")
        .args(arguments)
        .current_dir(directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool is there: Debian's package prometheus has it");
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "promtool {arguments:?}: {said}");
}
