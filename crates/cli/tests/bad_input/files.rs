//! The configuration file: what isn't TOML, isn't known, is of the wrong type, or is no file.

use super::case::{Case, case, refused, taken};

const QUOTES: &str = "Put text in quotes";
const KEYS: &str =
    "the keys are store, cluster, node, ttl, hints, hint-key-file and the tables [run] and [serve]";
const RUN_KEYS: &str = "the keys are grace, last-grace, isolate, on-lost and witness";
const SPAN: &str = "a number and its unit in quotes, such as \"15s\"";
const BOUNDS: &str = "between 3s and 3600s";
const NAME: &str = "write a name, or leave the line out";

/// Files, what is said of them, and the next step.
const TEXTS: &[(&str, &str, &str)] = &[
    ("nonsense", "app.toml:1", QUOTES),
    ("store: sqlite:trial.db\n", "app.toml:1", QUOTES),
    ("store=sqlite:trial.db\n", "app.toml:1", QUOTES),
    ("store = 'sqlite:trial.db\n", "app.toml:1", QUOTES),
    ("{\"store\": \"sqlite:trial.db\"}\n", "app.toml:1", QUOTES),
    ("<store>sqlite:trial.db</store>\n", "app.toml:1", QUOTES),
    ("export INCUMBENT_STORE=sqlite:trial.db\n", "app.toml:1", QUOTES),
    ("store = postgres://me:hunter2@db\n", "app.toml:1", QUOTES),
    ("cluster = 'a' x\n", "app.toml:1", QUOTES),
    ("cluster = \"a\nb\"\n", "app.toml:2", QUOTES),
    ("cluster = \"a\\qb\"\n", "app.toml:1", QUOTES),
    ("cluster = \"a\"\rttl = \"15s\"\r", "app.toml:1", QUOTES),
    ("cluster = “a”\n", "app.toml:1", QUOTES),
    ("\u{0}", "app.toml:1", QUOTES),
    ("[run\n", "app.toml:1", QUOTES),
    ("<<<<<<< HEAD\ncluster = \"a\"\n", "app.toml:1", QUOTES),
    ("cluster = \"a\"\ncluster = \"b\"\n", "app.toml:2", "Keep one of them"),
    ("[run]\ngrace = \"1s\"\n[run]\n", "app.toml:3", "Keep one of them"),
    ("clutser = \"a\"\n", "\"clutser\"", KEYS),
    ("Cluster = \"a\"\n", "\"Cluster\"", KEYS),
    ("[incumbent]\nstore = \"x\"\n", "\"incumbent\"", KEYS),
    ("[Run]\ngrace = \"1s\"\n", "\"Run\"", KEYS),
    ("grace = \"1s\"\n", "\"grace\"", KEYS),
    ("password = \"hunter2\"\n", "\"password\"", KEYS),
    ("\"st\\u202Eore\" = \"a\"\n", "app.toml:1", KEYS),
    ("[run]\nlease = \"x\"\n", "app.toml:2: unknown key \"lease\"", RUN_KEYS),
    ("[run]\nlast_grace = \"1s\"\n", "\"last_grace\"", RUN_KEYS),
    ("[run]\nttl = \"15s\"\n", "\"ttl\"", RUN_KEYS),
    ("run = \"x\"\n", "run = \"x\"", "write [run] on a line of its own"),
    ("[[run]]\ngrace = \"1s\"\n", "run = [[run]]", "write [run] on a line of its own"),
    ("run.grace = \"x\"\n", "grace = \"x\"", "such as 3s or 500ms"),
    ("[store]\nurl = \"postgres://me:hunter2@db\"\n", "store (table)", "in quotes"),
    ("store = [\"postgres://me:hunter2@db\"]\n", "store (array)", "in quotes"),
    ("cluster = 7\n", "cluster = 7", "write it in quotes"),
    ("node = true\n", "node = true", "write it in quotes"),
    ("ttl = 15\n", "ttl = 15", SPAN),
    ("ttl = 15.0\n", "ttl = 15.0", SPAN),
    ("ttl = nan\n", "ttl = nan", SPAN),
    ("ttl = -inf\n", "ttl = -inf", SPAN),
    ("ttl = 2024-01-01\n", "ttl = 2024-01-01", SPAN),
    ("ttl = 99999999999999999999999999\n", "99999999999999999999999999", SPAN),
    ("ttl = \"15\"\n", "ttl = \"15\"", "such as 3s or 500ms"),
    ("ttl = \"-3s\"\n", "ttl = \"-3s\"", "such as 3s or 500ms"),
    ("ttl = \"2s\"\n", "ttl = \"2s\"", BOUNDS),
    ("ttl = \"1h 1s\"\n", "ttl = \"1h 1s\"", BOUNDS),
    ("ttl = \"９s\"\n", "ttl = \"９s\"", "such as 3s or 500ms"),
    ("[run]\ngrace = 10\n", "grace = 10", SPAN),
    ("[run]\nwitness = \"yes\"\n", "witness = \"yes\"", "write true or false"),
    ("[run]\nwitness = 1\n", "witness = 1", "write true or false"),
    ("[run]\nisolate = true\n", "isolate = true", "auto, always or never"),
    ("[run]\nisolate = \"Always\"\n", "\"Always\"", "auto, always or never"),
    ("[run]\non-lost = [\"a\", \"b\"]\n", "on-lost = [\"a\", \"b\"]", "write it in quotes"),
    ("[run]\non-lost = \"\"\n", "on-lost = \"\"", NAME),
    ("store = \"\"\n", "app.toml:1: store", NAME),
    ("store = \"   \"\n", "app.toml:1: store", NAME),
    ("cluster = \"  \"\n", "cluster = \"  \"", NAME),
    ("node = \" \"\n", "node = \" \"", NAME),
    ("cluster = \"a\\u0000\"\n", "cluster = \"a\\u0000\"", "without control characters"),
    ("cluster = \"\"\"a\nb\"\"\"\n", "app.toml:1: cluster", "without control characters"),
    ("store = \"$STORE\"\n", "app.toml:1", "this program knows sqlite:"),
    ("store = \"mongo://me:hunter2@db\"\n", "app.toml:1", "this program knows sqlite:"),
    ("\n\nstore = \"sqlite:a.db?busy=x\"\n", "app.toml:3: busy=x", "such as busy=2000"),
];

