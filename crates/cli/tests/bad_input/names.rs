//! Names that are empty, blank, reserved, too long, or no names at all.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use super::case::{Case, case, refused, taken};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = empty();
    cases.extend(odd());
    cases.extend(not_text());
    cases
}

/// A variable that a script forgot to set.
fn empty() -> Vec<Case> {
    let unset = "a variable is not set";
    let words: &[(&[&str], &str)] = &[
        (&["leader", ""], "<NAME>"),
        (&["leader", "   "], "<NAME>"),
        (&["leader", "\u{a0}"], "<NAME>"),
        (&["watch", ""], "[NAME]"),
        (&["history", ""], "[NAME]"),
        (&["history", "--duty", ""], "--duty"),
        (&["resign", ""], "<NAME>"),
        (&["transfer", "", "--to", ""], "<NAME>"),
        (&["transfer", "a", "--to", ""], "--to"),
        (&["transfer", "a", "--to", " "], "--to"),
        (&["evict", ""], "<NODE>"),
        (&["evict", "\t"], "<NODE>"),
        (&["cordon", ""], "<NODE>"),
        (&["uncordon", " "], "<NODE>"),
        (&["drain", ""], "<NODE>"),
        (&["undrain", ""], "<NODE>"),
        (&["pin", "projection/orders", "--to", ""], "--to"),
        (&["move", "projection/orders", "--to", " "], "--to"),
        (&["rollout", "status", ""], "[FAMILY]"),
        (&["rollout", "hold", ""], "[FAMILY]"),
        (&["rollout", "promote", " "], "[FAMILY]"),
        (&["rollout", "canary", "", "5"], "<FAMILY>"),
        (&["intents", "--withdraw", ""], "--withdraw"),
        (&["store", "init", ""], "[URL]"),
        (&["store", "check", " "], "[URL]"),
        (&["run", "--lease", "", "--", "true"], "--lease"),
        (&["run", "--lease", " ", "--", "true"], "--lease"),
        (&["run", "--lease", "a", "--node", " ", "--", "true"], "--node"),
        (&["status", "--store="], "--store"),
        (&["status", "--store", "  "], "--store"),
        (&["status", "--cluster", ""], "--cluster"),
        (&["status", "--cluster", "\n"], "--cluster"),
        (&["status", "--config", ""], "--config"),
    ];
    words.iter().map(|(words, value)| refused(words, value, unset)).collect()
}

fn odd() -> Vec<Case> {
    let long = "x".repeat(10_000);
    let wide = "日".repeat(2_000);
    let run = |lease: &str| ["run", "--no-wait", "--lease", lease, "--", "true"].map(str::to_owned);
    let printable = "use printable ones";
    vec![
        refused(&run("a\n"), "\"a\\n\"", printable),
        refused(&run("a\tb"), "\"a\\tb\"", printable),
        refused(&run("a\u{7f}"), "\\u{7f}", printable),
        refused(&run("a\u{85}"), "\\u{85}", printable),
        refused(&run(&long), "10000 bytes", "shorten"),
        refused(&run(&wide), "6000 bytes", "shorten"),
        refused(&run("incumbent/leader"), "\"incumbent/leader\"", "may not begin with"),
        refused(&run("incumbent/"), "\"incumbent/\"", "may not begin with"),
        refused(&run("incumbent/duty/a/b"), "incumbent/duty", "may not begin with"),
        refused(&["demo", "--lease", "incumbent/x"], "incumbent/x", "may not begin with"),
        refused(&["demo", "--lease", ""], "--lease <NAME>", "at least one character"),
        refused(&["demo", "--lease", "a\nb"], "a\u{fffd}b", printable),
        refused(&["leader", "incumbent/x"], "\"incumbent/x\"", "may not begin with"),
        refused(&["leader", "a\rb"], "\"a\\rb\"", printable),
        refused(&["leader", &long], "10000 bytes", "shorten"),
        refused(&["resign", "incumbent/x"], "\"incumbent/x\"", "may not begin with"),
        refused(&["watch", "a\u{1b}[2J"], "\\u{1b}", printable),
        refused(&["history", &long], "10000 bytes", "shorten"),
        refused(&["status", "--cluster", "a\nb"], "\"a\\nb\"", "INCUMBENT_CLUSTER"),
        refused(&["status", "--cluster", &long], "10000 bytes", "--cluster"),
        refused(&["cordon", "a\nb"], "\"a\\nb\"", printable),
        refused(&["cordon", &long], "10000 bytes", "shorten"),
        refused(&["pin", "a/b", "--to", "n\t1"], "\"n\\t1\"", printable),
        refused(&["pin", "a\u{1b}[2J/b", "--to", "n"], "\\u{1b}", printable),
        refused(&["pause", &format!("a/{long}")], "10000 bytes", "shorten"),
        refused(&["rollout", "hold", "a/b"], "\"a/b\"", "use another character"),
        refused(&["rollout", "hold", "a\nb"], "\"a\\nb\"", printable),
        refused(&["rollout", "canary", "a/b", "5"], "\"a/b\"", "use another character"),
        refused(&["cordon", "a", "b"], "'b'", "Usage:"),
        refused(&["cordon"], "<NODE>", "Usage:"),
        refused(&["run", "--lease", "a", "--node", "a\tb", "--", "true"], "\"a\\tb\"", "--node"),
        // Odd, and some cluster is called like that.
        taken(&["status", "--cluster", "../x"]),
        taken(&["status", "--cluster", "*"]),
        taken(&["status", "--cluster", "a\u{202e}b"]),
        taken(&run("a/b/")),
        taken(&run("'; DROP TABLE incumbent_records; --")),
        taken(&run("a\u{202e}b")),
        case(0, &["cordon", "a\u{202e}b"], "warning:", "check --cluster"),
    ]
}

fn not_text() -> Vec<Case> {
    let wrong = OsStr::from_bytes(b"a\xff\xfeb");
    let word = OsStr::new;
    vec![
        refused(&[wrong], "a\u{fffd}\u{fffd}b", "--help"),
        refused(&[word("status"), wrong], "a\u{fffd}\u{fffd}b", "Usage:"),
        refused(&[word("leader"), wrong], "a\u{fffd}\u{fffd}b", "write it as text"),
        refused(&[word("evict"), wrong], "a\u{fffd}\u{fffd}b", "write it as text"),
        refused(&[word("status"), word("--cluster"), wrong], "not UTF-8", "write it as text"),
        refused(&[word("status"), word("--store"), wrong], "not UTF-8", "write it as text"),
        refused(
            &[word("run"), word("--lease"), wrong, word("--"), word("true")],
            "not UTF-8",
            "write it as text",
        ),
        case(
            127,
            &[word("run"), word("--lease"), word("a"), word("--"), wrong],
            "a\u{fffd}\u{fffd}b",
            "PATH",
        ),
        refused(&[word("status"), word("--config"), wrong], "a\u{fffd}\u{fffd}b", "--config"),
        refused(&[word("man"), word("--dir"), wrong], "a\u{fffd}\u{fffd}b", "Name a directory"),
    ]
}
