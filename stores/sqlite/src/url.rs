//! Reads `sqlite:` URLs.

use std::path::PathBuf;

use incumbent_core::store::StoreError;
use incumbent_store_common::{Form, decoded_bytes, names_a_user, shown};

use crate::options::{HintSource, SqliteOptions, Synchronous};

pub(crate) fn parse(url: &str) -> Result<SqliteOptions, StoreError> {
    let Some(rest) = url.strip_prefix("sqlite:") else {
        return Err(StoreError::rejected(format!(
            "{:?} is not the URL of SQLite: it starts with sqlite:, as in sqlite:app.db",
            shown(url)
        )));
    };
    if names_a_user(rest) {
        return Err(StoreError::rejected(
            "the SQLite URL has an @ where others have a user, a password and a host: write \
             sqlite:path/to/file.db with %40 for an @, or the scheme of the server that is meant",
        ));
    }
    if url.chars().any(char::is_control) || url.ends_with(char::is_whitespace) {
        return Err(StoreError::rejected(format!(
            "the SQLite URL {:?} ends in a blank or contains a line break or another control \
             character: remove it, or write %20 for a blank that is meant",
            shown(url)
        )));
    }
    if rest.starts_with("~/") {
        return Err(StoreError::rejected(format!(
            "{:?}: only a shell replaces a ~, and only at the beginning of a word: write the \
             directory itself, such as sqlite:\"$HOME\"/app.db, or ./~ for one of that name",
            shown(url)
        )));
    }
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    // `sqlite:///var/app.db` and `sqlite://app.db` are in wide use for plain paths.
    let path = path.strip_prefix("//").unwrap_or(path);
    let given = Form::SQLITE.options(query)?;
    let mut options = SqliteOptions::new(decode(path)?);
    options.busy = given.span("busy").unwrap_or(options.busy);
    options.create = given.chose("create", "yes").unwrap_or(options.create);
    if let Some(prefix) = given.text("prefix") {
        options.prefix = prefix.to_owned();
    }
    if given.chose("synchronous", "normal") == Some(true) {
        options.synchronous = Synchronous::Normal;
    }
    if given.chose("hints", "poll") == Some(true) {
        options.hints = HintSource::Poll;
    }
    options.checked()
}

/// Turns `%3f` into `?` and so on, byte by byte.
fn decode(path: &str) -> Result<PathBuf, StoreError> {
    let bytes = decoded_bytes(path).ok_or_else(|| {
        StoreError::rejected(format!(
            "{path:?}: a % in the path of a SQLite URL is followed by two hexadecimal digits; \
             write %25 for the sign itself"
        ))
    })?;
    path_of(bytes).ok_or_else(|| {
        StoreError::rejected(format!(
            "{path:?}: the decoded path is not text that this system knows"
        ))
    })
}

#[cfg(unix)]
#[allow(clippy::unnecessary_wraps)] // Elsewhere it can fail.
fn path_of(bytes: Vec<u8>) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStringExt;
    Some(std::ffi::OsString::from_vec(bytes).into())
}

#[cfg(not(unix))]
fn path_of(bytes: Vec<u8>) -> Option<PathBuf> {
    String::from_utf8(bytes).ok().map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use incumbent_proving::store::assert_refused;

    use super::parse;
    use crate::options::{HintSource, SqliteOptions, Synchronous};
    use std::path::{Path, absolute};
    use std::time::Duration;

    #[test]
    fn paths_are_read_in_every_usual_form() {
        let path = |url: &str| parse(url).unwrap().path;
        assert_eq!(path("sqlite:app.db"), absolute("app.db").unwrap());
        assert_eq!(path("sqlite://app.db"), absolute("app.db").unwrap());
        assert_eq!(path("sqlite:/var/app.db"), Path::new("/var/app.db"));
        assert_eq!(path("sqlite:///var/app.db"), Path::new("/var/app.db"));
        assert_eq!(path("sqlite:/a%3Fb%25 c.db?create=no"), Path::new("/a?b% c.db"));
    }

    #[test]
    fn all_options_are_read() {
        let url = "sqlite:/a.db?prefix=x_&busy=500&synchronous=normal&create=no&hints=poll";
        let expected = SqliteOptions::new("/a.db")
            .prefix("x_")
            .busy(Duration::from_millis(500))
            .synchronous(Synchronous::Normal)
            .create(false)
            .hints(HintSource::Poll);
        assert_eq!(parse(url).unwrap(), expected);
        assert_eq!(parse("sqlite:/a.db?").unwrap(), SqliteOptions::new("/a.db"));
    }

    #[test]
    fn what_is_not_understood_is_named_with_the_next_step() {
        let long = format!("sqlite:a.db?prefix={}", "x".repeat(42));
        let cases = [
            ("postgres:a", "postgres:…", "sqlite:app.db"),
            ("sqlite:", "no database file", "sqlite:app.db"),
            ("sqlite::memory:", ":memory:", "memory: or solo:"),
            ("sqlite:file:x?mode=memory", "mode=…", "prefix, busy"),
            ("sqlite:file:x", "file:x", "plain path"),
            ("sqlite:a%zz.db", "a%zz.db", "%25"),
            ("sqlite:a.db%4", "a.db%4", "%25"),
            ("sqlite:a%00b.db", "a\\0b.db", "NUL"),
            ("sqlite:a.db?prefix=1x", "1x", "letters"),
            ("sqlite:a.db?prefix=", "\"\"", "letters"),
            ("sqlite:a.db?prefix=x;drop", "x;drop", "letters"),
            ("sqlite:a.db?prefix=SQLite_x", "SQLite_x", "choose another"),
            (&long, "xxx", "41"),
            ("sqlite:a.db?busy=soon", "busy=soon", "busy=2000"),
            ("sqlite:a.db?busy=-1", "busy=-1", "milliseconds"),
            ("sqlite:a.db?busy=60001", "busy=60001", "third of the ttl"),
            ("sqlite:a.db?synchronous=off", "synchronous=off", "full or normal"),
            ("sqlite:a.db?create=maybe", "create=maybe", "yes or no"),
            ("sqlite:a.db?hints=", "hints=", "watch or poll"),
            ("sqlite:a.db?color=red", "color=…", "synchronous"),
            ("sqlite://me:hunter2@db/app", "has an @", "%40"),
            ("sqlite:a.db?busy=1&busy=2", "busy=", "keep one"),
        ];
        assert_refused(&cases, parse);
    }
}
