//! What `incumbent run` does for its command, with real processes.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "this is test code, helpers too")]

mod common;

use std::io::Write;
use std::os::unix::net::UnixDatagram;

use common::runs::{Run, Stage, children, send, until};
use common::{Ran, Trial};
use incumbent_proving::{Mood, Proxy};
use rustix::process::Signal;

/// A command that logs its start and its signals, and waits.
const LOGS: &str = r#"
    trap 'echo term >> "$LOG"; exit 9' TERM
    trap 'echo user >> "$LOG"' USR1
    echo "start $INCUMBENT_TERM $INCUMBENT_NODE" >> "$LOG"
    while :; do sleep 0.02; done"#;

#[test]
fn f54_the_exit_code_of_the_command_is_passed_through() {
    let stage = Stage::new();
    for isolate in ["--isolate=never", "--isolate=auto"] {
        stage.run(&[isolate], &["true"]).ends_with(0);
        stage.run(&[isolate], &["sh", "-c", "exit 7"]).ends_with(7);
        stage.run(&[isolate], &["sh", "-c", "kill -9 $$"]).ends_with(137);
        stage.run(&[isolate], &["sh", "-c", "kill -15 $$"]).ends_with(143);
        let missing = stage.run(&[isolate], &["./no-such-command"]);
        missing.ends_with(127).complains(&["no-such-command"]);
        stage.run(&[isolate], &["/"]).ends_with(126);
    }
}

#[test]
fn the_command_finds_what_it_holds_in_its_environment() {
    let stage = Stage::new();
    let mut command = stage.command(&["--node", "billing-1"], &["env"]);
    command.env("INCUMBENT_STORE", format!("{}?busy=5000", stage.trial.url()));
    let said = Ran::of(command).succeeds().stdout;
    for line in [
        "INCUMBENT_LEASE=job",
        "INCUMBENT_TERM=1",
        "INCUMBENT_NODE=billing-1",
        "INCUMBENT_CLUSTER=trial",
        &format!("INCUMBENT_STORE={}?busy=5000", stage.trial.url()),
    ] {
        assert!(said.lines().any(|said| said == line), "{line} is missing in {said}");
    }
    assert!(!said.contains("INCUMBENT_SLOT"), "{said}");
    let again = stage.run(&[], &["sh", "-c", "echo $INCUMBENT_TERM"]).succeeds();
    again.says(&["2"]);
}

#[test]
fn what_has_left_leaves_nothing_but_its_lease() {
    let stage = Stage::new();
    for _ in 0..2 {
        stage.run(&[], &["true"]).succeeds();
    }
    let file = rusqlite::Connection::open(stage.trial.path().join("trial.db")).unwrap();
    let mut keys = file.prepare("SELECT key FROM incumbent_records ORDER BY key").unwrap();
    let keys = keys.query_map([], |row| row.get::<_, String>(0)).unwrap();
    let keys: Vec<String> = keys.map(Result::unwrap).collect();
    assert_eq!(keys, ["lease/job"]);
}

#[test]
fn standard_input_passes_through_and_a_shell_is_asked_for() {
    let stage = Stage::new();
    let input = stage.trial.path().join("input");
    std::fs::write(&input, "through").unwrap();
    let mut command = stage.command(&[], &["cat"]);
    command.stdin(std::fs::File::open(&input).unwrap());
    assert_eq!(Ran::of(command).succeeds().stdout, "through");
    let plain = stage.run(&[], &["echo", "$INCUMBENT_LEASE | cat"]).succeeds();
    assert_eq!(plain.stdout, "$INCUMBENT_LEASE | cat\n");
    let shell = stage.run(&["--shell"], &["echo", "$INCUMBENT_LEASE | tr j J"]).succeeds();
    assert_eq!(shell.stdout, "Job\n");
}

#[test]
fn signals_are_passed_on_and_the_grace_is_kept() {
    let stage = Stage::new();
    let mut run = stage.start(&[], LOGS);
    stage.log.until("start 1");
    run.signal(Signal::USR1);
    stage.log.until("user");
    run.signal(Signal::TERM);
    assert_eq!(run.code(), 9, "its own way to end");
    assert_eq!(stage.log.count("term"), 1);

    let deaf = "trap '' TERM; echo deaf >> \"$LOG\"; while :; do sleep 0.02; done";
    let mut run = stage.start(&["--grace", "300ms"], deaf);
    stage.log.until("deaf");
    run.signal(Signal::TERM);
    assert_eq!(run.code(), 137, "killed after its grace");
}

