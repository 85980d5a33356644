//! Settings that say where they come from: flags win over the environment, and that over the
//! configuration file.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::ArgMatches;
use clap::parser::ValueSource;
use serde_json::{Value, json};

use crate::config::{Config, Entry};
use crate::exit::{Failure, Outcome};
use crate::span;

/// How long others wait for a node, unless somebody says otherwise.
pub(crate) const TTL: Duration = Duration::from_secs(15);

/// What part of the ttl a command has to end in when no beat gets through, unless somebody says
/// otherwise. Beats fall due after 0.37 ttl at most and trust ends at 0.9, so that an outage of 0.4 ttl
/// leaves 0.13 for the beat after it and for this.
pub(crate) const LAST_GRACE: u32 = 20;

/// The shortest ttl.
pub(crate) const LEAST_TTL: Duration = Duration::from_secs(3);

/// A value, and where it comes from.
#[derive(Clone, Debug)]
pub(crate) struct Setting<T> {
    pub(crate) value: T,
    pub(crate) origin: Origin,
}

/// Where a setting comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A flag.
    Flag(&'static str),
    /// A variable of the environment.
    Variable(&'static str),
    /// A line of the configuration file.
    File(PathBuf, usize),
    /// Nobody said anything.
    Default,
}

impl Origin {
    /// Where the value of a flag comes from that has a variable too.
    pub(crate) fn of(
        matches: &ArgMatches,
        id: &str,
        flag: &'static str,
        variable: &'static str,
    ) -> Self {
        match matches.value_source(id) {
            Some(ValueSource::EnvVariable) => Self::Variable(variable),
            _ => Self::Flag(flag),
        }
    }

    /// A line of a file.
    pub(crate) fn line<T>(config: &Config, entry: &Entry<T>) -> Self {
        let path = config.path.as_deref().unwrap_or(Path::new("incumbent.toml"));
        Self::File(path.to_owned(), entry.line)
    }

    /// What it is called if it isn't on the command line, where everybody sees it.
    pub(crate) fn elsewhere(&self) -> Option<String> {
        match self {
            Self::Variable(_) | Self::File(_, _) => Some(self.to_string()),
            Self::Flag(_) | Self::Default => None,
        }
    }

    /// As JSON: a word, and what it is called.
    pub(crate) fn json(&self) -> Value {
        match self {
            Self::Flag(flag) => json!({ "from": "flag", "name": flag }),
            Self::Variable(name) => json!({ "from": "environment", "name": name }),
            Self::File(path, line) => {
                json!({ "from": "file", "name": path.display().to_string(), "line": line })
            }
            Self::Default => json!({ "from": "default" }),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(name) | Self::Variable(name) => write!(f, "{name}"),
            Self::File(path, line) => write!(f, "{}:{line}", path.display()),
            Self::Default => write!(f, "default"),
        }
    }
}

/// The ttl: that of the flag, of `INCUMBENT_TTL`, of the file, or the usual one.
pub(crate) fn ttl(flag: Option<Duration>, config: &Config) -> Outcome<Setting<Duration>> {
    if let Some(value) = flag {
        return Ok(Setting { value, origin: Origin::Flag("--ttl") });
    }
    let variable = "INCUMBENT_TTL";
    if let Some(text) = std::env::var(variable).ok().filter(|text| !text.is_empty()) {
        let value = span::ttl(&text)
            .map_err(|why| Failure::usage(format!("{variable} is {text:?}: {why}")))?;
        return Ok(Setting { value, origin: Origin::Variable(variable) });
    }
    Ok(match &config.ttl {
        Some(entry) => Setting { value: entry.value, origin: Origin::line(config, entry) },
        None => Setting { value: TTL, origin: Origin::Default },
    })
}

/// How long before trust ends a command is asked to end: that of the flag, of the file, or a
/// [`LAST_GRACE`]th of the ttl.
pub(crate) fn last_grace(
    flag: Option<Duration>,
    ttl: Duration,
    config: &Config,
) -> Outcome<Setting<Duration>> {
    let setting = match (flag, &config.run.last_grace) {
        (Some(value), _) => Setting { value, origin: Origin::Flag("--last-grace") },
        (None, Some(entry)) => Setting { value: entry.value, origin: Origin::line(config, entry) },
        (None, None) => Setting { value: ttl / LAST_GRACE, origin: Origin::Default },
    };
    // With more, a command would be asked to end before the next beat had its time.
    let most = ttl / 3;
    if setting.value > most {
        return Err(Failure::usage(format!(
            "a last grace of {:?} ({}) is more than a third of the ttl of {ttl:?}: commands would be \
             ended over a single late beat. Use {most:?} at most, or a longer ttl",
            setting.value, setting.origin
        )));
    }
    Ok(setting)
}
