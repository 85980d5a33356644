//! The page, in a real browser, on a cluster of real processes.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "this is test code, helpers too")]

mod common;
#[path = "page/stage.rs"]
mod stage;

use std::os::unix::fs::OpenOptionsExt as _;
use std::time::Duration;

use common::runs::{pause, until};
use incumbent::clock;
use incumbent_proving::browser::key;
use rustix::process::Signal;
use serde_json::{Value, json};
use stage::{Stage, holder, worker};

const DUTIES: &[&str] = &["carts", "invoices", "orders", "returns"];

/// The name of the last band of a lease's row, and the kinds of all of them.
const SCHEDULER: &str = "
    const link = [...document.querySelectorAll('.timeline a')].find((one) => one.textContent === 'scheduler');
    const bands = [...link?.closest('.v-row').querySelectorAll('.band') ?? []];
    const kinds = bands.map((band) => band.className.split(' ')[1]);
    const last = bands.at(-1)?.textContent ?? '';";

#[test]
fn a_killed_leader_leaves_a_gap_and_the_next_one_appears_without_a_reload() {
    let stage = Stage::new(&[]);
    let first = holder(&stage.trial, "scheduler", "billing-1");
    let led_by = |name: &str| {
        let name = name.to_owned();
        move |leader: &Value| leader["leader"]["node"] == name
    };
    stage.until_told("the first leads", &["leader", "scheduler"], |it| {
        it["node"] == "billing-1" || led_by("billing-1")(it)
    });
    let _second = holder(&stage.trial, "scheduler", "billing-2");
    stage.open("");
    stage.until("it is shown", &format!("{SCHEDULER} return last === 'billing-1'"));
    stage.shows(".status.ok .verdict", "led");
    stage.browser.script("window.unchanged = true");

    first.signal(Signal::KILL);
    let taken = until("the second leads", || {
        let led = stage.asked(&["leader", "scheduler"]);
        (led["node"] == "billing-2" || led_by("billing-2")(&led)).then(clock::now)
    });
    stage.until("the next is shown", &format!("{SCHEDULER} return last === 'billing-2'"));
    // Far above the second that it takes, for machines on which much else runs.
    let late = clock::now().since(taken);
    println!("the page showed the next leader {late:?} after the command line knew it");
    assert!(late < Duration::from_secs(10), "{late:?}");
    let gap = format!("{SCHEDULER} return kinds.at(-2) === 'gap' || kinds.at(-2) === 'doubt'");
    stage.until("there is a gap before it", &gap);
    let why = stage
        .browser
        .script(&format!("{SCHEDULER} return bands.at(-2).getAttribute('aria-label')"));
    let why = why.as_str().unwrap();
    assert!(why.starts_with("Nobody led: billing-1 fell silent"), "{why}");
    assert!(why.contains("billing-2 took over"), "{why}");
    stage.shows(".status.ok .verdict", "led");
    assert_eq!(stage.browser.script("return window.unchanged"), true, "it was loaded anew");
    stage.is_clean();
}