#[test]
fn f51_nothing_is_left_of_the_command_when_the_next_one_starts() {
    for stage in Stage::on_each_store() {
        for isolate in ["--isolate=never", "--isolate=auto"] {
            // A daemon in a session of its own, which holds the lock, and a command that ends.
            let leaves = "exec 9>>lock; flock -n 9 || exit 1; (setsid sleep 600 >/dev/null 2>&1 &)";
            for _ in 0..3 {
                stage.run(&[isolate], &["sh", "-c", leaves]).succeeds();
            }
        }
    }
}

#[test]
fn f54_a_lease_that_is_given_up_ends_the_command_and_runs_the_hook() {
    for stage in Stage::on_each_store() {
        let hook = "echo \"lost $INCUMBENT_LOST $INCUMBENT_TERM\" >> \"$LOG\"";
        let mut run = stage.start(&["--on-lost", hook, "--node", "one"], LOGS);
        stage.log.until("start 1");
        let _next = stage.start(&["--node", "two"], "echo next >> \"$LOG\"; sleep 600");
        stage.trial.run(&["resign", "job"]).succeeds();
        assert_eq!(run.code(), 76);
        stage.log.until("lost resigned 1");
        stage.log.until("next");
        assert_eq!(stage.log.count("term"), 1, "it had time to end in order");
    }
}

#[test]
fn f53_an_eviction_kills_the_command_and_restart_contends_again() {
    for stage in Stage::on_each_store() {
        let run = stage.start(&["--restart", "--node", "one"], LOGS);
        stage.log.until("start 1");
        until("a name", || {
            let status = stage.trial.run(&["status", "--json"]).succeeds().json();
            (status["members"][0]["node"] == "one").then_some(())
        });
        stage.trial.run(&["evict", "one"]);
        until("another start", || (stage.log.count("start") >= 2).then_some(()));
        assert_eq!(stage.log.count("term"), 0, "closed by others, it is killed at once");
        drop(run);
    }
}

#[test]
fn f53_a_store_that_is_gone_ends_the_command_before_its_trust() {
    let stage = Stage::new();
    let mut run = stage.start(&["--ttl", "3s", "--last-grace", "1s"], LOGS);
    stage.log.until("start 1");
    // Nobody can write any more: another program holds the write lock for good.
    let connection = rusqlite::Connection::open(stage.trial.path().join("trial.db")).unwrap();
    connection.execute_batch("BEGIN EXCLUSIVE").unwrap();
    stage.log.until("term");
    assert_eq!(run.code(), 76);
    drop(connection);
}

#[test]
fn f53_a_server_that_answers_no_more_ends_the_command_before_its_trust() {
    let trial = Trial::on_postgres();
    let proxy = Proxy::blocking_before(&trial.url());
    let stage = Stage::on(trial);
    let mut command = stage.command(&["--ttl", "3s", "--last-grace", "1s"], &["sh", "-c", LOGS]);
    command.env("INCUMBENT_STORE", proxy.url());
    let mut run = Run::start(command);
    stage.log.until("start 1");
    proxy.set(Mood::Silent);
    stage.log.until("term");
    assert_eq!(run.code(), 76);
}

