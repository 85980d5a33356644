//! What the tests of the command line share: the program, a store, and nodes to look at.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of it")]
#![allow(clippy::expect_used, clippy::panic, reason = "this is test code, although no test")]

pub mod records;
#[cfg(target_os = "linux")]
pub mod runs;
pub mod servers;
#[cfg(target_os = "linux")]
pub mod terminal;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output};
use std::sync::mpsc::channel;
use std::time::Duration;

use incumbent::{Campaign, Family, Leadership, Node, Serving, clock};
use serde_json::Value;
use servers::Postgres;
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// Long enough for a slow machine, short enough to notice that something hangs.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The ttl of the nodes.
pub const TTL: Duration = Duration::from_secs(5);

/// A directory with a store and a cluster in it, and nodes that run inside the test.
pub struct Trial {
    pub directory: TempDir,
    pub runtime: Runtime,
    /// Where the store is instead, if not in the directory.
    pub postgres: Option<Postgres>,
}

impl Trial {
    pub fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        Self {
            directory: tempfile::tempdir().expect("a temporary directory"),
            runtime: runtime.expect("a runtime"),
            postgres: None,
        }
    }

    /// One whose store is in PostgreSQL.
    pub fn on_postgres() -> Self {
        let trial = Self { postgres: Some(Postgres::new()), ..Self::new() };
        trial.run(&["store", "init"]).succeeds();
        trial
    }

    /// One on SQLite, and one on PostgreSQL.
    pub fn on_each_store() -> impl Iterator<Item = Self> {
        let postgres = || {
            println!("on PostgreSQL:");
            Self::on_postgres()
        };
        std::iter::once_with(Self::new).chain(std::iter::once_with(postgres))
    }

    /// One whose store is there already.
    pub fn with_store() -> Self {
        let trial = Self::new();
        trial.run(&["store", "init"]).succeeds();
        trial
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    pub fn url(&self) -> String {
        if let Some(postgres) = &self.postgres {
            return postgres.url.clone();
        }
        format!("sqlite:{}", self.path().join("trial.db").display())
    }

    /// A node that stands for nothing yet. Its ttl outlasts the pauses of a busy machine.
    pub fn node(&self, name: &str) -> Node {
        self.node_in("trial", name)
    }

    /// One in another cluster of the same store.
    pub fn node_in(&self, cluster: &str, name: &str) -> Node {
        let joined = self.runtime.block_on(async {
            let store = incumbent::open(&self.url()).await.expect("opens");
            let builder = Node::builder().ttl(TTL).cluster(cluster).name(name);
            builder.address(format!("{name}:80")).join(store).await
        });
        joined.expect("joins")
    }

    /// Waits until the campaign is won.
    pub fn elected(&self, campaign: &mut Campaign) -> Leadership {
        let elected = self.runtime.block_on(async {
            tokio::time::timeout(PATIENCE, campaign.elected()).await.expect("wins in time")
        });
        elected.expect("the node is there")
    }

    /// Waits until others can read the node's name, which comes a moment after it joined.
    pub fn until_named(&self, node: &Node) {
        self.runtime.block_on(async {
            let named = async {
                let is_named = |it: &incumbent::Member| it.node == node.name();
                while !node.cluster().members().await.expect("members").iter().any(is_named) {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            };
            tokio::time::timeout(PATIENCE, named).await.expect("is named in time");
        });
    }

    /// Leads a lease in the background, gives it up when asked, and stands again.
    pub fn obedient(&self, node: &Node, lease: &str) {
        let mut campaign = node.campaign(lease).expect("stands");
        self.runtime.spawn(async move {
            while let Ok(leadership) = campaign.elected().await {
                leadership.lost().await;
            }
        });
    }

    /// Nodes of these names that stand for a lease obediently. The first of them leads it.
    pub fn candidates<const N: usize>(&self, lease: &str, names: [&str; N]) -> [Node; N] {
        let mut led = false;
        names.map(|name| {
            let node = self.node(name);
            self.obedient(&node, lease);
            if !std::mem::replace(&mut led, true) {
                self.until_led(&node, lease);
            }
            node
        })
    }

    /// Lets a node serve duties of a family, each until it is told to end.
    pub fn serving(&self, node: &Node, family: Family) -> Serving {
        let work = family.run(|duty| async move {
            duty.token().cancelled().await;
            Ok(())
        });
        let _runtime = self.runtime.enter();
        node.serve(work).expect("it serves")
    }

    /// Waits until this node leads.
    pub fn until_led(&self, node: &Node, lease: &str) {
        self.runtime.block_on(async {
            let led = async {
                while !node.is_leader(lease) {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            };
            tokio::time::timeout(PATIENCE, led).await.expect("leads in time");
        });
    }

    /// The program, pointed at this store and cluster.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = program(arguments);
        command.env("INCUMBENT_STORE", self.url()).env("INCUMBENT_CLUSTER", "trial");
        command.current_dir(self.path());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Ran {
        Ran::of(self.command(arguments))
    }
}

/// What becomes of a command that measures, on a machine that may stand still for a moment: it is
/// tried again, twice at most.
pub fn calmly(command: impl Fn() -> Command, is_good: impl Fn(&Ran) -> bool) -> Ran {
    for _ in 0..2 {
        let ran = Ran::of(command());
        if is_good(&ran) {
            return ran;
        }
        println!("again, because of {ran:#?}");
    }
    Ran::of(command())
}

/// Waits for something that must come true.
#[track_caller]
pub fn eventually(what: &str, holds: impl Fn() -> bool) {
    let began = clock::now();
    while !holds() {
        assert!(clock::now().since(began) < PATIENCE, "{what}: not after {PATIENCE:?}");
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

/// The first line that a child prints on its standard output.
#[track_caller]
pub fn first_line(child: &mut Child) -> String {
    let output = child.stdout.take().expect("its output is taken");
    let (line, lines) = channel();
    std::thread::spawn(move || {
        let mut text = String::new();
        let _ = BufReader::new(output).read_line(&mut text);
        let _ = line.send(text);
    });
    lines.recv_timeout(PATIENCE).expect("a line in time")
}

/// The program, with nothing in the environment that could mislead it.
pub fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_incumbent"));
    for variable in ["STORE", "CLUSTER", "NODE", "TTL"] {
        command.env_remove(format!("INCUMBENT_{variable}"));
    }
    // Where `CI` is set, every terminal counts as one with colours.
    for variable in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "CI"] {
        command.env_remove(variable);
    }
    // Not the file of whoever runs the tests.
    command.env("INCUMBENT_CONFIG", "/dev/null");
    command.args(arguments);
    command
}

/// What became of a command.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    pub fn of(mut command: Command) -> Self {
        let Output { status, stdout, stderr } = command.output().expect("it can be started");
        Self {
            code: status.code().unwrap_or(-1),
            stdout: String::from_utf8(stdout).expect("text"),
            stderr: String::from_utf8(stderr).expect("text"),
        }
    }

    #[track_caller]
    pub fn succeeds(self) -> Self {
        self.ends_with(0)
    }

    #[track_caller]
    pub fn ends_with(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:#?}");
        self
    }

    /// Whether all of this was said on standard output.
    #[track_caller]
    pub fn says(self, parts: &[&str]) -> Self {
        for part in parts {
            assert!(self.stdout.contains(part), "{part:?} is missing in {self:#?}");
        }
        self
    }

    /// Whether all of this was said on standard error.
    #[track_caller]
    pub fn complains(self, parts: &[&str]) -> Self {
        for part in parts {
            assert!(self.stderr.contains(part), "{part:?} is missing in {self:#?}");
        }
        self
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }
}
