//! Variables of the environment, and a process to which little is given.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use super::case::{Case, case, refused, taken};

const RUN: &[&str] = &["run", "--lease", "a", "--no-wait", "--", "true"];

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = ours();
    cases.extend(of_others());
    cases.extend(places());
    #[cfg(feature = "serve")]
    cases.extend(guards());
    cases
}

/// Variables that say who may use a server: empty, they would let everybody in (O64).
#[cfg(feature = "serve")]
fn guards() -> Vec<Case> {
    let variables = [
        "INCUMBENT_TOKEN_FILE",
        "INCUMBENT_TLS_CERT",
        "INCUMBENT_TLS_KEY",
        "INCUMBENT_CLIENT_CA",
        "INCUMBENT_CERTIFICATE_ROLES",
    ];
    let empty = |variable| {
        refused(&["serve", "--listen", "127.0.0.1:0"], variable, "unset it").with(variable, "")
    };
    variables.map(empty).into()
}

/// Variables of incumbent's own.
fn ours() -> Vec<Case> {
    let long = "x".repeat(5000);
    let unset = "unset INCUMBENT_";
    let wrong = OsStr::from_bytes(b"a\xff");
    let span = "such as 3s or 500ms";
    let mut cases = vec![
        refused(&["status"], "INCUMBENT_STORE is empty", unset).with("INCUMBENT_STORE", ""),
        refused(RUN, "INCUMBENT_STORE is empty", unset).with("INCUMBENT_STORE", "  "),
        refused(&["status"], "INCUMBENT_CLUSTER is empty", unset).with("INCUMBENT_CLUSTER", ""),
        refused(RUN, "INCUMBENT_CLUSTER is empty", unset).with("INCUMBENT_CLUSTER", "\n"),
        refused(&["status"], "a\\tb", "INCUMBENT_CLUSTER").with("INCUMBENT_CLUSTER", "a\tb"),
        refused(RUN, "a\\u{7f}", "INCUMBENT_CLUSTER").with("INCUMBENT_CLUSTER", "a\u{7f}"),
        refused(&["status"], "5000 bytes", "INCUMBENT_CLUSTER").with("INCUMBENT_CLUSTER", &long),
        refused(RUN, "a\\nb", "INCUMBENT_NODE").with("INCUMBENT_NODE", "a\nb"),
        refused(RUN, "a node name is empty or blank", "INCUMBENT_NODE").with("INCUMBENT_NODE", " "),
        refused(RUN, "5000 bytes", "INCUMBENT_NODE").with("INCUMBENT_NODE", &long),
        refused(RUN, "INCUMBENT_TTL is \"soon\"", span).with("INCUMBENT_TTL", "soon"),
        refused(RUN, "INCUMBENT_TTL is \"15\"", span).with("INCUMBENT_TTL", "15"),
        refused(RUN, "INCUMBENT_TTL is \"-3s\"", span).with("INCUMBENT_TTL", "-3s"),
        refused(RUN, "INCUMBENT_TTL is \" \"", span).with("INCUMBENT_TTL", " "),
        refused(RUN, "INCUMBENT_TTL is \"1s\"", "between 3s and 3600s").with("INCUMBENT_TTL", "1s"),
        refused(RUN, "INCUMBENT_TTL is \"2h\"", "between 3s and 3600s").with("INCUMBENT_TTL", "2h"),
        refused(&["doctor"], "INCUMBENT_TTL is \"x\"", span).with("INCUMBENT_TTL", "x"),
        refused(RUN, "hints=\"everywhere\"", "use auto, off").with("INCUMBENT_HINTS", "everywhere"),
        refused(RUN, "hints=10.0.0.7:1 needs a key", "INCUMBENT_HINT_KEY_FILE")
            .with("INCUMBENT_HINTS", "10.0.0.7:1"),
        refused(RUN, "/no/such/key", "Name a file that this user can read")
            .with("INCUMBENT_HINT_KEY_FILE", "/no/such/key"),
        refused(RUN, "16 to 1024 bytes", "openssl rand")
            .with("INCUMBENT_HINT_KEY_FILE", "key")
            .file("key", "hunter2\n"),
        refused(RUN, "names no machine", "use the address by which")
            .with("INCUMBENT_HINTS", "0.0.0.0:1")
            .with("INCUMBENT_HINT_KEY_FILE", "key")
            .file("key", "0123456789abcdef0123456789abcdef\n"),
        // These don't look at it.
        taken(&["status"]).with("INCUMBENT_TTL", "soon"),
        taken(&["status"]).with("INCUMBENT_HINTS", "everywhere"),
        taken(RUN).with("INCUMBENT_HINTS", "").with("INCUMBENT_HINT_KEY_FILE", ""),
        taken(&["man"]).with("INCUMBENT_STORE", ""),
        taken(&["completions", "bash"]).with("INCUMBENT_STORE", "nonsense"),
        // Nothing was said.
        taken(RUN).with("INCUMBENT_TTL", ""),
        taken(RUN).with("INCUMBENT_NODE", ""),
        // A command inside a command gets what the outer one was told.
        taken(RUN).with("INCUMBENT_TERM", "abc").with("INCUMBENT_SLOT", "-1"),
    ];
    for name in ["INCUMBENT_STORE", "INCUMBENT_CLUSTER", "INCUMBENT_NODE", "INCUMBENT_TTL"] {
        cases.push(refused(RUN, name, "set it to text").says("UTF-8").with(name, wrong));
    }
    cases
}

