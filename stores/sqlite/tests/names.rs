//! One file under several names: every name has a log of its own, so that processes that use
//! different names don't see each other (O5).
#![cfg(unix)]
#![allow(clippy::panic, clippy::expect_used, clippy::indexing_slicing)] // A test fails by panicking, its helpers too.

mod common;

use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::fs::symlink;
use std::path::Path;

use common::{
    Place, applied, assert_done, change, child_with_mounts, create, eventually, find, read, role,
    send, version, write,
};
use incumbent_core::store::{ErrorKind, Found, Lane, Store, StoreError};
use incumbent_sqlite::SqliteStore;

const LANES: [Lane; 3] = [Lane::Beat, Lane::Change, Lane::Watch];

fn assert_says(error: &StoreError, kind: ErrorKind, words: &[&str]) {
    assert_eq!(error.kind, kind, "{error}");
    for word in words {
        assert!(error.message.contains(word), "no {word:?} in: {error}");
    }
}

/// Both see what the other writes.
fn assert_share(one: &SqliteStore, two: &SqliteStore) {
    assert_eq!(write(one, "c", create("shared", 1)), Ok(applied(1)));
    assert_eq!(write(two, "c", change("shared", 1, 2)), Ok(applied(2)));
    assert_eq!(find(one, "c", "shared").expect("a record").version, version(2));
}

#[test]
fn a_file_with_a_second_name_is_refused_under_either() {
    let place = Place::new();
    write(&place.store(), "c", create("k", 1)).expect("a write");
    place.wait_until_closed();
    let other = place.directory.path().join("other.db");
    fs::hard_link(place.path(), &other).expect("a second name");
    for path in [&place.path(), &other] {
        let error = SqliteStore::open(path).expect_err("two names");
        let name = path.display().to_string();
        assert_says(&error, ErrorKind::Rejected, &[&name, "2 names", "hard link", "Remove"]);
    }
    fs::remove_file(other).expect("the second name");
    assert!(find(&place.store(), "c", "k").is_some());
}

#[test]
fn a_second_name_given_to_a_file_in_use_stops_every_lane_until_it_is_gone() {
    let place = Place::new();
    let store = place.store();
    write(&store, "c", create("k", 1)).expect("a write");
    let other = place.directory.path().join("other.db");
    fs::hard_link(place.path(), &other).expect("a second name");
    for lane in LANES {
        let error = send(&store, "c", lane, vec![change("k", 1, 2)], vec![]).expect_err("linked");
        assert_says(&error, ErrorKind::Rejected, &["app.db", "2 names", "hard link"]);
        let error = send(&store, "c", lane, vec![], vec![read("k")]).expect_err("linked");
        assert_says(&error, ErrorKind::Rejected, &["app.db", "2 names"]);
    }
    fs::remove_file(other).expect("the second name");
    assert_eq!(find(&store, "c", "k").expect("a record").version, version(1));
    assert_eq!(write(&store, "c", change("k", 1, 3)), Ok(applied(3)));
}

#[test]
fn symbolic_links_lead_to_one_log() {
    let place = Place::new();
    let here = place.directory.path();
    fs::create_dir(here.join("folder")).expect("a directory");
    symlink(place.path(), here.join("folder/link.db")).expect("a link");
    symlink("folder/link.db", here.join("link to a link.db")).expect("a link");
    symlink(here, here.join("around")).expect("a link");
    let names = ["app.db", "folder/link.db", "link to a link.db", "around/app.db"];
    for name in names.iter().skip(1) {
        let one = place.store();
        let two = SqliteStore::open(here.join(name)).expect("the store opens");
        assert_share(&one, &two);
        let logs = fs::read_dir(here.join("folder")).expect("a list").count();
        assert_eq!(logs, 1, "no log beside the link");
        drop((one, two));
        place.wait_until_closed();
        fs::remove_file(place.path()).expect("the file");
    }
}

/// O54: the log stays where the file was, and whoever opens the link has one beside the new name.
#[test]
fn a_file_that_was_moved_behind_a_link_in_its_place_is_no_longer_used() {
    let place = Place::new();
    let (path, moved) = (place.path(), place.path().with_file_name("moved.db"));
    let store = place.store();
    for (number, lane) in LANES.into_iter().enumerate() {
        let key = format!("k{number}");
        send(&store, "c", lane, vec![create(&key, 1)], vec![]).expect("a write");
    }
    fs::rename(&path, &moved).expect("it is moved");
    symlink(&moved, &path).expect("a link");
    let error = send(&store, "c", Lane::Beat, vec![], vec![read("k0")]).expect_err("another log");
    assert_says(&error, ErrorKind::Unavailable, &["app.db", "replaced"]);
    // Once all of it is opened anew, it is one with whoever opens the path or the file.
    eventually("it is open again", || find_in(&store, "k0"));
    assert_share(&store, &SqliteStore::open(&*moved).expect("the store opens"));
}

fn find_in(store: &SqliteStore, key: &str) -> bool {
    let found = send(store, "c", Lane::Watch, vec![], vec![read(key)]);
    found.is_ok_and(|reply| matches!(reply.reads[0], Found::Record(_)))
}

