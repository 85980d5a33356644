//! Commands about leases, members, duties, intents, rollouts and records, with what isn't there.

use super::case::{Case, case, refused, taken};

const DUTY: &str = "named family/name, such as projection/orders";
const USAGE: &str = "Usage:";
const EMPTY: &str = "has no live member";

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = leases();
    cases.extend(duties());
    cases.extend(intents());
    cases.extend(rollouts());
    cases.extend(records());
    cases.extend(views());
    cases
}

fn leases() -> Vec<Case> {
    let status = "`incumbent status`";
    vec![
        refused(&["leader"], "<NAME>", USAGE),
        refused(&["leader", "a", "b"], "'b'", USAGE),
        case(1, &["leader", "nobody"], "\"nobody\"", "its leases are"),
        case(1, &["leader", "a\u{202e}c"], "a\\u{202e}c", "its leases are"),
        case(1, &["leader", "incumbent/leader"], "\"incumbent/leader\"", "its leases are"),
        case(1, &["history", "nobody"], "\"nobody\"", status),
        refused(&["history", "a", "--duty", "b/c"], "--duty", USAGE),
        refused(&["resign"], "<NAME>", USAGE),
        case(1, &["resign", "nobody", "--timeout", "1s"], "\"nobody\"", status),
        case(1, &["resign", "nobody", "--timeout", "99999999d"], "\"nobody\"", status),
        refused(&["transfer"], "<NAME>", USAGE),
        refused(&["transfer", "a"], "--to <NODE>", USAGE),
        refused(&["transfer", "a", "b"], "'b'", USAGE),
        refused(&["transfer", "--to", "a"], "<NAME>", USAGE),
        case(1, &["transfer", "nobody", "--to", "b"], "\"nobody\"", status),
        refused(&["evict"], "<NODE>", USAGE),
        refused(&["evict", "a", "b"], "'b'", USAGE),
        case(1, &["evict", "nobody"], "\"nobody\"", "Give a node's name"),
        case(1, &["evict", "../../etc"], "\"../../etc\"", "Give a node's name"),
        case(1, &["evict", "%"], "\"%\"", "Give a node's name"),
        case(1, &["evict", "a\u{202e}"], "a\\u{202e}", "Give a node's name"),
        refused(&["watch", "a", "b"], "'b'", USAGE),
    ]
}

fn duties() -> Vec<Case> {
    vec![
        refused(&["explain"], "<DUTY>", USAGE),
        refused(&["explain", "orders"], "'orders'", DUTY),
        refused(&["explain", "projection/"], "'projection/'", DUTY),
        refused(&["explain", "/orders"], "'/orders'", DUTY),
        refused(&["explain", "/"], "'/'", DUTY),
        refused(&["explain", "projection:orders"], "'projection:orders'", DUTY),
        case(1, &["explain", "projection/orders"], "\"projection/orders\"", "`incumbent duties`"),
        case(1, &["explain", "a/b/c"], "\"a/b/c\"", "`incumbent duties`"),
        refused(&["explain", "a/b\n"], "\"b\\n\"", "use printable ones"),
        case(1, &["history", "--duty", "nothing"], "\"nothing\"", "`incumbent duties`"),
        refused(&["pin"], "<DUTY>", USAGE),
        refused(&["pin", "projection/orders"], "--to <NODE>", USAGE),
        refused(&["pin", "projection/orders", "--to"], "--to <NODE>", "a value is required"),
        refused(&["pin", "billing-1", "--to", "projection/orders"], "'billing-1'", DUTY),
        refused(&["pin", "a/b", "billing-1"], "'billing-1'", USAGE),
        refused(&["move", "a/b", "--to", "c", "--required"], "'--required'", USAGE),
        refused(&["move", "orders", "--to", "c"], "'orders'", DUTY),
        refused(&["pause", "projection"], "'projection'", DUTY),
        refused(&["resume", ""], "''", DUTY),
        refused(&["unpin", "a/b", "--to", "c"], "'--to'", USAGE),
        refused(&["duties", "projection"], "'projection'", USAGE),
        refused(&["plan", "now"], "'now'", USAGE),
        refused(&["freeze", "now"], "'now'", USAGE),
        case(0, &["pause", "nothing/there"], "warning:", EMPTY),
        case(0, &["resume", "nothing/there"], "warning:", EMPTY),
        case(0, &["unpin", "nothing/there"], "warning:", EMPTY),
        case(0, &["drain", "nobody"], "warning:", EMPTY),
        case(0, &["thaw"], "warning:", EMPTY),
        taken(&["plan"]),
    ]
}

fn intents() -> Vec<Case> {
    let lists = "`incumbent intents` lists the ids";
    vec![
        refused(&["intents", "--withdraw"], "--withdraw <ID>", "a value is required"),
        refused(&["intents", "withdraw", "a"], "'withdraw'", USAGE),
        case(1, &["intents", "--withdraw", "zz"], "\"zz\"", lists),
        case(1, &["intents", "--withdraw", "zzzzzzzz"], "\"zzzzzzzz\"", lists),
        case(1, &["intents", "--withdraw", "freeze"], "\"freeze\"", lists),
        case(1, &["intents", "--withdraw", "a\u{1b}[2J"], "a\\u{1b}[2J", lists),
        taken(&["intents"]),
    ]
}

fn rollouts() -> Vec<Case> {
    let shows = "`incumbent rollout status`";
    vec![
        case(1, &["rollout", "status", "nothing"], "\"nothing\"", shows),
        case(1, &["rollout", "status", "a/b"], "\"a/b\"", shows),
        case(1, &["rollout", "promote", "nothing"], "\"nothing\"", shows),
        case(1, &["rollout", "abort", "nothing"], "\"nothing\"", shows),
        refused(&["rollout", "abort", "a", "b"], "'b'", USAGE),
        refused(&["rollout", "canary"], "<FAMILY>", USAGE),
        refused(&["rollout", "canary", "projection"], "<DUTIES>", USAGE),
        refused(&["rollout", "canary", "10%", "projection"], "'projection'", "from 1% to 100%"),
        refused(&["rollout", "canary", "a", "5", "--off"], "--off", USAGE),
        refused(&["rollout", "canary", "a", "5", "6"], "'6'", USAGE),
        refused(
            &["rollout", "canary", "a", "5", "--well-for"],
            "--well-for",
            "a value is required",
        ),
        refused(&["rollout", "hold", "--well-for", "5m"], "'--well-for'", USAGE),
        case(1, &["rollout", "canary", "a", "--off"], "\"a\"", shows),
        taken(&["rollout", "status"]),
    ]
}

fn records() -> Vec<Case> {
    vec![
        refused(&["store", "reset"], "the whole cluster", "use --yes"),
        refused(&["store", "reset", "trial"], "'trial'", USAGE),
        refused(&["store", "repair", "--all"], "'--all'", USAGE),
        refused(&["store", "repair", "lease/a"], "'lease/a'", USAGE),
        taken(&["store", "repair", "--apply"]),
        taken(&["store", "repair", "--evict"]),
        taken(&["store", "reset", "--yes", "--cluster", "nobody"]),
    ]
}

fn views() -> Vec<Case> {
    vec![
        refused(&["top"], "needs a terminal", "`incumbent status`"),
        refused(&["top", "--json"], "top is a live view", "`incumbent status --json`"),
        refused(&["top"], "needs a terminal", "`incumbent status`").with("TERM", "dumb"),
        refused(&["doctor", "quick"], "'quick'", USAGE),
        taken(&["status", "--cluster", "trail"]),
        taken(&["duties", "--not-active", "--json"]),
        taken(&["leader", "--help"]),
    ]
}