/// Variables that others set for us.
fn of_others() -> Vec<Case> {
    vec![
        taken(&["status"]).with("COLUMNS", "abc").with("LINES", "-1"),
        taken(&["status"]).with("COLUMNS", "0"),
        taken(&["status"]).with("COLUMNS", "99999999999999999999"),
        taken(&["history"]).with("TZ", "Nowhere/None"),
        taken(&["status"]).with("LC_ALL", "zz_ZZ.nonsense"),
        taken(&["-vv", "status"]).with("RUST_LOG", "nonsense=,,"),
        refused(&["nonsense"], "'nonsense'", "--help").with("RUST_BACKTRACE", "full"),
        taken(&["status"]).with("TERM", ""),
        taken(&["status"]).without("TERM"),
        taken(&["status"]).with("NO_COLOR", OsStr::from_bytes(b"\xff")),
        taken(RUN).with("NOTIFY_SOCKET", "/no/such/socket"),
        taken(RUN).with("NOTIFY_SOCKET", "nonsense"),
        taken(RUN).with("PATH", "/usr/bin:/bin:::/no/such"),
        case(69, &["status"], "127.0.0.1:1", "Check that its server is running")
            .with("INCUMBENT_STORE", "postgres://127.0.0.1:1/app")
            .with("PGPASSWORD", "hunter2"),
        refused(&["status"], "sslmode=maybe", "or verify-full")
            .with("INCUMBENT_STORE", "postgres://127.0.0.1:1/app")
            .with("PGSSLMODE", "maybe"),
        case(69, &["status"], "/no/such", "PEM file")
            .with("INCUMBENT_STORE", "postgres://127.0.0.1:1/app?sslmode=verify-full")
            .with("PGSSLROOTCERT", "/no/such"),
        case(69, &["status"], "can be read by others", "chmod 600")
            .with("INCUMBENT_STORE", "postgres://127.0.0.1:1/app")
            .with("PGPASSFILE", "passwords")
            .file("passwords", "*:*:*:*:hunter2\n"),
        taken(&["status"])
            .by("exec env -i \"$0\" --store sqlite:trial.db --config /dev/null \"$@\""),
    ]
}

/// Directories that aren't there, aren't named, or can't be used.
fn places() -> Vec<Case> {
    let name = "name a store with --store";
    let init = &["store", "init"];
    let nowhere = |case: Case| case.without("INCUMBENT_STORE").without("INCUMBENT_CONFIG");
    vec![
        nowhere(refused(&["status"], "neither HOME", name)).without("HOME"),
        nowhere(refused(&["status"], "neither HOME", name)).with("HOME", ""),
        nowhere(refused(init, "absolute path", name)).with("HOME", "relative"),
        nowhere(refused(init, "absolute path", name)).with("HOME", ".").with("XDG_STATE_HOME", "x"),
        nowhere(case(69, init, "/dev/null", "Name a store")).with("HOME", "/dev/null"),
        nowhere(case(69, RUN, "/proc", "Name a store")).with("HOME", "/proc"),
        nowhere(taken(init)).with("XDG_STATE_HOME", "relative"),
        refused(init, "directory", "Give an absolute path")
            .with("INCUMBENT_STORE", "sqlite:x.db")
            .by("mkdir ../gone && cd ../gone && rmdir ../gone && exec \"$0\" \"$@\""),
        refused(&["status"], "x.db", "Give an absolute path")
            .with("INCUMBENT_STORE", "sqlite:x.db")
            .by("mkdir ../gone && cd ../gone && rmdir ../gone && exec \"$0\" \"$@\""),
        case(71, &["demo", "--tour"], "/no/such", "TMPDIR")
            .without("INCUMBENT_STORE")
            .with("TMPDIR", "/no/such"),
        case(71, &["demo", "--tour"], "/proc", "--store")
            .without("INCUMBENT_STORE")
            .with("TMPDIR", "/proc"),
        refused(&["man", "--dir", "/no/such"], "/no/such", "Name a directory"),
        refused(&["man", "--dir", "trial.db"], "trial.db", "Name a directory"),
        refused(&["man", "--dir", "/dev/null"], "/dev/null", "Name a directory"),
        refused(&["man", "--dir", ""], "--dir", "a value is required"),
        refused(&["man", "--dir"], "--dir", "a value is required"),
    ]
}
