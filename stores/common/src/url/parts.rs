//! Where the parts of a URL begin and end.

/// What follows the `://`, as it stands there.
#[derive(Clone, Copy)]
pub(super) struct Parts<'a> {
    /// User and password: all up to the last `@`, if there is one.
    pub(super) login: Option<&'a str>,
    pub(super) hosts: &'a str,
    /// Starts with a slash, or is empty.
    pub(super) path: &'a str,
    /// Without its question mark.
    pub(super) query: &'a str,
}

impl<'a> Parts<'a> {
    /// Finds the parts, or says why that can't be done for certain.
    pub(super) fn split(rest: &'a str) -> Result<Self, &'static str> {
        if rest.chars().any(char::is_control) {
            return Err("it contains a control character or a line break");
        }
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, after) = rest.split_at(end);
        if after.contains('@') {
            return Err("an @ comes after a /, ? or #, which may all be parts of a password. \
                        Write %40 for an @, %2F for a /, %3F for a ? and %23 for a # in a user \
                        or a password, and %40 for an @ that follows the host");
        }
        if after.contains('#') {
            return Err("it has a #. Write %23 for it");
        }
        let (login, hosts) = match authority.rsplit_once('@') {
            Some((login, hosts)) => (Some(login), hosts),
            None => (None, authority),
        };
        let (path, query) = after.split_once('?').unwrap_or((after, ""));
        Ok(Self { login, hosts, path, query })
    }

    pub(super) fn user(&self) -> Option<&'a str> {
        self.login.map(|login| login.split_once(':').map_or(login, |(user, _)| user))
    }

    pub(super) fn password(&self) -> Option<&'a str> {
        self.login.and_then(|login| login.split_once(':')).map(|(_, password)| password)
    }
}

/// The options in what follows the question mark. One without `=` has no value.
pub(super) fn pairs(query: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs.map(|pair| match pair.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (pair, None),
    })
}

/// Whether this can be the name of an option or a scheme.
pub(super) fn is_word(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '+');
    (1..=40).contains(&text.len()) && text.chars().all(is_plain)
}
