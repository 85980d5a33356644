//! Where the password comes from.

use std::fs;
use std::path::{Path, PathBuf};

use incumbent_core::store::StoreError;

/// Where to look for it. Has no `Debug`, so that nothing shows it by accident.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Password {
    /// There is none.
    None,
    /// In the URL or in `MYSQL_PWD`.
    Given(String),
    /// In a file that holds nothing else. It is read for each connection, so that one that was
    /// changed is found without a restart.
    File(PathBuf),
}

impl Password {
    /// The password, if there is one.
    pub(crate) fn read(&self) -> Result<Option<String>, StoreError> {
        match self {
            Self::None => Ok(None),
            Self::Given(password) => Ok(Some(password.clone())),
            Self::File(path) => {
                let text = fs::read_to_string(path).map_err(|error| unreadable(path, &error))?;
                Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned()))
            }
        }
    }
}

fn unreadable(path: &Path, error: &std::io::Error) -> StoreError {
    StoreError::rejected(format!(
        "passwordfile={}: {error}. See that this process may read it",
        path.display()
    ))
}
