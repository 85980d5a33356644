//! Three processes with a job once a second. The one that runs it is killed, paused and stopped: no
//! tick is lost, and none is done twice in effect.
#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "this is test code")]
#![allow(clippy::panic, clippy::unwrap_used, reason = "this is test code")]
#![allow(clippy::disallowed_methods, reason = "a test may wait, and has one runtime")]

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use incumbent_proving::Process;
use rusqlite::Connection;

#[test]
fn no_tick_is_lost_or_done_twice_over_hand_overs() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("app.db");
    let mut crew: Vec<Process> = (0..3).map(|number| start(&path, number)).collect();
    for fault in ["stop", "kill", "pause", "kill"] {
        let number = busy(&path);
        match fault {
            "stop" => assert!(crew.remove(number).stop().0, "it left in order"),
            "kill" => crew.remove(number).kill(),
            _ => {
                crew[number].pause();
                std::thread::sleep(Duration::from_millis(4500));
                crew[number].resume();
                continue;
            }
        }
        crew.insert(number, start(&path, number));
    }
    busy(&path);
    for process in crew {
        assert!(process.stop().0, "it left in order");
    }
    let connection = Connection::open(&path).unwrap();
    let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    let ticks = number("SELECT count(*) FROM done");
    let span = number("SELECT max(tick) - min(tick) + 1 FROM done");
    let cents = number("SELECT cents FROM account");
    let nodes = number("SELECT count(DISTINCT node) FROM done");
    println!("{ticks} ticks in {span} s on {nodes} nodes, {cents} cents");
    assert_eq!(ticks, span, "none is lost");
    assert_eq!(cents, ticks, "none is done twice");
    assert!(nodes > 1 && ticks > 8, "{ticks} ticks on {nodes} nodes");
}

/// Waits for another two ticks to be done, and says who did the last.
fn busy(path: &Path) -> usize {
    let mut from = None;
    for _ in 0..1200 {
        std::thread::sleep(Duration::from_millis(50));
        let Some((count, node)) = last(path) else { continue };
        if count >= *from.get_or_insert(count) + 2 {
            return node.rsplit('-').next().unwrap().parse().unwrap();
        }
    }
    panic!("nobody works");
}

fn last(path: &Path) -> Option<(i64, String)> {
    let connection = Connection::open(path).ok()?;
    let sql = "SELECT count(*) OVER (), node FROM done ORDER BY tick DESC LIMIT 1";
    connection.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?))).ok()
}

fn start(path: &Path, number: usize) -> Process {
    let mut command = Command::new(env!("CARGO_BIN_EXE_incumbent-example-scheduler"));
    command.arg(path).arg("* * * * * *");
    command.env("INCUMBENT_NODE", format!("node-{number}")).env("INCUMBENT_TTL", "3s");
    Process::start(&mut command)
}
