//! How the store proves who it is, without ever showing it.

use std::path::{Path, PathBuf};

use async_nats::ConnectOptions;
use incumbent_core::store::StoreError;
use incumbent_store_common::{Secret, small_file, unreadable};

/// Where to find what the server wants to see.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Login {
    /// Nothing, or a client certificate alone.
    #[default]
    None,
    /// A user and a password.
    User(String, Secret),
    /// A token.
    Token(Secret),
    /// A file with a JSON web token and the seed of its key, as `nsc` makes it.
    Credentials(PathBuf),
    /// A file with the seed of a key.
    Key(PathBuf),
}

impl Login {
    /// The driver's options with the login in them. Files are read each time, so that what was
    /// renewed is found without a restart.
    pub(crate) fn fill(&self, options: ConnectOptions) -> Result<ConnectOptions, StoreError> {
        Ok(match self {
            Self::None => options,
            Self::User(user, password) => {
                let password = password.read("passwordfile")?.unwrap_or_default();
                options.user_and_password(user.clone(), password)
            }
            Self::Token(token) => options.token(token.read("tokenfile")?.unwrap_or_default()),
            Self::Credentials(path) => {
                let text = read("creds", path)?;
                // The error could quote what it didn't understand.
                options.credentials(&text).map_err(|_| malformed("creds", path))?
            }
            Self::Key(path) => {
                let text = read("nkey", path)?;
                // A file may hold comments beside the seed, as those of `nk` do.
                let seed = text.lines().map(str::trim).find(|line| line.starts_with('S'));
                options.nkey(seed.ok_or_else(|| malformed("nkey", path))?.to_owned())
            }
        })
    }
}

fn read(name: &str, path: &Path) -> Result<String, StoreError> {
    small_file(path).map_err(|error| unreadable(name, path, &error))
}

fn malformed(name: &str, path: &Path) -> StoreError {
    let what = match name {
        "creds" => "a credentials file, as `nsc generate creds` writes it",
        _ => "a file with the seed of a user's key, which begins with SU",
    };
    StoreError::rejected(format!("{name}={} isn't understood: name {what}", path.display()))
}
