//! Where the password comes from.

use std::path::PathBuf;

use incumbent_core::store::StoreError;
use incumbent_store_common::secret_file;

/// Where to look for it. There is no `Debug`, so that nothing shows it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Password {
    /// In the URL or in the environment.
    Given(String),
    /// In a file that holds nothing else. It is read for each token, so that a password that was
    /// changed is found without a restart.
    File(PathBuf),
}

impl Password {
    pub(crate) fn read(&self) -> Result<String, StoreError> {
        match self {
            Self::Given(password) => Ok(password.clone()),
            Self::File(path) => secret_file(path).map_err(|error| {
                StoreError::rejected(format!(
                    "passwordfile={}: {error}. Name a file that this process may read",
                    path.display()
                ))
            }),
        }
    }
}