#[test]
fn a_service_manager_is_told_when_it_leads() {
    let stage = Stage::new();
    let path = stage.trial.path().join("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    manager.set_read_timeout(Some(common::PATIENCE)).unwrap();
    let mut command = stage.command(&[], &["sh", "-c", "echo \"socket=$NOTIFY_SOCKET\""]);
    command.env("NOTIFY_SOCKET", &path);
    let ran = Ran::of(command).succeeds();
    assert_eq!(ran.stdout, "socket=\n", "the manager listens to this program alone");
    let mut said = [0; 256];
    let length = manager.recv(&mut said).unwrap();
    let said = String::from_utf8_lossy(&said[..length]).into_owned();
    assert!(said.starts_with("READY=1\nSTATUS=holds job"), "{said}");
}

#[test]
fn the_command_has_a_group_of_its_own_and_the_guardian_too() {
    let stage = Stage::new();
    let run = stage.start(&["--isolate=never"], LOGS);
    stage.log.until("start 1");
    let guardian = run.guardian();
    let command = until("a command", || children(guardian).first().copied());
    let group = |pid: i32| {
        let pid = rustix::process::Pid::from_raw(pid);
        rustix::process::getpgid(pid).unwrap().as_raw_nonzero().get()
    };
    let groups = [group(run.pid()), group(guardian), group(command)];
    assert_eq!(groups, [run.pid(), guardian, command]);
    // A signal to the guardian that is not for it changes nothing.
    send(guardian, Signal::TERM);
    send(guardian, Signal::INT);
    run.signal(Signal::USR1);
    stage.log.until("user");
}

#[test]
fn on_a_terminal_ctrl_z_stops_nothing_and_ctrl_c_ends_the_command() {
    for isolate in ["never", "auto"] {
        let stage = Stage::new();
        let program = env!("CARGO_BIN_EXE_incumbent");
        let run = format!("'{program}' run --lease job --isolate={isolate} -- sh -c \"$SCRIPT\"");
        let mut command = std::process::Command::new("script");
        command.args(["-qec", &run, "/dev/null"]).stdout(std::process::Stdio::null());
        command.env("SCRIPT", LOGS.replace("TERM;", "INT;").replace(" TERM\n", " INT\n"));
        command.env("INCUMBENT_STORE", stage.trial.url()).env("LOG", &stage.log.0);
        command.env("INCUMBENT_CONFIG", "/dev/null").env_remove("INCUMBENT_TTL");
        command.stdin(std::process::Stdio::piped());
        let mut terminal = Run(command.spawn().unwrap());
        stage.log.until("start 1");
        let mut keys = terminal.0.stdin.take().unwrap();
        keys.write_all(b"\x1a\x03").unwrap();
        keys.flush().unwrap();
        stage.log.until("term");
        assert_eq!(terminal.code(), 9, "its own way to end");
        drop(keys);
    }
}

#[test]
fn a_guardian_is_started_by_nobody_else() {
    for role in ["supervise-guardian", "supervise-init", "supervise-launch", "supervise-trustee"] {
        let mut command = common::program(&[role]);
        command.stdin(std::process::Stdio::null());
        Ran::of(command).ends_with(64).complains(&["incumbent run"]);
    }
}

#[test]
fn what_is_not_understood_ends_with_64() {
    let stage = Stage::new();
    for flags in [
        &["--ttl", "1s"][..],
        &["--ttl", "soon"],
        &["--wait", "1s", "--no-wait"],
        &["--slots", "0"],
        &["--isolate=perhaps"],
        &["--node", "a\tb"],
    ] {
        stage.run(flags, &["true"]).ends_with(64);
    }
    stage.trial.run(&["run", "--lease", "job"]).ends_with(64);
    stage.trial.run(&["run", "--", "true"]).ends_with(64);
    stage.trial.run(&["run", "--lease", "", "--", "true"]).ends_with(64);
    let private = stage.trial.run(&["--store", "memory:", "run", "--lease", "job", "--", "true"]);
    private.ends_with(64).complains(&["memory:"]);
    let lost =
        stage.trial.run(&["--store", "sqlite:no/such/a.db", "run", "--lease", "a", "--", "true"]);
    lost.ends_with(69);
}

#[test]
fn as_the_first_process_of_a_container_it_reaps_and_ends_on_a_signal() {
    if !rustix::process::geteuid().is_root() {
        println!("only root can make a PID namespace for this test, so nothing is shown");
        return;
    }
    let stage = Stage::new();
    let mut command = std::process::Command::new("unshare");
    command.args(["--pid", "--fork", "--mount-proc", "--kill-child"]);
    command.arg(env!("CARGO_BIN_EXE_incumbent"));
    command.args(["run", "--lease", "job", "--isolate=never", "--", "sh", "-c", LOGS]);
    command.env("INCUMBENT_STORE", stage.trial.url()).env("LOG", &stage.log.0);
    command.env_remove("INCUMBENT_CLUSTER").current_dir(stage.trial.path());
    let mut container = Run::start(command);
    stage.log.until("start 1");
    let first = until("the first process", || children(container.pid()).first().copied());

    // A stranger in the container loses its parent and ends.
    let mut stranger = std::process::Command::new("nsenter");
    stranger.args(["--target", &first.to_string(), "--pid", "--mount", "sh", "-c"]);
    stranger.arg("(sleep 0.2; echo over >> \"$LOG\") & exit 0").env("LOG", &stage.log.0);
    assert!(stranger.status().unwrap().success());
    stage.log.until("over");
    until("nothing but the guardian below it", || (children(first).len() == 1).then_some(()));

    send(first, Signal::TERM);
    assert_eq!(container.code(), 9, "its command's own way to end");
}
