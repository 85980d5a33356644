//! The configuration file: what the flags and the environment leave open.

mod reader;
mod serve;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::time::Duration;

use self::reader::{Reader, Table};
use self::serve::ServeConfig;
use crate::exit::{Failure, Outcome};

/// The keys at the top.
const KEYS: &str =
    "store, cluster, node, ttl, hints, hint-key-file and the tables [run] and [serve]";
/// The keys of the table `[run]`.
const RUN_KEYS: &str = "grace, last-grace, isolate, on-lost and witness";

/// What a file may have at most, in bytes.
const LARGEST: u64 = 1 << 20;
/// How long it may take to be read.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a configuration file says.
#[derive(Clone, Debug, Default)]
pub(crate) struct Config {
    /// Where it is, if there is one.
    pub(crate) path: Option<PathBuf>,
    /// The store's URL.
    pub(crate) store: Option<Entry<String>>,
    /// The cluster.
    pub(crate) cluster: Option<Entry<String>>,
    /// The node's name.
    pub(crate) node: Option<Entry<String>>,
    /// The ttl.
    pub(crate) ttl: Option<Entry<Duration>>,
    /// Where hints from other nodes are taken.
    pub(crate) hints: Option<Entry<String>>,
    /// The file with the key for hints.
    pub(crate) hint_key_file: Option<Entry<String>>,
    /// What is about `run` alone.
    pub(crate) run: RunConfig,
    /// What is about `serve` alone.
    #[cfg_attr(not(feature = "serve"), allow(dead_code, reason = "the file is the same without"))]
    pub(crate) serve: ServeConfig,
}

/// What a configuration file says about `run`.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunConfig {
    /// How long a command may take to end.
    pub(crate) grace: Option<Entry<Duration>>,
    /// How long before its lease runs out it is asked to end, for no beat gets through.
    pub(crate) last_grace: Option<Entry<Duration>>,
    /// When it gets a PID namespace of its own: `auto`, `always` or `never`.
    pub(crate) isolate: Option<Entry<String>>,
    /// What is run when a lease was lost.
    pub(crate) on_lost: Option<Entry<String>>,
    /// Whether others may watch its processes.
    pub(crate) witness: Option<Entry<bool>>,
}

/// A value, and the line on which it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry<T> {
    pub(crate) value: T,
    pub(crate) line: usize,
}

impl Config {
    /// Reads the file that was named, or else the user's own if there is one.
    pub(crate) fn find(named: Option<&Path>) -> Outcome<Self> {
        if let Some(path) = named {
            return Self::read(path);
        }
        match default_path() {
            Some(path) if path.exists() => Self::read(&path),
            _ => Ok(Self::default()),
        }
    }

    fn read(path: &Path) -> Outcome<Self> {
        let text = text_of(path).map_err(|error| {
            Failure::usage(format!(
                "the configuration file {} can't be read: {error}. Name another with --config or \
                 INCUMBENT_CONFIG, or make it readable",
                path.display()
            ))
        })?;
        Self::parse(path, &text).map_err(Failure::usage)
    }

    pub(crate) fn parse(path: &Path, text: &str) -> Result<Self, String> {
        let reader = Reader { path, text };
        let mut config = Self { path: Some(path.to_owned()), ..Self::default() };
        for (key, value) in reader.table()?.get_ref() {
            match key.get_ref().as_ref() {
                "store" => config.store = Some(reader.text(key, value)?),
                "cluster" => config.cluster = Some(reader.text(key, value)?),
                "node" => config.node = Some(reader.text(key, value)?),
                "ttl" => config.ttl = Some(reader.ttl(key, value)?),
                "hints" => config.hints = Some(reader.text(key, value)?),
                "hint-key-file" => config.hint_key_file = Some(reader.text(key, value)?),
                "run" => config.run = RunConfig::parse(&reader, reader.inner(key, value)?)?,
                "serve" => config.serve = ServeConfig::parse(&reader, reader.inner(key, value)?)?,
                _ => return Err(reader.unknown(key, KEYS)),
            }
        }
        Ok(config)
    }
}

impl RunConfig {
    fn parse(reader: &Reader<'_>, table: &Table<'_>) -> Result<Self, String> {
        let mut run = Self::default();
        for (key, value) in table {
            match key.get_ref().as_ref() {
                "grace" => run.grace = Some(reader.span(key, value)?),
                "last-grace" => run.last_grace = Some(reader.span(key, value)?),
                "isolate" => {
                    run.isolate = Some(reader.one_of(key, value, &["auto", "always", "never"])?);
                }
                "on-lost" => run.on_lost = Some(reader.text(key, value)?),
                "witness" => run.witness = Some(reader.truth(key, value)?),
                _ => return Err(reader.unknown(key, RUN_KEYS)),
            }
        }
        Ok(run)
    }
}

