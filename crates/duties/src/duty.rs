//! Names of duties: which family, and which of that family.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};

use incumbent_core::names::{self, LeaseKind, LeaseName, NameError};

/// One duty: `family/name`. A family has no slash in its name; a duty may have any. Cheap to
/// clone.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct DutyId(Arc<str>);

impl DutyId {
    /// A duty of a family.
    ///
    /// # Errors
    /// If a name is empty, too long, or has control characters, or the family's has a slash.
    pub fn new(family: &str, name: &str) -> Result<Self, NameError> {
        check_family(family)?;
        names::check("duty", name)?;
        let duty = Self(format!("{family}/{name}").into());
        names::check("duty", duty.lease().as_str())?;
        Ok(duty)
    }

    /// A duty from its text, `family/name`.
    ///
    /// # Errors
    /// As [`Self::new`], and if there is no slash.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        let lonely = || NameError::NoFamily { name: text.chars().take(64).collect() };
        let (family, name) = text.split_once('/').ok_or_else(lonely)?;
        Self::new(family, name)
    }

    /// The lease without which this duty doesn't run.
    #[must_use]
    pub fn lease(&self) -> LeaseName {
        LeaseName::duty(&self.0)
    }

    /// The duty whose lease this is.
    #[must_use]
    pub fn of(lease: &LeaseName) -> Option<Self> {
        LeaseKind::duty(lease.as_str()).map(|text| Self(text.into()))
    }

    /// The duty whose lease has this name, as a record has it.
    #[must_use]
    pub fn under(lease: &str) -> Option<Self> {
        Self::parse(LeaseKind::duty(lease)?).ok()
    }

    /// Its family.
    #[must_use]
    pub fn family(&self) -> &str {
        self.0.split_once('/').map_or("", |(family, _)| family)
    }

    /// Its name within the family.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.split_once('/').map_or(&*self.0, |(_, name)| name)
    }

    /// `family/name`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Checks the name of a family.
///
/// # Errors
/// Says what is wrong with it.
pub fn check_family(family: &str) -> Result<(), NameError> {
    names::check("family", family)?;
    if family.contains('/') {
        return Err(NameError::Slash { name: family.chars().take(64).collect() });
    }
    Ok(())
}

impl TryFrom<String> for DutyId {
    type Error = NameError;

    fn try_from(text: String) -> Result<Self, NameError> {
        Self::parse(&text)
    }
}

impl Serialize for DutyId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl From<DutyId> for String {
    fn from(duty: DutyId) -> Self {
        duty.0.to_string()
    }
}

impl fmt::Display for DutyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for DutyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_name_leads_to_its_lease_and_back() {
        // F42: commas, slashes, spaces, unicode and length.
        for name in ["a", "a,b", "a/b", "a b", "☃", &"x".repeat(1000)] {
            let duty = DutyId::new("projection", name).unwrap();
            assert_eq!(DutyId::of(&duty.lease()).as_ref(), Some(&duty));
            assert_eq!((duty.family(), duty.name()), ("projection", name));
            assert_eq!(DutyId::parse(duty.as_str()).unwrap(), duty);
        }
    }

    #[test]
    fn names_that_would_be_mistaken_are_refused() {
        assert!(DutyId::new("a/b", "c").is_err());
        assert!(DutyId::new("a", "").is_err());
        let lonely = DutyId::parse("lonely").unwrap_err().to_string();
        assert!(lonely.contains("\"lonely\"") && lonely.contains("family/duty"), "{lonely}");
        assert!(DutyId::new("a", "b\nc").is_err());
        assert_eq!(DutyId::of(&LeaseName::leader()), None);
        assert_eq!(DutyId::of(&LeaseName::new("duty/a/b").unwrap()), None);
    }
}
