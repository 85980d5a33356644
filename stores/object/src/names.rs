//! What objects are called: `prefix/cluster/lease/name.json`.
//!
//! A slash of a key stays a slash, so that a console shows folders and a prefix read lists no more
//! than it must. Bytes other than letters, digits, `_`, `=` and `-` become a dot and two
//! hexadecimal digits. An object's name ends in `.json` and a folder's never does, because some
//! stores can't hold an object and a folder of the same name.

use std::fmt::Write as _;

use incumbent_core::store::{Key, StoreError};
use object_store::path::Path;
use sha2::{Digest, Sha256};

/// Ends an object's name. No escape sequence looks like it, for `j` is no hexadecimal digit.
const LEAF: &str = ".json";
/// Stands for an empty part, which no path may have. `m` is no hexadecimal digit either.
const EMPTY: &str = ".empty";
/// Comes before a hash.
const HASH: &str = ".h";
/// Some stores keep each part of a path in a file system, where 255 bytes are the limit.
const LONGEST_CLUSTER: usize = 200;
const KEPT_OF_CLUSTER: usize = 128;

/// Names objects below a prefix.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    base: Path,
}

impl Names {
    pub(crate) fn new(prefix: &str) -> Result<Self, StoreError> {
        let base = Path::parse(prefix).map_err(|error| {
            StoreError::rejected(format!(
                "{prefix:?} can't start an object's name: {error}. Use a plain path such as \
                 app/election"
            ))
        })?;
        Ok(Self { base })
    }

    /// The object that holds a record.
    pub(crate) fn object(&self, cluster: &str, key: &Key) -> Result<Path, StoreError> {
        let (folders, last) = key
            .as_str()
            .rsplit_once('/')
            .map_or((None, key.as_str()), |(folders, last)| (Some(folders), last));
        let mut name = self.folder(cluster, folders);
        name.push('/');
        escape(last, &mut name);
        name.push_str(LEAF);
        parsed(&name)
    }

    /// The folder in which all records are whose keys start with this.
    pub(crate) fn listing(&self, cluster: &str, prefix: &Key) -> Result<Path, StoreError> {
        let folders = prefix.as_str().rsplit_once('/').map(|(folders, _)| folders);
        parsed(&self.folder(cluster, folders))
    }

    /// The key of an object of this cluster, or nothing if the object isn't incumbent's.
    pub(crate) fn key(&self, cluster: &str, object: &Path) -> Option<Key> {
        let below = object.as_ref().strip_prefix(&self.folder(cluster, None))?;
        let path = below.strip_prefix('/')?.strip_suffix(LEAF)?;
        let mut parts: Vec<&str> = path.split('/').collect();
        let last = parts.pop()?;
        let mut key = String::with_capacity(path.len());
        for part in parts {
            key.push_str(&unescape(if part == EMPTY { "" } else { part })?);
            key.push('/');
        }
        key.push_str(&unescape(last)?);
        Some(Key::new(&key))
    }

    /// An object that is never there.
    pub(crate) fn nothing(&self) -> Result<Path, StoreError> {
        parsed(&format!("{}/.nothing", self.base))
    }

    fn folder(&self, cluster: &str, folders: Option<&str>) -> String {
        let mut name = self.base.to_string();
        if !name.is_empty() {
            name.push('/');
        }
        name.push_str(&cluster_part(cluster));
        for part in folders.into_iter().flat_map(|folders| folders.split('/')) {
            name.push('/');
            if part.is_empty() {
                name.push_str(EMPTY);
            } else {
                escape(part, &mut name);
            }
        }
        name
    }
}

/// A cluster's name as one part of a path. It is never read back, so it may be a hash.
fn cluster_part(cluster: &str) -> String {
    if cluster.is_empty() {
        return EMPTY.to_owned();
    }
    let mut part = String::with_capacity(cluster.len());
    escape(cluster, &mut part);
    if part.len() <= LONGEST_CLUSTER {
        return part;
    }
    part.truncate(KEPT_OF_CLUSTER);
    part.push_str(HASH);
    for byte in Sha256::digest(cluster.as_bytes()) {
        hexadecimal(byte, &mut part);
    }
    part
}

fn escape(text: &str, name: &mut String) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'=' | b'-') {
            name.push(char::from(byte));
        } else {
            name.push('.');
            hexadecimal(byte, name);
        }
    }
}

fn hexadecimal(byte: u8, name: &mut String) {
    // Writing to a string never fails.
    let _ = write!(name, "{byte:02x}");
}

fn unescape(part: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'.' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        let (high, low) = (digit()?, digit()?);
        bytes.push(u8::try_from(high * 16 + low).ok()?);
    }
    String::from_utf8(bytes).ok()
}

fn parsed(name: &str) -> Result<Path, StoreError> {
    Path::parse(name).map_err(|error| {
        StoreError::rejected(format!("{name:?} can't be an object's name: {error}"))
    })
}

#[cfg(test)]
mod tests {
    use super::Names;
    use incumbent_core::store::Key;

    #[test]
    fn names_are_readable() {
        let names = Names::new("app/election").unwrap();
        let object = |cluster, key| names.object(cluster, &Key::new(key)).unwrap().to_string();
        assert_eq!(object("billing", "lease/job"), "app/election/billing/lease/job.json");
        assert_eq!(object("billing", "view"), "app/election/billing/view.json");
        assert_eq!(object("é/..", "a"), "app/election/.c3.a9.2f.2e.2e/a.json");
        assert_eq!(object("", "a"), "app/election/.empty/a.json");
        assert_eq!(
            Names::new("").unwrap().object("c", &Key::new("a")).unwrap().as_ref(),
            "c/a.json"
        );
    }

    #[test]
    fn keys_come_back_from_names() {
        let names = Names::new("").unwrap();
        for key in ["a", "lease/a", "lease//a", "lease/a/", "/a", "/", "//", "", "=", "a.b", "é%/*"]
        {
            let key = Key::new(key);
            let object = names.object("c", &key).unwrap();
            assert_eq!(names.key("c", &object), Some(key));
        }
    }

    #[test]
    fn what_is_not_ours_has_no_key() {
        let names = Names::new("p").unwrap();
        for object in ["p/c/readme.txt", "p/d/a.json", "p/cc/a.json", "c/a.json", "p/c.json"] {
            assert_eq!(names.key("c", &object_store::path::Path::parse(object).unwrap()), None);
        }
        let odd = object_store::path::Path::parse("p/c/a.zz.json").unwrap();
        assert_eq!(names.key("c", &odd), None);
    }

    #[test]
    fn long_clusters_differ_and_fit() {
        let names = Names::new("").unwrap();
        let long = "日".repeat(400);
        let one = names.object(&long, &Key::new("a")).unwrap().to_string();
        let other = names.object(&format!("{long}x"), &Key::new("a")).unwrap().to_string();
        assert_ne!(one, other);
        assert!(one.len() < 255);
    }

    #[test]
    fn a_listing_is_a_folder() {
        let names = Names::new("p").unwrap();
        let listing = |prefix| names.listing("c", &Key::new(prefix)).unwrap().to_string();
        assert_eq!(listing(""), "p/c");
        assert_eq!(listing("lease/"), "p/c/lease");
        assert_eq!(listing("lease/a"), "p/c/lease");
        assert_eq!(listing("lease"), "p/c");
    }

    #[test]
    fn hostile_prefixes_are_refused() {
        assert!(Names::new("a//b").is_err());
        assert!(Names::new("a/../b").is_err());
    }
}
