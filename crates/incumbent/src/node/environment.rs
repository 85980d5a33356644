//! What the environment says about a node.

use std::time::Duration;

use incumbent_core::records::ClusterLead;

use crate::error::EnvironmentError;
use crate::hint::{HintKey, HintSettings};
use crate::node::builder::{Builder, NameSource};

impl Builder {
    /// Takes over what these variables say, and leaves the rest as it is:
    ///
    /// | variable | what | example |
    /// | --- | --- | --- |
    /// | `INCUMBENT_STORE` | the store's URL, for [`Self::open_and_join`] | `sqlite:app.db` |
    /// | `INCUMBENT_CLUSTER` | the cluster | `billing` |
    /// | `INCUMBENT_NODE` | the node's name | `billing-1` |
    /// | `INCUMBENT_ADDRESS` | where it can be reached | `http://10.0.0.7:8080` |
    /// | `INCUMBENT_CLUSTER_LEAD` | whether it leads the cluster | `normal`, `if-needed`, `never` |
    /// | `INCUMBENT_TTL` | how long others wait for it | `15s`, `500ms`, `2m` |
    /// | `INCUMBENT_HINTS` | where it takes hints from other nodes | `auto`, `off`, `10.0.0.7:7946` |
    /// | `INCUMBENT_HINT_KEY_FILE` | a file with the key for hints | `/run/secrets/hints` |
    ///
    /// All but the first two count as not set if they are empty. Store and cluster must not be: a variable
    /// that a script forgot to set would make this node lead a cluster of its own.
    ///
    /// # Errors
    /// Names the variable, its value and what would be right.
    pub fn from_env(self) -> Result<Self, EnvironmentError> {
        self.from_lookup(|variable| std::env::var(variable).ok())
    }

    /// As [`Self::from_env`], with the variables from elsewhere.
    ///
    /// # Errors
    /// Names the variable, its value and what would be right.
    pub fn from_lookup(
        mut self,
        lookup: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, EnvironmentError> {
        if let Some(store) = place("INCUMBENT_STORE", &lookup)? {
            self.store = Some(store);
        }
        if let Some(cluster) = place("INCUMBENT_CLUSTER", &lookup)? {
            self.cluster = cluster;
        }
        // Of these, one that is set to nothing counts as not set, as orchestrators mean it.
        let lookup = |variable: &str| lookup(variable).filter(|value| !value.is_empty());
        if let Some(name) = lookup("INCUMBENT_NODE") {
            self.name = Some(NameSource::Given(name));
        }
        if let Some(address) = lookup("INCUMBENT_ADDRESS") {
            self.address = Some(address);
        }
        if let Some(value) = lookup("INCUMBENT_TTL") {
            self.ttl = parse_span(&value).map_err(|why| EnvironmentError::Bad {
                variable: "INCUMBENT_TTL",
                reason: format!("{why}; use a number with its unit: 15s, 500ms, 2m"),
                value,
            })?;
        }
        if let Some(value) = lookup("INCUMBENT_CLUSTER_LEAD") {
            self.cluster_lead =
                ClusterLead::named(value.trim()).ok_or_else(|| EnvironmentError::Bad {
                    variable: "INCUMBENT_CLUSTER_LEAD",
                    reason: "use normal, if-needed or never".to_owned(),
                    value,
                })?;
        }
        self.hints_from(lookup)
    }

    fn hints_from(
        mut self,
        lookup: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, EnvironmentError> {
        let bad = |variable, value, reason| EnvironmentError::Bad { variable, value, reason };
        let (place, file) = (lookup("INCUMBENT_HINTS"), lookup("INCUMBENT_HINT_KEY_FILE"));
        let key = match file {
            Some(file) => Some(
                HintKey::from_file(&file)
                    .map_err(|error| bad("INCUMBENT_HINT_KEY_FILE", file, error.to_string()))?,
            ),
            None => self.hints.key.take(),
        };
        self.hints = match place {
            Some(place) => HintSettings::parse(&place, key)
                .map_err(|error| bad("INCUMBENT_HINTS", place, error.to_string()))?,
            None => HintSettings { key, ..self.hints },
        };
        Ok(self)
    }
}

/// What says where the cluster is. Nothing there is a mistake: were it to mean the default, this node
/// would lead a cluster of its own beside the others.
fn place(
    variable: &'static str,
    lookup: impl Fn(&str) -> Option<String>,
) -> Result<Option<String>, EnvironmentError> {
    match lookup(variable) {
        Some(value) if value.trim().is_empty() => Err(EnvironmentError::Bad {
            variable,
            value,
            reason: "it is empty: set it, or unset it if the default is meant".to_owned(),
        }),
        value => Ok(value),
    }
}

/// Reads a span of time as people write it: numbers with their units, such as `15s`, `500ms` or `1m 30s`.
/// `INCUMBENT_TTL` and the flags of the command line have this one grammar.
///
/// # Errors
/// Says what is wrong with it.
pub fn parse_span(text: &str) -> Result<Duration, &'static str> {
    let mut rest = text.trim();
    let mut span = Duration::ZERO;
    if rest.is_empty() {
        return Err("it is empty");
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (number, after) = rest.split_at(digits);
        let after = after.trim_start();
        let letters = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, after) = after.split_at(letters);
        let millis: u64 = match unit {
            "ms" => 1,
            "s" | "sec" | "secs" | "second" | "seconds" => 1_000,
            "m" | "min" | "mins" | "minute" | "minutes" => 60_000,
            "h" | "hr" | "hour" | "hours" => 3_600_000,
            "d" | "day" | "days" => 86_400_000,
            "" if !number.is_empty() => return Err("a unit is missing"),
            _ if number.is_empty() => return Err("a number is missing"),
            _ => return Err("its unit is not known"),
        };
        let count: u64 = number.parse().map_err(|_| "a number is missing, or too large")?;
        let part = count.checked_mul(millis).map(Duration::from_millis);
        span = part.and_then(|part| span.checked_add(part)).ok_or("it is too long")?;
        rest = after.trim_start();
    }
    Ok(span)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_need_a_unit() {
        for (text, millis) in [
            ("15s", 15_000),
            (" 500 ms ", 500),
            ("2m", 120_000),
            ("1m 30s", 90_000),
            ("1h5min", 3_900_000),
            ("2 days", 172_800_000),
            ("0s", 0),
        ] {
            assert_eq!(parse_span(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for senseless in [
            "15",
            "",
            " ",
            "s",
            "1.5s",
            "-1s",
            "5s -1s",
            "5 parsecs",
            "15S",
            "٣s",
            "1m 30",
            "99999999999999999999s",
            "18446744073709551615d",
        ] {
            assert!(parse_span(senseless).is_err(), "{senseless}");
        }
    }
}
