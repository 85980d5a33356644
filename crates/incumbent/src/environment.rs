//! What the environment says about a node.

use std::time::Duration;

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
    /// | `INCUMBENT_TTL` | how long others wait for it | `15s`, `500ms`, `2m` |
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
        // A variable that is set to nothing counts as not set, as shells and orchestrators do.
        let lookup = |variable: &str| lookup(variable).filter(|value| !value.is_empty());
        if let Some(store) = lookup("INCUMBENT_STORE") {
            self.store = Some(store);
        }
        if let Some(cluster) = lookup("INCUMBENT_CLUSTER") {
            self.cluster = cluster;
        }
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
        Ok(self)
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
