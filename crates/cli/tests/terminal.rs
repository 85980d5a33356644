//! Live views on a real terminal: they draw, obey keys, and give the terminal back.
#![cfg(target_os = "linux")]

mod common;

use common::terminal::Terminal;
use common::{Trial, program};
use incumbent::family;
use rustix::process::Signal;

#[test]
fn top_shows_a_cluster_and_quits() {
    let trial = Trial::with_store();
    let node = trial.node("billing-1");
    let _serving = trial.serving(&node, family("projection").duties(["orders"]));
    let mut terminal = Terminal::run(trial.command(&["top"]));
    terminal.until_shown(&["Members", "billing-1", "alive", "projection/orders", "active"]);
    assert!(!terminal.is_as_a_shell_expects(), "keys come one by one");
    terminal.press("/order");
    terminal.until_shown(&["order█"]);
    terminal.press("\rp");
    terminal.until_shown(&["paused"]);
    terminal.press("q");
    assert_eq!(terminal.ended().code(), Some(0));
}

#[test]
fn top_gives_the_terminal_back_when_it_is_told_to_end() {
    let trial = Trial::with_store();
    let mut terminal = Terminal::run(trial.command(&["top"]));
    terminal.until_shown(&["Members", "joined", "quit"]);
    terminal.signal(Signal::TERM);
    assert_eq!(terminal.ended().code(), Some(130));
    terminal.until_shown(&["SIGTERM"]);
}

#[test]
fn o33_repair_asks_for_the_name_of_the_cluster() {
    let trial = Trial::with_store();
    trial.forge("lease/scheduler", "?");
    for (answer, said, left) in [("yes", "nothing was changed", true), ("trial", "repaired", false)]
    {
        let mut terminal = Terminal::run(trial.command(&["store", "repair", "--apply"]));
        terminal.until_shown(&[
            "lease/scheduler",
            "write the lease again",
            "Type the cluster's name",
        ]);
        terminal.press(format!("{answer}\n"));
        terminal.until_shown(&[said]);
        assert_eq!(trial.record("lease/scheduler").as_deref() == Some("?"), left);
    }
}

#[test]
fn top_without_a_terminal_says_what_to_use_instead() {
    let trial = Trial::with_store();
    trial.run(&["top"]).ends_with(64).complains(&["terminal", "status", "watch"]);
    trial.run(&["top", "--json"]).ends_with(64).complains(&["status --json"]);
}

#[test]
fn the_live_view_of_the_demo_obeys_keys_and_quits() {
    let mut terminal = Terminal::run(program(&["demo"]));
    terminal.until_shown(&["scheduler", "node-3", "running", "customers", "stock", "transfer"]);
    // The line of keys names whom they are about: the leader, once there is one.
    let leaders = ["node-1:", "node-2:", "node-3:"];
    terminal.until("a leader", |text| leaders.iter().any(|leader| text.contains(leader)));
    terminal.press("k");
    terminal.until_shown(&["kill", "killed"]);
    terminal.press("a");
    terminal.until_shown(&["node-4"]);
    terminal.press("q");
    assert_eq!(terminal.ended().code(), Some(0));
    terminal.until_shown(&["Never two leaders"]);
}

#[test]
fn the_live_view_of_the_demo_gives_the_terminal_back_when_it_is_told_to_end() {
    let mut terminal = Terminal::run(program(&["demo"]));
    terminal.until_shown(&["Timeline", "joined"]);
    terminal.signal(Signal::TERM);
    assert_eq!(terminal.ended().code(), Some(130));
}
