//! Several clusters of one store in one page, in a real browser.
#![cfg(target_os = "linux")]
#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "this is test code")]
#![allow(clippy::unwrap_used, reason = "this is test code")]

mod common;
#[allow(dead_code, reason = "it has more than is needed here")]
#[path = "page/stage.rs"]
mod stage;

use common::runs::until;
use incumbent::Node;
use incumbent_proving::browser::key;
use serde_json::{Value, json};
use stage::Stage;

/// A server that has joined one cluster and shows two more, one of which nobody has joined. In each of the others
/// somebody leads.
struct Clusters {
    stage: Stage,
    _billing: Node,
    shop: Node,
}

impl Clusters {
    fn new() -> Self {
        let stage = Stage::new(&["--also", "shop", "--also", "<b>mail</b>"]);
        let lead = |cluster: &str, name: &str, lease: &str| {
            let node = stage.trial.node_in(cluster, name);
            stage.trial.obedient(&node, lease);
            stage.trial.until_led(&node, lease);
            node
        };
        let shop = lead("shop", "till-1", "till");
        let billing = lead("trial", "billing-1", "scheduler");
        until("the other cluster has a leader", || {
            let led = stage.asked(&["--cluster", "shop", "leader", "incumbent/leader"]);
            (led["node"] == "till-1" || led["leader"]["node"] == "till-1").then_some(())
        });
        Self { stage, _billing: billing, shop }
    }

    fn address(&self) -> String {
        let script = "return location.search + location.hash";
        self.stage.browser.script(script).as_str().unwrap_or_default().to_owned()
    }

    /// What the command line says of another cluster.
    fn asked(&self, cluster: &str, what: &str) -> Value {
        self.stage.trial.run(&["--cluster", cluster, what, "--json"]).json()
    }
}

#[test]
fn a_cluster_in_trouble_is_seen_from_another_and_looked_at_without_a_reload() {
    let clusters = Clusters::new();
    let stage = &clusters.stage;
    stage.open("leases");
    stage.shows("#cluster", "trial");
    stage.shows(".leases-table", "scheduler");
    // Whoever gets this address sees the same cluster.
    stage.until("it is named", "return location.search === '?cluster=trial'");
    let well = "return document.querySelector('#clusters .dot.ok') !== null
        && document.querySelector('.trouble').hidden";
    stage.until("all are well", well);
    stage.browser.script("window.unchanged = true");

    stage.trial.runtime.block_on(clusters.shop.leave()).unwrap();
    stage.shows(".trouble.bad", "shop");
    stage.shows(".status.ok .verdict", "led");
    stage.click("#cluster button");
    stage.shows("#clusters", "is free");
    stage.shows("#clusters", "<b>mail</b>");
    stage.shows("#clusters", "nobody has joined it");
    assert_eq!(stage.browser.count("#clusters b"), 0, "a name became markup");

    stage.click("#clusters a[href*=shop]");
    stage.shows(".leases-table", "till");
    stage.shows(".status.bad .verdict", "free");
    assert!(!stage.browser.text(".leases-table").contains("scheduler"), "it is of the other");
    assert_eq!(clusters.address(), "?cluster=shop#/leases");
    stage.until("only others are warned of", "return document.querySelector('.trouble').hidden");
    stage.until("it is named", "return document.title.includes('shop')");
    // All links stay in the cluster, and the way back leads to the other.
    stage.browser.press("n");
    stage.shows("#view h1", "Nodes");
    assert_eq!(clusters.address(), "?cluster=shop#/nodes");
    stage.browser.script("history.go(-2)");
    stage.shows(".leases-table", "scheduler");
    stage.shows("#cluster", "trial");
    assert_eq!(clusters.address(), "?cluster=trial#/leases");
    assert_eq!(stage.browser.script("return window.unchanged"), true, "it was loaded anew");
    stage.is_clean();
}

#[test]
fn keyboard_alone_suffices_to_choose_a_cluster_and_to_steer_it() {
    let clusters = Clusters::new();
    let stage = &clusters.stage;
    stage.open("");
    stage.shows("#cluster", "trial");
    stage.until("all are known", "return document.querySelectorAll('#clusters a').length === 3");
    stage.browser.press("c");
    let current = "return document.activeElement.getAttribute('aria-current') === 'true'";
    stage.until("the present one has the focus", current);
    stage.browser.press(key::DOWN);
    stage.browser.press(key::ENTER);
    stage.until("another is shown", "return location.search === '?cluster=shop'");
    stage.shows(".timeline", "till");

    stage.open_at("?cluster=shop#/nodes/till-1");
    stage.shows("#detail .facts-table", "alive");
    stage.click("[data-act=cordon]");
    stage.shows("dialog", "In the cluster shop.");
    // Another cluster takes back what was about to be confirmed.
    stage.browser.press(key::ESCAPE);
    stage.act("cordon", None);
    let cordoned = |it: &Value| {
        let intents = it["intents"].as_array().unwrap();
        intents.iter().any(|it| it["kind"] == "cordon" && it["node"] == "till-1")
    };
    until("it is asked for there", || cordoned(&clusters.asked("shop", "intents")).then_some(()));
    assert_eq!(clusters.asked("trial", "intents")["intents"], json!([]), "and nowhere else");
    stage.shows("#detail .facts-table", "cordoned");
    stage.open_at("?cluster=shop#/log");
    stage.shows(".log-view", "cordon till-1");
    stage.open_at("?cluster=trial#/log");
    stage.shows(".log-view", "Nobody has steered anything yet");
    stage.is_clean();
}

#[test]
fn an_address_of_a_cluster_that_is_not_here_says_which_are() {
    let clusters = Clusters::new();
    let stage = &clusters.stage;
    stage.browser.open(&format!("{}?cluster=shopp#/nodes", stage.base()));
    stage.shows("#status.stale", "There is no cluster shopp here");
    for name in ["trial", "shop", "<b>mail</b>"] {
        stage.shows("#view", name);
    }
    stage.click("#view a[href='?cluster=shop#/']");
    stage.shows(".timeline", "till");
    // A dialog doesn't outlive the cluster that it was about.
    stage.open_at("?cluster=shop#/nodes/till-1");
    stage.shows("#detail .facts-table", "alive");
    stage.browser.script("history.pushState(null, '', '?cluster=trial#/nodes'); history.back()");
    stage.click("[data-act=cordon]");
    stage.until("it is asked", "return document.querySelector('dialog') !== null");
    stage.browser.script("history.forward()");
    stage.until("it is asked no more", "return document.querySelector('dialog') === null");
    stage.shows(".nodes-table", "billing-1");
}