#[test]
fn drain_shows_what_would_move_before_it_is_confirmed() {
    let stage = Stage::new(&[]);
    let _one = worker(&stage.trial, "billing-1", DUTIES);
    let _two = worker(&stage.trial, "billing-2", DUTIES);
    let carries = |name: &'static str| {
        move |it: &Value| {
            let duties = it["duties"].as_array().unwrap();
            let active = duties.iter().all(|duty| duty["state"] == "active");
            active && duties.iter().filter(|duty| duty["node"] == name).count() == 2
        }
    };
    stage.until_told("both carry two", &["duties"], carries("billing-1"));
    stage.open("nodes/billing-2");
    stage.click("[data-act=drain]");
    stage.until(
        "what would move is shown",
        "return document.querySelectorAll('.diff-rows li').length === 2",
    );
    stage.shows("dialog .diff", "2 duties would move");
    let shown = stage.browser.text("dialog .diff");
    assert!(shown.contains("billing-2") && shown.contains("billing-1"), "{shown}");
    // Until then nothing was asked for, and after a no nothing is.
    stage.click("dialog [data-cancel]");
    assert_eq!(stage.asked(&["intents"])["intents"], json!([]));

    stage.act("drain", None);
    stage.until_told("it is empty", &["duties"], |it| {
        it["duties"].as_array().unwrap().iter().all(|duty| duty["node"] == "billing-1")
    });
    stage.shows("#detail", "Carries no duties");
    stage.shows("#detail", "drained");
    stage.act("undrain", None);
    stage.until_told("nothing is asked for", &["intents"], nothing_in_force);
    // Who, what, of whom: written down, and shown.
    stage.open("log");
    for act in ["drain", "undrain"] {
        stage.until(act, &format!("return [...document.querySelectorAll('.log li')].some((row) => row.innerText.includes('{act} billing-2'))"));
    }
    stage.is_clean();
}

fn nothing_in_force(it: &Value) -> bool {
    let intents = it["intents"].as_array().unwrap();
    intents.iter().all(|intent| intent["state"] == "done" || intent["state"] == "obsolete")
}

fn standing(it: &Value, duty: &str) -> Value {
    let duties = it["duties"].as_array().unwrap();
    duties.iter().find(|it| it["duty"] == duty).cloned().unwrap_or_default()
}

#[test]
fn duties_are_moved_pinned_and_paused_and_the_cluster_is_frozen() {
    let stage = Stage::new(&[]);
    let _one = worker(&stage.trial, "billing-1", DUTIES);
    let _two = worker(&stage.trial, "billing-2", DUTIES);
    let active = |it: &Value| {
        let duties = it["duties"].as_array().unwrap();
        duties.len() == 4 && duties.iter().all(|duty| duty["state"] == "active")
    };
    stage.until_told("all run", &["duties"], active);
    let before = standing(&stage.asked(&["duties"]), "projection/orders")["node"].clone();
    let other = if before == "billing-1" { "billing-2" } else { "billing-1" };
    stage.open("duties/projection%2Forders");
    stage.shows("#detail .why", "");
    stage
        .until("it is explained", "return document.querySelectorAll('#detail .why li').length > 0");

    stage.act("move", Some(other));
    let moved = |it: &Value| standing(it, "projection/orders")["node"] == other && active(it);
    stage.until_told("it moved", &["duties"], moved);
    stage.shows("#detail .facts-table", other);

    stage.act("pin", Some(other));
    stage.until_told("it is pinned", &["duties"], |it| {
        !standing(it, "projection/orders")["pinned"].is_null()
    });
    stage.shows("#detail .facts-table", "Pinned to");
    stage.act("unpin", None);
    stage.until_told("it is free", &["duties"], |it| {
        standing(it, "projection/orders")["pinned"].is_null()
    });

    stage.act("pause", None);
    stage.until_told("it is paused", &["duties"], |it| {
        standing(it, "projection/orders")["state"] == "paused"
    });
    stage.shows("#detail .facts-table", "paused");
    stage.act("resume", None);
    stage.until_told("it runs again", &["duties"], active);

    stage.open("log");
    stage.act("freeze", None);
    let frozen = |it: &Value| {
        it["intents"]
            .as_array()
            .unwrap()
            .iter()
            .any(|it| it["kind"] == "freeze" && it["state"] == "in force")
    };
    stage.until_told("it is frozen", &["intents"], frozen);
    stage.click("[data-act=thaw]");
    stage.click("dialog [data-cancel]");
    // One way to end it is the list of what is asked for.
    stage.act("withdraw", None);
    stage.until_told("it is frozen no more", &["intents"], nothing_in_force);
    stage.until("the page knows", "return document.querySelector('[data-act=freeze]') !== null");
    stage.is_clean();
}

