//! Which roles the names in certificates are given.

use std::collections::BTreeMap;

use crate::access::Role;

/// The parts of a certificate that a line may name.
const PARTS: [&str; 4] = ["cn:", "dns:", "email:", "uri:"];

/// What stands for every certificate.
const EVERY: &str = "*";

/// Roles by the names in certificates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Grants {
    roles: BTreeMap<String, Role>,
}

impl Grants {
    /// Reads a line for each: a role, and a name in the certificates that are given it. Which part of a
    /// certificate is meant is always said, because an authority may have checked one and not the other.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (mut roles, mut lines) = (BTreeMap::new(), BTreeMap::new());
        for (number, line) in text.lines().enumerate() {
            let (line, number) = (line.trim(), number + 1);
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (role, name) = line.split_once(char::is_whitespace).ok_or_else(|| {
                format!(
                    "line {number} is not a role and a name: write it as `operator cn:alice` or \
                     `client dns:billing.internal`"
                )
            })?;
            let role = Role::parse(role).ok_or_else(|| {
                format!("line {number} has no known role: use read-only, client or operator")
            })?;
            let name = named(name.trim()).ok_or_else(|| {
                format!(
                    "line {number} doesn't say which part of a certificate it names: write cn:, \
                     dns:, email: or uri: and the name, or * for every certificate"
                )
            })?;
            if let Some(line) = lines.insert(name.clone(), number) {
                return Err(format!("line {number} has the same name as line {line}: keep one"));
            }
            roles.insert(name, role);
        }
        if roles.is_empty() {
            return Err("it gives no role: write a role and a name in a line, such as `operator \
                        cn:alice`"
                .to_owned());
        }
        Ok(Self { roles })
    }

    /// The most that any of these names is given.
    pub(crate) fn role(&self, names: &[String]) -> Option<Role> {
        let every = self.roles.get(EVERY).copied();
        names.iter().filter_map(|name| self.roles.get(name).copied()).chain(every).max()
    }
}

/// A name as certificates have it: the case of hosts says nothing.
fn named(name: &str) -> Option<String> {
    if name == EVERY {
        return Some(name.to_owned());
    }
    let part = PARTS.iter().find(|part| name.starts_with(**part))?;
    let rest = name.strip_prefix(part).filter(|rest| !rest.is_empty())?;
    Some(if *part == "dns:" {
        format!("{part}{}", rest.to_ascii_lowercase())
    } else {
        name.to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_has_the_highest_role_of_its_names() {
        let text = "# who\noperator cn:Alice Smith\nclient dns:Shop.internal\n\nread-only *\n";
        let grants = Grants::parse(text).unwrap();
        let role = |names: &[&str]| {
            grants.role(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(role(&["cn:Alice Smith", "dns:shop.internal"]), Some(Role::Operator));
        assert_eq!(role(&["cn:shop.internal", "dns:shop.internal"]), Some(Role::Client));
        // What one part says counts for no other.
        assert_eq!(role(&["dns:alice smith", "cn:alice smith"]), Some(Role::ReadOnly));
        assert_eq!(role(&[]), Some(Role::ReadOnly));
        let grants = Grants::parse("operator uri:spiffe://corp/alice").unwrap();
        assert_eq!(grants.role(&["cn:spiffe://corp/alice".to_owned()]), None);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        for (text, said) in [
            ("", "no role"),
            ("# nobody\n", "no role"),
            ("\noperator", "line 2 is not a role and a name"),
            ("king cn:alice", "line 1 has no known role"),
            ("operator alice", "line 1 doesn't say which part"),
            ("operator cn:", "line 1 doesn't say which part"),
            ("operator ou:alice", "line 1 doesn't say which part"),
            ("client dns:A\noperator dns:a", "line 2 has the same name as line 1"),
        ] {
            let error = Grants::parse(text).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
    }
}
