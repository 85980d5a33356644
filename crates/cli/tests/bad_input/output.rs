//! Standard input, output and error that are closed, full or read by nobody, and small limits.

use super::case::{Case, case, refused, taken};

const RUN: &[&str] = &["run", "--lease", "a", "--no-wait", "--", "echo", "said"];

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = closed();
    cases.extend(full());
    cases.extend(limits());
    cases
}

fn closed() -> Vec<Case> {
    vec![
        taken(&["status"]).by("exec \"$0\" \"$@\" <&-"),
        taken(&["status"]).by("exec \"$0\" \"$@\" >&-"),
        taken(&["status"]).by("exec \"$0\" \"$@\" 2>&-").unheard(),
        taken(&["status"]).by("exec \"$0\" \"$@\" <&- >&- 2>&-").unheard(),
        taken(RUN).by("exec \"$0\" \"$@\" <&-"),
        taken(RUN).by("exec \"$0\" \"$@\" <&- >&- 2>&-").unheard(),
        case(64, &["nonsense"], "", "-").by("exec \"$0\" \"$@\" 2>&-").unheard(),
        case(64, &["nonsense"], "", "-").by("exec \"$0\" \"$@\" 2>/dev/full").unheard(),
        refused(&["store", "reset"], "no terminal to ask on", "--yes").by("exec \"$0\" \"$@\" <&-"),
        refused(&["store", "reset"], "no terminal to ask on", "--yes")
            .by("yes trial | \"$0\" \"$@\""),
        taken(&["man"]).by("\"$0\" \"$@\" | head -c 1"),
        taken(&["--help"]).by("\"$0\" \"$@\" | true"),
        taken(&["completions", "zsh"]).by("\"$0\" \"$@\" | head -n 1"),
        taken(&["status", "--json"]).by("\"$0\" \"$@\" | true"),
        taken(&["watch"]).by("\"$0\" \"$@\" | true"),
        taken(&["status"]).by("trap '' PIPE; \"$0\" \"$@\" | true"),
        taken(&["status"]).by("trap '' TERM INT HUP; exec \"$0\" \"$@\""),
        taken(RUN).by("trap '' TERM INT HUP; exec \"$0\" \"$@\""),
        taken(&["status"]).by("exec \"$0\" \"$@\" < /dev/zero"),
    ]
}

fn full() -> Vec<Case> {
    let room = "Make room";
    let full = "exec \"$0\" \"$@\" > /dev/full";
    let words: &[&[&str]] = &[
        &["status"],
        &["status", "--json"],
        &["history"],
        &["duties"],
        &["intents"],
        &["--help"],
        &["--version"],
        &["status", "--help"],
        &["man"],
        &["completions", "bash"],
        &["store", "schema"],
        &["store", "init", "--json"],
        &["rollout", "status", "--json"],
        &["store", "repair"],
    ];
    let mut cases: Vec<Case> =
        words.iter().map(|words| case(74, words, "No space left", room).by(full)).collect();
    cases.push(case(74, &["status"], "", "-").by("exec \"$0\" \"$@\" >/dev/full 2>&1").unheard());
    cases.push(case(1, RUN, "write error", "No space left").by(full));
    cases
}

fn limits() -> Vec<Case> {
    vec![
        case(71, &["status"], "Too many open files", "ulimit -n")
            .by("ulimit -n 12; exec \"$0\" \"$@\""),
        case(71, RUN, "Too many open files", "ulimit -n").by("ulimit -n 12; exec \"$0\" \"$@\""),
        case(71, &["demo", "--tour"], "Too many open files", "ulimit -n")
            .by("ulimit -n 12; exec \"$0\" \"$@\""),
        // What isn't understood needs no files.
        refused(&["nonsense"], "'nonsense'", "--help").by("ulimit -n 8; exec \"$0\" \"$@\""),
        taken(&["status"]).by("ulimit -c 0; umask 777; exec \"$0\" \"$@\""),
        taken(&["status"]).by("exec nice -n 19 \"$0\" \"$@\""),
    ]
}