#[test]
fn leases_are_resigned_and_handed_over_and_nodes_cordoned_and_evicted() {
    let stage = Stage::new(&[]);
    let nodes = ["billing-1", "billing-2", "billing-3"].map(|name| {
        let node = stage.trial.node(name);
        stage.trial.obedient(&node, "scheduler");
        if name == "billing-1" {
            stage.trial.until_led(&node, "scheduler");
        }
        stage.trial.until_named(&node);
        node
    });
    let term = |stage: &Stage| {
        stage.trial.run(&["history", "scheduler", "--json"]).succeeds().json()["leases"][0]["term"]
            .as_u64()
            .unwrap()
    };
    stage.open("leases/scheduler");
    stage.shows("#detail .facts-table", "billing-1");
    stage.act("resign", None);
    until("another term", || (term(&stage) == 2).then_some(()));
    let holder = || {
        stage.trial.run(&["history", "scheduler", "--json"]).succeeds().json()["leases"][0]["leader"]["node"].clone()
    };
    let second = holder();
    stage.shows("#detail .facts-table", &format!("Term\n2\nHolder\n{}", second.as_str().unwrap()));
    let names = ["billing-1", "billing-2", "billing-3"];
    let next = names.into_iter().find(|name| second != **name).unwrap();
    stage.act("transfer", Some(next));
    until("it was handed over", || (holder() == next).then_some(()));
    stage.shows("#detail .facts-table", next);

    stage.open("nodes/billing-3");
    stage.act("cordon", None);
    let cordoned = |it: &Value| {
        it["intents"]
            .as_array()
            .unwrap()
            .iter()
            .any(|it| it["kind"] == "cordon" && it["state"] == "in force")
    };
    stage.until_told("it is cordoned", &["intents"], cordoned);
    stage.shows("#detail .facts-table", "cordoned");
    stage.act("uncordon", None);
    stage.until_told("it is not", &["intents"], nothing_in_force);

    let id = nodes[2].member().unwrap();
    stage.open(&format!("nodes/{}", id.as_str()));
    stage.act("evict", None);
    until("it is a member anew", || nodes[2].member().filter(|now| *now != id));
    // Once it has stopped, an evicted member says by itself that it has left.
    stage.until(
        "it is shown as gone",
        "return /evicted|left/.test(document.querySelector('#detail .facts-table')?.innerText)",
    );
    stage.is_clean();
}

#[test]
fn what_a_store_holds_never_becomes_markup() {
    let stage = Stage::new(&[]);
    let evil = "<img src=x onerror='window.hacked=1'>";
    let (node, _serving) = worker(
        &stage.trial,
        evil,
        &["<script>window.hacked=2</script>", "\"><b id=hacked>", "javascript:alert(1)"],
    );
    stage.trial.obedient(&node, "'><svg onload=window.hacked=3>");
    stage.trial.until_led(&node, "'><svg onload=window.hacked=3>");
    let turned = stage.trial.node("turned\u{202e}gpj.exe");
    stage.trial.until_named(&turned);
    stage.until_told("all run", &["duties"], |it| {
        let duties = it["duties"].as_array().unwrap();
        duties.len() == 3 && duties.iter().all(|duty| duty["state"] == "active")
    });
    let shown = [
        ("", ".timeline", "'><svg onload=window.hacked=3>"),
        ("leases", ".leases-table", evil),
        ("nodes", ".nodes-table", evil),
        ("nodes", ".nodes-table", "turned\\u{202e}gpj.exe"),
        ("duties", ".grid-table", evil),
        ("duties?view=list", ".duties-table", "projection/<script>window.hacked=2</script>"),
        ("log", ".log-view", "Nobody has asked for anything"),
        ("nodes/%3Cimg%20src%3Dx%20onerror%3D'window.hacked%3D1'%3E", "#detail", evil),
        ("duties/projection%2Fjavascript%3Aalert(1)", "#detail", "projection/javascript:alert(1)"),
        (
            "duties/%3Cimg%20src%3Dx%20onerror%3Dwindow.hacked%3D4%3E",
            "#detail",
            "Nobody knows a duty of that name",
        ),
    ];
    for (route, place, text) in shown {
        stage.open(route);
        stage.shows(place, text);
        // Also what is only shown when it is pointed at, or confirmed.
        if stage.browser.count("[data-act]") > 0 {
            stage.browser.script("document.querySelector('[data-act]').click()");
            stage.until("a dialog", "return document.querySelector('dialog') !== null");
            stage.browser.press(key::ESCAPE);
        }
        let injected =
            "main img, main script, main svg, main b, aside img, aside svg, dialog img, #hacked";
        assert_eq!(stage.browser.count(injected), 0, "{route}");
        assert_eq!(stage.browser.count("main [style*=url], a[href^=javascript]"), 0, "{route}");
    }
    assert_eq!(stage.browser.script("return window.hacked ?? null"), Value::Null);
    stage.is_clean();
}

