//! The same place, named so that a process in another directory finds it.

use std::path::{Path, absolute as from_root};

use super::decode::{decoded, encoded};
use super::form::{Form, Kind};
use super::parts::pairs;
use super::shown::shown_scheme;

/// A URL in which every relative path, of a SQLite file or in an option, is made absolute as seen
/// from the present directory. What isn't understood stays as it is.
#[must_use]
pub fn absolute(url: &str) -> String {
    let (place, query) = url.split_once('?').unwrap_or((url, ""));
    let mut whole = sqlite_file(place).unwrap_or_else(|| place.to_owned());
    let mut mark = '?';
    let form = Form::of(shown_scheme(url));
    for (name, value) in pairs(query) {
        whole.push(mark);
        mark = '&';
        whole.push_str(name);
        if let Some(value) = value {
            whole.push('=');
            whole.push_str(&file(form, name, value).unwrap_or_else(|| value.to_owned()));
        }
    }
    whole
}

fn sqlite_file(place: &str) -> Option<String> {
    let path = place.strip_prefix("sqlite:")?;
    let path = path.strip_prefix("//").unwrap_or(path);
    // It may be escaped, and its escapes mean the same behind a directory.
    if path.is_empty() || path.starts_with(['/', ':']) || path.starts_with("file:") {
        return None;
    }
    let directory = std::env::current_dir().ok()?;
    let directory = directory.to_str()?.replace('%', "%25").replace('?', "%3f");
    Some(format!("sqlite:{}/{path}", directory.trim_end_matches('/')))
}

fn file(form: Option<&Form>, name: &str, value: &str) -> Option<String> {
    let path = decoded(value)?;
    if form?.kind(name) != Some(&Kind::File)
        || path.is_empty()
        // Where to look for authorities, and no file.
        || path == "system"
        || Path::new(&path).is_absolute()
    {
        return None;
    }
    Some(encoded(from_root(&path).ok()?.to_str()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn o38_relative_paths_become_absolute_and_all_else_stays() {
        let here = std::env::current_dir().unwrap().to_str().unwrap().to_owned();
        assert_eq!(absolute("sqlite:a%3fb.db?busy=5"), format!("sqlite:{here}/a%3fb.db?busy=5"));
        assert_eq!(absolute("sqlite://app.db"), format!("sqlite:{here}/app.db"));
        let file = encoded(&format!("{here}/secret"));
        assert_eq!(
            absolute("postgres://me@db/app?passwordfile=secret&sslmode=require"),
            format!("postgres://me@db/app?passwordfile={file}&sslmode=require")
        );
        for same in [
            "sqlite:/var/app.db",
            "sqlite:///var/app.db?create=no",
            "sqlite:",
            "sqlite::memory:",
            "postgres://me:pass@db/app?sslrootcert=system&passwordfile=%2Frun%2Fsecret",
            "redis://cache?hints",
            "nats://a,b?bucket=x&creds=%zz",
            "nonsense",
            "",
        ] {
            assert_eq!(absolute(same), same);
        }
    }
}
