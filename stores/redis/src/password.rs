//! Where the password comes from.

use std::fmt;
use std::path::PathBuf;

use incumbent_core::store::StoreError;

/// Where to look for it. Never shows it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Password {
    /// There is none.
    None,
    /// It was in the URL or in the environment.
    Given(String),
    /// It is all that a file holds, but for the end of the line.
    File(PathBuf),
}

impl Password {
    /// The password. A file is read each time, so that one that was changed is found without a
    /// restart.
    pub(crate) fn find(&self) -> Result<Option<String>, StoreError> {
        match self {
            Self::None => Ok(None),
            Self::Given(password) => Ok(Some(password.clone())),
            Self::File(path) => match std::fs::read_to_string(path) {
                Ok(text) => Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned())),
                Err(error) => Err(StoreError::rejected(format!(
                    "the password file {} can't be read: {error}. See that passwordfile= names \
                     it and that this process may read it",
                    path.display()
                ))),
            },
        }
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("None"),
            Self::Given(_) => f.write_str("Given(…)"),
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
        }
    }
}
