//! Spans of time and counts: without a unit, negative, zero, huge, in other digits.

use super::case::{Case, case, refused, taken};

/// A span that no flag takes, and what is said about it.
const SPANS: &[(&str, &str)] = &[
    ("15", "such as 3s or 500ms"),
    ("", "such as 3s or 500ms"),
    (" ", "such as 3s or 500ms"),
    ("s", "such as 3s or 500ms"),
    ("soon", "such as 3s or 500ms"),
    ("-5s", "such as 3s or 500ms"),
    ("+5s", "such as 3s or 500ms"),
    ("0s", "such as 3s"),
    ("0", "such as 3s"),
    ("1h -5s", "such as 3s or 500ms"),
    ("５s", "such as 3s or 500ms"),
    ("٣s", "such as 3s or 500ms"),
    ("15S", "such as 3s or 500ms"),
    ("15 parsecs", "such as 3s or 500ms"),
    ("1,5s", "such as 3s or 500ms"),
    ("1e3s", "such as 3s or 500ms"),
    ("0x10s", "such as 3s or 500ms"),
    ("NaN", "such as 3s or 500ms"),
    ("inf", "such as 3s or 500ms"),
    ("PT15S", "such as 3s or 500ms"),
    ("00:15", "such as 3s or 500ms"),
    ("99999999999999999999s", "such as 3s or 500ms"),
    ("18446744073709551615y", "such as 3s or 500ms"),
    ("$TTL", "such as 3s or 500ms"),
    ("--no-wait", "such as 3s or 500ms"),
];

/// A command that ends a while after it was asked to.
const STUBBORN: &str = "trap '' TERM; echo > ready; sleep 1; exit 5";

pub(crate) fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = SPANS.iter().zip(flags().cycle()).map(spans).collect();
    cases.extend(ttls());
    cases.extend(counts());
    cases
}

/// The commands that take a span, with a place for it.
fn flags() -> impl Iterator<Item = &'static [&'static str]> + Clone {
    let flags: [&[&str]; 9] = [
        &["run", "--lease", "a", "--ttl", "?", "--", "true"],
        &["run", "--lease", "a", "--wait", "?", "--", "true"],
        &["run", "--lease", "a", "--grace", "?", "--", "true"],
        &["run", "--lease", "a", "--last-grace", "?", "--", "true"],
        &["run", "--lease", "a", "--once-per", "?", "--", "true"],
        &["resign", "a", "--timeout", "?"],
        &["evict", "a", "--timeout", "?"],
        &["doctor", "--ttl", "?"],
        &["rollout", "canary", "projection", "5", "--well-for", "?"],
    ];
    flags.into_iter()
}

fn spans(((span, next), words): (&(&str, &str), &[&str])) -> Case {
    let words: Vec<&str> =
        words.iter().map(|word| if *word == "?" { *span } else { *word }).collect();
    refused(&words, &format!("'{span}'"), next)
}