pub(crate) fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> =
        TEXTS.iter().map(|(text, value, next)| with(text, value, next)).collect();
    cases.extend(readable());
    cases.extend(no_files());
    cases
}

fn with(text: &str, value: &str, next: &str) -> Case {
    let case = refused(&["--config", "app.toml", "status"], value, next).file("app.toml", text);
    case.without("INCUMBENT_STORE").without("INCUMBENT_CLUSTER")
}

/// Files that look odd, and are right; and what a right file can't say.
fn readable() -> Vec<Case> {
    let status = &["--config", "app.toml", "status"];
    let run = &["--config", "app.toml", "run", "--lease", "a", "--no-wait", "--", "true"];
    vec![
        taken(status).file("app.toml", "\u{feff}cluster = \"a\"\r\n"),
        taken(status).file("app.toml", ""),
        taken(status).file("app.toml", "# nothing\n".repeat(1000)),
        taken(status).file("app.toml", "cluster = \"a\\u202Eb\"\n").without("INCUMBENT_CLUSTER"),
        refused(run, "10s (app.toml:2)", "Use 5s at most")
            .file("app.toml", "[run]\nlast-grace = \"10s\"\n"),
        refused(run, "4096 is the most", "--node")
            .file("app.toml", format!("node = \"{}\"\n", "x".repeat(5000))),
        refused(status, "4096 is the most", "--cluster")
            .file("app.toml", format!("cluster = \"{}\"\n", "x".repeat(5000)))
            .without("INCUMBENT_CLUSTER"),
    ]
}

fn no_files() -> Vec<Case> {
    let another = "Name another with --config";
    let named = |name: &'static str| ["--config", name, "status"];
    vec![
        refused(&named("missing.toml"), "missing.toml", another),
        refused(&named("."), "directory", another),
        refused(&named("trial.db"), "UTF-8", another),
        refused(&named("trial.db/app.toml"), "trial.db/app.toml", another),
        refused(&named("app.toml "), "app.toml ", another).file("app.toml", ""),
        refused(&named("app.toml"), "UTF-8", another).file("app.toml", b"\xff\xfes\x00".to_vec()),
        refused(&named("app.toml"), "1 MiB", another).file("app.toml", vec![b'#'; 2 << 20]),
        refused(&named("/dev/zero"), "1 MiB", another),
        refused(&named("~/app.toml"), "~/app.toml", another),
        refused(&named("pipe"), "nothing came", another)
            .by("mkfifo ../pipe && cd .. && mv pipe work/ && cd work && \"$0\" \"$@\"; code=$?; \
                 rm pipe; exit $code"),
        taken(&named("/dev/stdin")),
        refused(&["status"], "missing.toml", "INCUMBENT_CONFIG")
            .with("INCUMBENT_CONFIG", "missing.toml"),
        refused(&["status"], "INCUMBENT_CONFIG", "unset INCUMBENT_CONFIG")
            .with("INCUMBENT_CONFIG", ""),
        refused(&["status"], "directory", "INCUMBENT_CONFIG").with("INCUMBENT_CONFIG", "."),
        case(0, &["man"], "", "").with("INCUMBENT_CONFIG", "missing.toml"),
    ]
}