#[test]
fn a_descriptor_names_the_file_that_it_was_opened_as() {
    let place = Place::new();
    let one = place.store();
    // Opened in this process only after the store: closing it would drop the store's locks.
    let file = fs::File::open(place.path()).expect("the file");
    let name = format!("/proc/self/fd/{}", file.as_raw_fd());
    assert_share(&one, &SqliteStore::open(Path::new(&name)).expect("the store opens"));
    // What the descriptor leads to has no name any more.
    drop(one);
    place.wait_until_closed();
    fs::remove_file(place.path()).expect("the file");
    let error = SqliteStore::open(Path::new(&name)).expect_err("no name");
    assert!(error.message.contains(&name), "{error}");
    assert_eq!(fs::read_dir(place.directory.path()).expect("a list").count(), 0);
}

#[test]
fn a_file_that_is_itself_a_mount_point_is_refused() {
    // As `docker run -v app.db:/data/app.db` mounts it, here and in a place whose name the table
    // of mounts has to escape.
    let mounts = "for data in data 'da ta'; do \
                  mkdir \"$data\"; touch \"$data/app.db\"; mount --bind app.db \"$data/app.db\"; \
                  done; mkdir again; mount --bind . again";
    let place = Place::new();
    drop(place.store());
    place.wait_until_closed();
    run_in(&place, "mounted", mounts);
}

fn mounted(path: &Path) {
    let here = path.parent().expect("a directory");
    for data in ["data", "da ta"] {
        let name = here.join(data).join("app.db");
        let error = SqliteStore::open(&*name).expect_err("a mount point");
        let shown = name.display().to_string();
        assert_says(&error, ErrorKind::Rejected, &[&shown, "mount point", "directory"]);
        assert!(!here.join(data).join("app.db-wal").exists());
    }
    // Under its own name it can be used, and so it can where its directory was mounted.
    let one = SqliteStore::open(path).expect("the store opens");
    let two = SqliteStore::open(here.join("again/app.db")).expect("the store opens");
    assert_share(&one, &two);
}

#[test]
fn a_path_through_another_mount_namespace_is_refused() {
    let place = Place::new();
    drop(place.store());
    place.wait_until_closed();
    let mounts = "mkdir there; cp app.db there; \
                  unshare --mount sh -c 'mount --bind there .; touch there/ready; exec sleep 60' \
                  <&- >&- 2>&- & echo $! > pid; \
                  while [ ! -e there/ready ]; do sleep 0.02; done";
    run_in(&place, "elsewhere", mounts);
}

fn elsewhere(path: &Path) {
    let pid = fs::read_to_string(path.with_file_name("pid")).expect("a process");
    let pid = pid.trim();
    // SQLite follows links by their text, and ends at a file of the same name over here.
    let name = format!("/proc/{pid}/root{}", path.display());
    let opened = SqliteStore::open(Path::new(&name));
    std::process::Command::new("kill").arg(pid).status().expect("a kill");
    let error = opened.expect_err("a path that SQLite can't follow");
    assert_says(&error, ErrorKind::Rejected, &[&name, "its own name"]);
}

#[test]
fn two_containers_of_one_image_are_told_that_each_has_a_file_of_its_own() {
    let place = Place::new();
    let store = place.store();
    write(&store, "c", create("k", 1)).expect("a write");
    drop(store);
    place.wait_until_closed();
    // The image is on a file system of its own, so that a file gets another number when it is
    // copied up.
    let mounts = "mkdir image; mount -t tmpfs none image; mv app.db image; \
                  for n in one two; do mkdir $n u$n w$n; \
                  mount -t overlay overlay -o lowerdir=image,upperdir=u$n,workdir=w$n $n; done";
    run_in(&place, "layers", mounts);
}

fn layers(path: &Path) {
    let here = path.parent().expect("a directory");
    let open = |name: &str| SqliteStore::open(here.join(name)).expect("the store opens");
    let (one, two) = (open("one/app.db"), open("two/app.db"));
    // What nobody can mend from in here: one file became two.
    for store in [&one, &two] {
        assert!(find(store, "c", "k").is_some());
        assert_eq!(write(store, "c", create("new", 1)), Ok(applied(1)));
    }
    for (store, name) in [(one, "one/app.db"), (two, "two/app.db")] {
        let said = store.warnings().join(" ");
        assert!(said.contains(name) && said.contains("overlay"), "{said}");
        assert!(said.contains("volume"), "{said}");
    }
    assert!(open("image/app.db").warnings().iter().all(|said| !said.contains("overlay")));
}

#[test]
fn a_file_in_memory_is_not_durable() {
    run_in(&Place::new(), "memory", "mkdir memory; mount -t tmpfs none memory");
}

fn memory(path: &Path) {
    let store = SqliteStore::open(path.with_file_name("memory").join("app.db"));
    let store = store.expect("the store opens");
    assert!(!store.capabilities().durable);
    let said = store.warnings().join(" ");
    assert!(said.contains("memory/app.db") && said.contains("on a disk"), "{said}");
}

fn run_in(place: &Place, role: &str, mounts: &str) {
    let mut command = child_with_mounts(mounts, role, place)
        .expect("this test mounts things: run it as root, or where user namespaces are allowed");
    assert_done(role, &command.output().expect("a child"));
}

#[test]
#[ignore = "the other tests run it as another process"]
fn child_process() {
    let (role, path) = role().expect("to be run by another test");
    match role.as_str() {
        "mounted" => mounted(&path),
        "elsewhere" => elsewhere(&path),
        "layers" => layers(&path),
        "memory" => memory(&path),
        other => panic!("no role {other}"),
    }
    println!("done: {role}");
}
