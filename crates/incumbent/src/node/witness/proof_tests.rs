use std::process::{Child, Command};
use std::time::Duration;

use super::*;

fn sleeper() -> Child {
    Command::new("sleep").arg("600").spawn().unwrap()
}

fn identity(children: &[&Child], mark: Option<Mark>) -> HostIdentity {
    let pids: Vec<u32> = children.iter().map(|child| child.id()).collect();
    let evidence = Some(gather::evidence(&pids, mark).unwrap());
    HostIdentity { evidence, ..host::identity().unwrap() }
}

/// Runs the question where it belongs; nothing means that it waits.
fn verdict(identity: &HostIdentity, patience: Duration) -> Option<DeathVerdict> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(patience, death(identity)).await.ok() })
}

const SHORT: Duration = Duration::from_millis(100);
const LONG: Duration = Duration::from_secs(30);

fn end(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn only_the_death_of_all_is_proof() {
    let (one, other) = (sleeper(), sleeper());
    let identity = identity(&[&one, &other], None);
    assert_eq!(verdict(&identity, SHORT), None);
    end(one);
    assert_eq!(verdict(&identity, SHORT), None, "the other lives");
    end(other);
    assert_eq!(verdict(&identity, LONG), Some(DeathVerdict::Dead));
}

#[test]
fn a_paused_process_is_not_dead_and_a_zombie_is() {
    let mut child = sleeper();
    let identity = identity(&[&child], None);
    let pid = Pid::from_raw(child.id().cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    assert_eq!(verdict(&identity, SHORT), None);
    child.kill().unwrap();
    assert_eq!(verdict(&identity, LONG), Some(DeathVerdict::Dead), "although nobody has reaped it");
    child.wait().unwrap();
}

#[test]
fn whatever_does_not_fit_proves_nothing() {
    let child = sleeper();
    let right = identity(&[&child], None);
    let changed = |change: &dyn Fn(&mut HostIdentity, &mut Evidence)| {
        let mut wrong = right.clone();
        let mut evidence = wrong.evidence.take().unwrap();
        change(&mut wrong, &mut evidence);
        wrong.evidence = Some(evidence);
        wrong
    };
    let wrongs = [
        changed(&|host, _| host.boot = "another".to_owned()),
        changed(&|_, evidence| evidence.pid_namespace += 1),
        changed(&|_, evidence| evidence.time_namespace += 1),
        changed(&|_, evidence| evidence.processes[0].start += 1),
        changed(&|_, evidence| evidence.processes[0].inode += 1),
        changed(&|_, evidence| evidence.processes[0].pid = u32::MAX),
        changed(&|_, evidence| evidence.processes.clear()),
        HostIdentity { evidence: None, ..right.clone() },
    ];
    for wrong in &wrongs {
        assert_eq!(verdict(wrong, LONG), Some(DeathVerdict::Unknown), "{wrong:?}");
    }
    end(child);
}

#[test]
fn o7_on_a_copy_of_the_machine_a_missing_process_proves_nothing() {
    let child = sleeper();
    let right = identity(&[&child], None);
    end(child);
    assert_eq!(verdict(&right, LONG), Some(DeathVerdict::Dead), "this is the very machine");
    let changed = |change: &dyn Fn(&mut HostIdentity, &mut Evidence)| {
        let mut copy = right.clone();
        let mut evidence = copy.evidence.take().unwrap();
        change(&mut copy, &mut evidence);
        copy.evidence = Some(evidence);
        copy
    };
    let copies = [
        changed(&|host, _| host.host = "web-2".to_owned()),
        changed(&|_, evidence| evidence.cards = Some(vec!["52:54:00:12:34:56".to_owned()])),
        changed(&|_, evidence| evidence.cards = None),
        // Copied before it started: here that time has yet to come.
        changed(&|_, evidence| evidence.processes[0].start = u64::MAX / 2),
    ];
    for copy in &copies {
        assert_eq!(verdict(copy, LONG), Some(DeathVerdict::Unknown), "{copy:?}");
    }
}

#[test]
fn a_missing_mark_proves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("swept");
    let owner = rustix::process::getuid().as_raw();
    let mark = |owner| Mark { path: path.to_str().unwrap().to_owned(), owner };
    let child = sleeper();
    let (right, foreign) =
        (identity(&[&child], Some(mark(owner))), identity(&[&child], Some(mark(owner + 1))));
    end(child);
    assert_eq!(verdict(&right, LONG), Some(DeathVerdict::Unknown));
    std::fs::write(&path, "").unwrap();
    assert_eq!(verdict(&right, LONG), Some(DeathVerdict::Dead));
    assert_eq!(verdict(&foreign, LONG), Some(DeathVerdict::Unknown), "somebody else's file");
}