/// A stage with two workers on which all runs, to be used by the keyboard alone.
struct Keyboard {
    stage: Stage,
    _workers: [(incumbent::Node, incumbent::Serving); 2],
}

impl Keyboard {
    fn new() -> Self {
        let stage = Stage::new(&[]);
        let _workers = ["billing-1", "billing-2"].map(|name| worker(&stage.trial, name, DUTIES));
        stage.until_told("all run", &["duties"], |it| {
            let duties = it["duties"].as_array().unwrap();
            duties.iter().filter(|duty| duty["state"] == "active").count() == 4
        });
        stage.open("");
        Self { stage, _workers }
    }

    fn press(&self, keys: &str) {
        self.stage.browser.press(keys);
    }

    /// The text of what has the focus.
    fn focus(&self) -> String {
        let script = "return document.activeElement?.textContent ?? ''";
        self.stage.browser.script(script).as_str().unwrap_or_default().to_owned()
    }

    /// Goes on with the tabulator until this has the focus.
    #[track_caller]
    fn reach(&self, text: &str) {
        until(text, || {
            self.press(key::TAB);
            (self.focus() == text).then_some(())
        });
    }
}

#[test]
fn keyboard_alone_suffices_to_find_a_node_and_drain_it() {
    let keyboard = Keyboard::new();
    let stage = &keyboard.stage;
    // The first stop is the way past the head of the page.
    keyboard.press(key::TAB);
    assert_eq!(keyboard.focus(), "Skip to the content");
    keyboard.press("n");
    stage.shows("#view h1", "Nodes");
    keyboard.press("/");
    keyboard.press("billing-2");
    let rows = "return document.querySelectorAll('.nodes-table .v-row').length === 1";
    stage.until("one is left", rows);
    keyboard.press(key::TAB);
    assert_eq!(keyboard.focus(), "billing-2");
    keyboard.press(key::ENTER);
    let heading = "return document.activeElement.closest('#detail h2') !== null";
    stage.until("its details have the focus", heading);
    // Updates come all the time, and must not take the focus away.
    keyboard.reach("Drain");
    pause(Duration::from_millis(3500));
    assert_eq!(keyboard.focus(), "Drain", "it was lost by an update");
    keyboard.press(key::ENTER);
    let ready = "return document.querySelector('dialog [data-confirm]')?.disabled === false";
    stage.until("it can be confirmed", ready);
    until("the confirmation is reached", || {
        keyboard.press(key::TAB);
        let reached = "return document.activeElement.matches('[data-confirm]')";
        (stage.browser.script(reached) == true).then_some(())
    });
    keyboard.press(key::ENTER);
    stage.until_told("it is drained", &["duties"], |it| {
        it["duties"].as_array().unwrap().iter().all(|duty| duty["node"] == "billing-1")
    });
    keyboard.press(key::ESCAPE);
    stage.until("the details are closed", "return document.querySelector('#detail').hidden");
    stage.is_clean();
}

