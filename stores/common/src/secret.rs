//! Where a secret comes from.

use std::fmt;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use incumbent_core::store::StoreError;

/// What a file with a secret may have at most, in bytes.
const LARGEST: u64 = 64 * 1024;

/// Where to look for a password or a token. Never shows it.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum Secret {
    /// There is none.
    #[default]
    None,
    /// It was in the URL or in the environment.
    Given(String),
    /// It is all that a file holds, but for the end of the line.
    File(PathBuf),
}

impl Secret {
    /// The secret, if there is one. A file is read each time, so that one that was changed is found
    /// without a restart.
    ///
    /// # Errors
    ///
    /// Rejected if the file can't be read that this parameter named.
    pub fn read(&self, parameter: &str) -> Result<Option<String>, StoreError> {
        match self {
            Self::None => Ok(None),
            Self::Given(secret) => Ok(Some(secret.clone())),
            Self::File(path) => {
                secret_file(path).map(Some).map_err(|error| unreadable(parameter, path, &error))
            }
        }
    }
}

/// The error for a file that this parameter named and that can't be read.
#[must_use]
pub fn unreadable(parameter: &str, path: &Path, error: &io::Error) -> StoreError {
    StoreError::rejected(format!(
        "{parameter}={}: {error}. Check that the file is there and holds what it should, and that this \
         process may read it",
        path.display()
    ))
}

/// The secret that is all that a file holds, but for the end of the line.
///
/// # Errors
///
/// As [`small_file`], and if the file is empty.
pub fn secret_file(path: &Path) -> io::Result<String> {
    let text = small_file(path)?;
    let secret = text.trim_end_matches(['\r', '\n']);
    if secret.is_empty() {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the file is empty"));
    }
    Ok(secret.to_owned())
}

/// The text of a small file. A pipe would keep whoever reads it waiting, and a device might never
/// end, so both are refused.
///
/// # Errors
///
/// If it can't be read, isn't a regular file or text, or is too large for what it is meant to hold.
pub fn small_file(path: &Path) -> io::Result<String> {
    let (bytes, _) = regular_file(path, LARGEST)?;
    String::from_utf8(bytes)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not text in UTF-8"))
}

/// What a regular file holds, and what the system says of that very file. A pipe would keep whoever
/// reads it waiting, and a device might never end, so both are refused.
///
/// # Errors
///
/// If it can't be read, isn't a regular file, or has more bytes than it may.
pub fn regular_file(path: &Path, most: u64) -> io::Result<(Vec<u8>, Metadata)> {
    let invalid = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
    let metadata = path.metadata()?;
    if !metadata.is_file() {
        let kind = if metadata.is_dir() { "it is a directory" } else { "it is not a regular file" };
        return Err(invalid(kind.to_owned()));
    }
    let file = File::open(path)?;
    let (metadata, mut bytes) = (file.metadata()?, Vec::new());
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(invalid(format!(
            "it has more than {} KiB, too much for what it is",
            most >> 10
        )));
    }
    Ok((bytes, metadata))
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("None"),
            Self::Given(_) => f.write_str("Given(…)"),
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_never_shown_and_a_missing_file_is_named() {
        let given = Secret::Given("hunter2".to_owned());
        assert!(!format!("{given:?}").contains("hunter2"));
        assert_eq!(given.read("x"), Ok(Some("hunter2".to_owned())));
        assert_eq!(Secret::None.read("x"), Ok(None));
        let error = Secret::File("/no/such/file".into()).read("tokenfile").unwrap_err();
        assert!(error.message.contains("tokenfile=/no/such/file"), "{error}");
    }

    #[test]
    fn o40_a_file_that_can_not_hold_a_secret_is_refused_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str, content: &[u8]| {
            let path = directory.path().join(name);
            std::fs::write(&path, content).unwrap();
            path
        };
        assert_eq!(secret_file(&file("good", b"hunter2\r\n")).unwrap(), "hunter2");
        let refused = |path: &Path| secret_file(path).unwrap_err().to_string();
        assert!(refused(&file("empty", b"")).contains("empty"));
        assert!(refused(&file("blank", b"\n\n")).contains("empty"));
        assert!(refused(&file("binary", b"a\xff")).contains("UTF-8"));
        assert!(refused(&file("large", &[b'a'; 70_000])).contains("64 KiB"));
        assert!(refused(directory.path()).contains("directory"));
        #[cfg(unix)]
        assert!(refused(Path::new("/dev/zero")).contains("not a regular file"));
    }
}