fn ttls() -> Vec<Case> {
    let run = |flags: &[&str]| {
        let words = ["run", "--lease", "a", "--no-wait"].iter().chain(flags).chain(&["--", "true"]);
        words.map(|word| (*word).to_owned()).collect::<Vec<_>>()
    };
    let bounds = "between 3s and 3600s";
    vec![
        refused(&run(&["--ttl", "2s"]), "'2s'", bounds),
        refused(&run(&["--ttl", "2999ms"]), "'2999ms'", bounds),
        refused(&run(&["--ttl", "1ms"]), "'1ms'", bounds),
        refused(&run(&["--ttl", "3601s"]), "'3601s'", bounds),
        refused(&run(&["--ttl", "30d"]), "'30d'", bounds),
        refused(&run(&["--ttl", "99999999d"]), "'99999999d'", bounds),
        refused(&["doctor", "--ttl", "1s"], "'1s'", bounds),
        refused(&["demo", "--ttl", "1s"], "'1s'", bounds),
        refused(&["demo", "--ttl", "2h"], "'2h'", bounds),
        refused(&["demo", "--ttl", "3"], "'3'", "such as 3s"),
        refused(&run(&["--last-grace", "10s"]), "10s", "Use 5s at most"),
        refused(&run(&["--last-grace", "2s", "--ttl", "3s"]), "2s", "Use 1s at most"),
        refused(&["doctor", "--quick", "--last-grace", "1h"], "3600s", "Use 5s at most"),
        taken(&run(&["--ttl", "15s\n"])),
        taken(&run(&["--ttl", "3s"])),
        taken(&run(&["--ttl", "1h"])),
        // Long enough for everybody, and no reason to fail.
        taken(&run(&["--grace", "99999999d"])),
        taken(&run(&["--once-per", "99999999d"])),
        taken(&run(&["--once-per", "1ms"])),
        taken(&run(&["--grace", "1ms", "--last-grace", "1ms"])),
        taken(&["run", "--lease", "a", "--wait", "99999999d", "--", "true"]),
        // Its end is as far away as can be, and the command ends by itself when it is asked to.
        case(
            5,
            &["run", "--lease", "a", "--grace", "99999999d", "--shell", "--", STUBBORN],
            "",
            "-",
        )
        .by("\"$0\" \"$@\" & pid=$!; until [ -e ready ]; do sleep 0.05; done; kill -TERM $pid; \
                 wait $pid")
        .unheard(),
    ]
}

fn counts() -> Vec<Case> {
    let slots =
        |count: &str| ["run", "--lease", "a", "--slots", count, "--", "true"].map(str::to_owned);
    let canary = |count: &str| ["rollout", "canary", "projection", count].map(str::to_owned);
    let share = "from 1% to 100%";
    vec![
        refused(&slots("0"), "'0'", "1..=1000"),
        refused(&slots("-1"), "'-1'", "1..=1000"),
        refused(&slots("1001"), "'1001'", "1..=1000"),
        refused(
            &["run", "--lease", "a", "--slots", "2", "--once-per", "1h", "--", "true"]
                .map(str::to_owned),
            "--slots",
            "--once-per",
        ),
        refused(&slots("65537"), "'65537'", "1..=1000"),
        refused(&slots("99999999999999999999"), "'99999999999999999999'", "--slots <NUMBER>"),
        refused(&slots("three"), "'three'", "--slots <NUMBER>"),
        refused(&slots("3.0"), "'3.0'", "--slots <NUMBER>"),
        refused(&slots("1_000"), "'1_000'", "--slots <NUMBER>"),
        refused(&slots(""), "''", "--slots <NUMBER>"),
        refused(&slots(" 3"), "' 3'", "--slots <NUMBER>"),
        refused(&slots("３"), "'３'", "--slots <NUMBER>"),
        refused(&["demo", "--nodes", "2"], "'2'", "3..=20"),
        refused(&["demo", "--nodes", "21"], "'21'", "3..=20"),
        refused(&["demo", "--nodes", "256"], "'256'", "3..=20"),
        refused(&["demo", "--nodes", "-3"], "'-3'", "3..=20"),
        refused(&["demo", "--nodes", "many"], "'many'", "--nodes <NUMBER>"),
        refused(&canary("0"), "'0'", share),
        refused(&canary("0%"), "'0%'", share),
        refused(&canary("101%"), "'101%'", share),
        refused(&canary("-5"), "'-5'", share),
        refused(&canary("1e3"), "'1e3'", share),
        refused(&canary("2.5%"), "'2.5%'", share),
        refused(&canary("99999999999999999999999"), "'99999999999999999999999'", share),
        refused(&canary("５"), "'５'", share),
        refused(&canary("%"), "'%'", share),
        refused(&canary("half"), "'half'", share),
        case(0, &canary("18446744073709551615"), "warning:", "no live member"),
    ]
}
