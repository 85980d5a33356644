//! How the store proves who it is, without ever showing it.

use std::fmt;
use std::path::{Path, PathBuf};

use async_nats::ConnectOptions;
use incumbent_core::store::StoreError;
use incumbent_store_common::{secret_file, small_file};

/// Where to find what the server wants to see.
#[derive(Clone, Default, PartialEq, Eq)]
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

/// Something that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Secret {
    /// It was in the URL or in the environment.
    Given(String),
    /// It is all that a file holds, but for the end of the line.
    File(PathBuf),
}

impl Login {
    /// The driver's options with the login in them. Files are read each time, so that what was
    /// renewed is found without a restart.
    pub(crate) fn fill(&self, options: ConnectOptions) -> Result<ConnectOptions, StoreError> {
        Ok(match self {
            Self::None => options,
            Self::User(user, password) => {
                options.user_and_password(user.clone(), password.find("passwordfile")?)
            }
            Self::Token(token) => options.token(token.find("tokenfile")?),
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

impl Secret {
    fn find(&self, name: &str) -> Result<String, StoreError> {
        match self {
            Self::Given(secret) => Ok(secret.clone()),
            Self::File(path) => secret_file(path).map_err(|error| unreadable(name, path, &error)),
        }
    }
}

fn read(name: &str, path: &Path) -> Result<String, StoreError> {
    small_file(path).map_err(|error| unreadable(name, path, &error))
}

fn unreadable(name: &str, path: &Path, error: &std::io::Error) -> StoreError {
    StoreError::rejected(format!(
        "{name}={} can't be read: {error}. See that it is there and that this process may read it",
        path.display()
    ))
}

fn malformed(name: &str, path: &Path) -> StoreError {
    let what = match name {
        "creds" => "a credentials file, as `nsc generate creds` writes it",
        _ => "a file with the seed of a user's key, which begins with SU",
    };
    StoreError::rejected(format!("{name}={} isn't understood: name {what}", path.display()))
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("None"),
            Self::User(user, password) => {
                f.debug_tuple("User").field(user).field(password).finish()
            }
            Self::Token(token) => f.debug_tuple("Token").field(token).finish(),
            Self::Credentials(path) => f.debug_tuple("Credentials").field(path).finish(),
            Self::Key(path) => f.debug_tuple("Key").field(path).finish(),
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Given(_) => f.write_str("…"),
            Self::File(path) => path.fmt(f),
        }
    }
}