/// The text of a file, which may be a pipe from another program: but neither one that nobody ever
/// writes to nor one without an end.
fn text_of(path: &Path) -> io::Result<String> {
    let (send, receive) = channel();
    let path = path.to_owned();
    let reader = move || {
        let mut text = String::new();
        let read = File::open(&path)
            .and_then(|file| file.take(LARGEST + 1).read_to_string(&mut text))
            .map(|_| text);
        // Nobody waits any more if it took too long.
        let _ = send.send(read);
    };
    std::thread::Builder::new().name("configuration".to_owned()).spawn(reader)?;
    let late = || io::Error::new(io::ErrorKind::TimedOut, format!("nothing came in {PATIENCE:?}"));
    let text = receive.recv_timeout(PATIENCE).map_err(|_| late())??;
    if text.len() as u64 > LARGEST {
        let said = "it is larger than 1 MiB, too large for a configuration file";
        return Err(io::Error::new(io::ErrorKind::InvalidData, said));
    }
    Ok(text)
}

/// The user's own file, whether it is there or not.
pub(crate) fn default_path() -> Option<PathBuf> {
    let named = |variable: &str| std::env::var_os(variable).filter(|value| !value.is_empty());
    // The specification says that a relative path there is to be ignored.
    let absolute = |variable| named(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || absolute("HOME").map(|home| home.join(".config"));
    absolute("XDG_CONFIG_HOME")
        .or_else(home)
        .map(|config| config.join("incumbent").join("incumbent.toml"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Config, String> {
        Config::parse(Path::new("a.toml"), text)
    }

    #[test]
    fn all_keys_are_read_with_their_lines() {
        let config = parse(
            "# Ours\nstore = \"sqlite:app.db\"\ncluster = 'billing'\nnode = \"billing-1\"\n\
             ttl = \"20s\"\nhints = \"off\"\n[run]\ngrace = \"1m\"\nisolate = \"never\"\non-lost = \"page\"\n\
             witness = false\n[serve]\ntls-cert = \"server.crt\"\n",
        );
        let config = config.unwrap();
        let store = Entry { value: "sqlite:app.db".to_owned(), line: 2 };
        assert_eq!(config.store, Some(store));
        assert_eq!(config.ttl, Some(Entry { value: Duration::from_secs(20), line: 5 }));
        assert_eq!(config.hints, Some(Entry { value: "off".to_owned(), line: 6 }));
        assert_eq!(config.run.grace, Some(Entry { value: Duration::from_secs(60), line: 8 }));
        assert_eq!(config.run.witness, Some(Entry { value: false, line: 11 }));
        let certificate = Entry { value: "server.crt".to_owned(), line: 13 };
        assert_eq!(config.serve.tls_cert, Some(certificate));
        assert!(parse("").unwrap().store.is_none());
    }

    #[test]
    fn what_is_wrong_is_told_with_file_line_key_value_and_the_next_step() {
        for (text, parts) in [
            ("\nstor = \"x\"", &["a.toml:2:", "\"stor\"", "store, cluster"][..]),
            ("ttl = \"soon\"", &["a.toml:1:", "ttl = \"soon\"", "such as 3s"]),
            ("ttl = 15", &["a.toml:1:", "ttl = 15", "integer", "in quotes"]),
            ("ttl = \"1s\"", &["a.toml:1:", "ttl = \"1s\"", "3s"]),
            ("cluster = \"\"", &["a.toml:1:", "cluster", "leave the line out"]),
            ("cluster = \"a\\tb\"", &["a.toml:1:", "cluster"]),
            ("run = 1", &["a.toml:1:", "run = 1", "[run]"]),
            ("serve = 1", &["a.toml:1:", "serve = 1", "[serve]"]),
            ("[serve]\ncert = \"x\"", &["a.toml:2:", "\"cert\"", "tls-cert, tls-key"]),
            ("[serve]\ntls-key = \"\"", &["a.toml:2:", "tls-key", "leave the line out"]),
            ("[run]\nrestart = true", &["a.toml:2:", "\"restart\"", "grace, last-grace"]),
            ("[run]\n\nisolate = \"maybe\"", &["a.toml:3:", "maybe", "auto, always or never"]),
            ("[run]\nwitness = \"no\"", &["a.toml:2:", "witness = \"no\"", "true or false"]),
            ("ttl = \"15s\"\nttl = \"16s\"", &["a.toml:2:", "duplicate"]),
            ("store = sqlite:app.db", &["a.toml:1:", "quotes"]),
        ] {
            let said = parse(text).unwrap_err();
            for part in parts {
                assert!(said.contains(part), "{part:?} is missing in {said:?} about {text:?}");
            }
        }
    }

    #[test]
    fn a_password_is_not_shown() {
        let said = parse("store = [\"postgres://me:secret@db\"]").unwrap_err();
        assert!(said.contains("store") && !said.contains("secret"), "{said}");
        let said = parse("store = postgres://me:secret@db").unwrap_err();
        assert!(!said.contains("secret"), "{said}");
    }
}
