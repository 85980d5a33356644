//! What the environment says about a node.

use std::time::Duration;

use incumbent_core::records::ClusterLead;

use crate::builder::{Builder, NameSource};
use crate::error::EnvironmentError;

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
    ///
    /// The last four count as not set if they are empty. Store and cluster must not be: a variable
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
            self.ttl = span(&value).ok_or_else(|| EnvironmentError::Bad {
                variable: "INCUMBENT_TTL",
                reason: "use a number with its unit: 15s, 500ms, 2m".to_owned(),
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

/// A span as people write it: `15s`, `500ms`, `2m`.
fn span(text: &str) -> Option<Duration> {
    let text = text.trim();
    let unit = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit);
    let number: u64 = number.parse().ok()?;
    match unit.trim() {
        "ms" => Some(Duration::from_millis(number)),
        "s" => Some(Duration::from_secs(number)),
        "m" => Some(Duration::from_secs(number.checked_mul(60)?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_need_a_unit() {
        assert_eq!(span("15s"), Some(Duration::from_secs(15)));
        assert_eq!(span(" 500 ms "), Some(Duration::from_millis(500)));
        assert_eq!(span("2m"), Some(Duration::from_secs(120)));
        for senseless in ["15", "", "s", "1.5s", "-1s", "5h", "99999999999999999999s"] {
            assert_eq!(span(senseless), None, "{senseless}");
        }
    }
}