#[test]
fn keyboard_alone_suffices_in_the_grid_and_in_the_timeline() {
    let keyboard = Keyboard::new();
    let stage = &keyboard.stage;
    // In the grid: down a row and up again, to the right into its duties, and in.
    keyboard.press("d");
    stage.shows(".grid-table", "billing-1");
    keyboard.reach("billing-1");
    keyboard.press(key::DOWN);
    assert_eq!(keyboard.focus(), "billing-2");
    keyboard.press("\u{e013}");
    keyboard.press(key::RIGHT);
    keyboard.press(key::ENTER);
    let kind = "return document.querySelector('#detail .kind')?.textContent === 'Duty'";
    stage.until("a duty is shown", kind);
    keyboard.press("o");
    keyboard.reach("incumbent/leader");
    keyboard.press(key::RIGHT);
    let story = "const tip = document.querySelector('.tip');
        return tip?.hidden === false && tip.textContent.includes('leads in term')";
    stage.until("a band tells its story", story);
    stage.is_clean();
}

#[test]
fn a_page_that_hears_nothing_says_so_and_goes_on_when_it_can() {
    let mut stage = Stage::new(&[]);
    let node = stage.trial.node("billing-1");
    stage.trial.obedient(&node, "scheduler");
    stage.trial.until_led(&node, "scheduler");
    stage.open("leases");
    stage.shows(".leases-table", "scheduler");
    stage.server.signal(Signal::KILL);
    stage.server.end();
    stage.shows(".status.stale .verdict", "Stale: no word from the server");
    stage.shows(".status.stale", "everything below is as of");
    stage.serve_again();
    stage.until(
        "it goes on",
        "return document.querySelector('.status.stale, .status.wait') === null",
    );
    stage.shows(".leases-table", "billing-1");
}

#[test]
fn a_server_that_only_shows_offers_nothing_else() {
    let stage = Stage::sized(&["--read-only"], 390, 844);
    let _one = worker(&stage.trial, "billing-1", DUTIES);
    for (route, place, text) in [
        ("nodes/billing-1", "#detail .facts-table", "alive"),
        ("duties/projection%2Forders", "#detail .facts-table", "active"),
        ("leases/incumbent%2Fleader", "#detail .facts-table", "led"),
        ("log", "#view", "Nobody has asked for anything"),
    ] {
        stage.open(route);
        stage.shows("#cluster", "read-only");
        stage.shows(place, text);
        assert_eq!(stage.browser.count("[data-act]"), 0, "{route}");
        let over = stage.browser.script("return document.documentElement.scrollWidth - innerWidth");
        assert_eq!(over, 0, "{route} is wider than a phone");
    }
    stage.is_clean();
}

#[test]
fn a_token_is_asked_for_and_forgotten_with_the_tab() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().with_extension("tokens");
    let text = "operator alice 0123456789abcdef0123\nread-only board fedcba98765432100123\n";
    let mut tokens =
        std::fs::File::options().write(true).create_new(true).mode(0o600).open(&path).unwrap();
    std::io::Write::write_all(&mut tokens, text.as_bytes()).unwrap();
    let stage = Stage::new(&["--token-file", path.to_str().unwrap()]);
    let node = stage.trial.node("billing-1");
    stage.trial.until_named(&node);
    stage.browser.open(&format!("{}#/nodes/billing-1", stage.base()));
    stage.shows("dialog", "A token is needed");
    stage.browser.press("0000000000000000");
    stage.browser.press(key::ENTER);
    stage.shows("dialog", "isn't known here");
    stage.browser.press("0123456789abcdef0123");
    stage.browser.press(key::ENTER);
    stage.shows("#detail .facts-table", "alive");
    stage.act("cordon", None);
    stage.open("log");
    stage.shows(".log-view", "alice cordon billing-1");
    assert_eq!(stage.browser.script("return localStorage.length"), 0);
    assert_eq!(stage.browser.script("return document.cookie"), "");
    std::fs::remove_file(&path).unwrap();
}
