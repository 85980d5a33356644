//! Licences, sources and bans of all dependencies, by the rules in deny.toml.
//!
//! `cargo deny` does this and more, but building it takes longer than all other checks of this kind.
//! Where it isn't installed, what can be told without the net is told here.

use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::Value;

/// What deny.toml allows and forbids, as far as it is read here.
struct Rules {
    licences: Vec<String>,
    banned: Vec<String>,
}

/// All packages that break a rule, each with the reason.
pub(crate) fn complaints(root: &Path, metadata: &str) -> Result<Vec<String>> {
    let text = std::fs::read_to_string(root.join("deny.toml")).context("deny.toml")?;
    let rules = Rules::from(&text)?;
    let metadata: Value = serde_json::from_str(metadata).context("cargo metadata")?;
    let packages = metadata.get("packages").and_then(Value::as_array);
    let packages = packages.context("cargo metadata lists no packages")?;
    let mut complaints = Vec::new();
    for package in packages {
        let text = |field: &str| package.get(field).and_then(Value::as_str);
        let name = format!("{} {}", text("name").unwrap_or("?"), text("version").unwrap_or("?"));
        // What is ours has no source.
        if text("source").is_some_and(|source| !source.starts_with("registry+")) {
            complaints.push(format!("{name} comes from outside of the registry"));
        }
        if text("name").is_some_and(|name| rules.banned.iter().any(|banned| banned == name)) {
            complaints.push(format!("{name} is banned: deny.toml says why"));
        }
        if let Some(reason) = rules.refuses(text("license")) {
            complaints.push(format!("{name}: {reason}"));
        }
    }
    Ok(complaints)
}

impl Rules {
    fn from(text: &str) -> Result<Self> {
        let table: toml::Table = text.parse().context("deny.toml")?;
        let list = |section: &str, field: &str| -> Result<Vec<toml::Value>> {
            let found =
                table.get(section).and_then(|it| it.get(field)).and_then(|it| it.as_array());
            found.cloned().with_context(|| format!("deny.toml has no {section}.{field}"))
        };
        let strings = |values: Vec<toml::Value>, field: Option<&str>| -> Vec<String> {
            let text = |value: &toml::Value| match field {
                Some(field) => value.get(field)?.as_str().map(str::to_owned),
                None => value.as_str().map(str::to_owned),
            };
            values.iter().filter_map(text).collect()
        };
        Ok(Self {
            licences: strings(list("licenses", "allow")?, None),
            banned: strings(list("bans", "deny")?, Some("crate")),
        })
    }

    /// Why a package with this licence may not be used, if it may not.
    fn refuses(&self, licence: Option<&str>) -> Option<String> {
        let Some(licence) = licence else {
            return Some("it names no licence".to_owned());
        };
        let expression = match spdx::Expression::parse_mode(licence, spdx::ParseMode::LAX) {
            Ok(expression) => expression,
            Err(error) => return Some(format!("its licence {licence:?} can't be read: {error}")),
        };
        let allowed = |wanted: &spdx::LicenseReq| self.licences.contains(&wanted.to_string());
        (!expression.evaluate(allowed)).then(|| format!("its licence {licence:?} isn't allowed"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> Rules {
        let text = r#"
            [licenses]
            allow = ["MIT", "Apache-2.0 WITH LLVM-exception"]
            [bans]
            deny = [{ crate = "openssl-sys", reason = "rustls" }]
        "#;
        Rules::from(text).unwrap()
    }

    #[test]
    fn one_licence_of_several_is_enough_and_all_that_are_joined_are_needed() {
        let rules = rules();
        for allowed in
            ["MIT", "MIT OR GPL-3.0", "Apache-2.0 WITH LLVM-exception OR GPL-2.0", "GPL-3.0/MIT"]
        {
            assert_eq!(rules.refuses(Some(allowed)), None, "{allowed}");
        }
        for refused in ["GPL-3.0", "MIT AND GPL-3.0", "Apache-2.0", "no such thing"] {
            assert!(rules.refuses(Some(refused)).is_some(), "{refused}");
        }
        assert!(rules.refuses(None).is_some());
    }

    #[test]
    fn packages_that_break_a_rule_are_named() {
        let directory = std::env::temp_dir().join(format!("incumbent-deny-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(
            directory.join("deny.toml"),
            "[licenses]\nallow = ['MIT']\n[bans]\ndeny = [{ crate = 'openssl-sys' }]\n",
        )
        .unwrap();
        let metadata = r#"{"packages": [
            {"name": "good", "version": "1.0.0", "license": "MIT", "source": "registry+x"},
            {"name": "ours", "version": "0.1.0", "license": "MIT", "source": null},
            {"name": "openssl-sys", "version": "0.9.0", "license": "MIT", "source": "registry+x"},
            {"name": "stray", "version": "1.0.0", "license": "MIT", "source": "git+x"},
            {"name": "sour", "version": "2.0.0", "license": "GPL-3.0", "source": "registry+x"}
        ]}"#;
        let complaints = complaints(&directory, metadata).unwrap();
        std::fs::remove_dir_all(&directory).unwrap();
        let named: Vec<_> = complaints.iter().filter_map(|it| it.split(' ').next()).collect();
        assert_eq!(named, ["openssl-sys", "stray", "sour"]);
    }
}
