//! What may be seen of a URL.

use super::decode::decoded;
use super::endpoint::Endpoint;
use super::form::Form;
use super::parts::{Parts, is_word, pairs};

/// A URL as anybody may see it: without the user and the password, and without the values of options
/// that aren't known to be open. Of a URL whose password can't be told apart for certain only the
/// scheme is left.
#[must_use]
pub fn shown(url: &str) -> String {
    match Seen::of(url) {
        // The path of a file, perhaps.
        None if is_path(url) => url.to_owned(),
        None => "…".to_owned(),
        Some(Seen { scheme, place: Place::Unclear(start) }) => format!("{scheme}:{start}…"),
        Some(Seen { scheme, place: Place::Local(path, query) }) => {
            format!("{scheme}:{path}{}", shown_query(Form::of(scheme), query))
        }
        Some(Seen { scheme, place: Place::Server(Parts { login, hosts, path, query }) }) => {
            let login = if login.is_some() { "…@" } else { "" };
            format!("{scheme}://{login}{hosts}{path}{}", shown_query(Form::of(scheme), query))
        }
    }
}

/// A URL that others can still use, without what is secret in it.
#[must_use]
pub fn without_secrets(url: &str) -> String {
    match Seen::of(url) {
        None => String::new(),
        Some(Seen { scheme, place: Place::Unclear(start) }) => format!("{scheme}:{start}"),
        Some(Seen { scheme, place: Place::Local(path, query) }) => {
            format!("{scheme}:{path}{}", open_query(Form::of(scheme), query))
        }
        Some(Seen { scheme, place: Place::Server(parts) }) => {
            let form = Form::of(scheme);
            let user = parts.user().filter(|user| !user.is_empty());
            let user = user.filter(|_| !is_token(form, &parts));
            let user = user.map(|user| format!("{}@", user.replace('@', "%40")));
            let (hosts, path) = (parts.hosts, parts.path);
            let user = user.unwrap_or_default();
            format!("{scheme}://{user}{hosts}{path}{}", open_query(form, parts.query))
        }
    }
}

/// Whether there is, or may be, a secret in a URL.
#[must_use]
pub fn has_secret(url: &str) -> bool {
    let closed = |form: Option<&Form>, query: &str| {
        pairs(query).any(|(name, value)| {
            !is_open(form, name) || value.is_some_and(|value| !is_open_value(value))
        })
    };
    match Seen::of(url) {
        None => !is_path(url),
        Some(Seen { place: Place::Unclear(_), .. }) => true,
        Some(Seen { scheme, place: Place::Local(_, query) }) => closed(Form::of(scheme), query),
        Some(Seen { scheme, place: Place::Server(parts) }) => {
            let form = Form::of(scheme);
            let password = parts.password().is_some_and(|password| !password.is_empty());
            password || is_token(form, &parts) || closed(form, parts.query)
        }
    }
}

/// Whether what follows `sqlite:` looks like a server with a user, and perhaps a password.
#[must_use]
pub fn names_a_user(path: &str) -> bool {
    let host = path.starts_with("//") && !path.starts_with("///");
    path.rsplit_once('@').is_some_and(|(before, _)| host || before.contains(':'))
}

/// What stands before the colon of a URL, if that can be a scheme.
#[must_use]
pub fn shown_scheme(url: &str) -> &str {
    let scheme = url.split_once(':').map_or(url, |(scheme, _)| scheme);
    if is_word(scheme) { scheme } else { "" }
}

struct Seen<'a> {
    scheme: &'a str,
    place: Place<'a>,
}

enum Place<'a> {
    /// A file or this process: a path and options.
    Local(&'a str, &'a str),
    Server(Parts<'a>),
    /// Perhaps a server, with the slashes that come first.
    Unclear(&'static str),
}

impl<'a> Seen<'a> {
    fn of(url: &'a str) -> Option<Self> {
        let (scheme, rest) = url.split_once(':').filter(|(scheme, _)| is_word(scheme))?;
        let place = match (scheme, rest.strip_prefix("//")) {
            ("sqlite" | "memory" | "solo", _) if names_a_user(rest) => Place::Unclear("//"),
            ("sqlite" | "memory" | "solo", _) => {
                let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
                Place::Local(path, query)
            }
            (_, None) => Place::Unclear(""),
            (_, Some(rest)) => match Parts::split(rest) {
                Ok(parts) if are_hosts(parts.hosts) => Place::Server(parts),
                Ok(_) | Err(_) => Place::Unclear("//"),
            },
        };
        Some(Self { scheme, place })
    }
}

/// Whether these are hosts, and not a user and a password after which the host was forgotten.
pub(super) fn are_hosts(hosts: &str) -> bool {
    // PostgreSQL takes the directory of a socket for a host, with its slashes escaped.
    let is_directory = |host: &str| decoded(host).is_some_and(|host| host.starts_with('/'));
    let is_host = |host: &str| Endpoint::parse(host, 1).is_some() || is_directory(host);
    hosts.is_empty() || hosts.split(',').all(is_host)
}

/// A lone user is a secret where it stands for a token.
fn is_token(form: Option<&Form>, parts: &Parts<'_>) -> bool {
    let alone = parts.password().is_none() && parts.user().is_some_and(|user| !user.is_empty());
    alone && form.is_none_or(|form| form.lone_user_is_token)
}

fn is_open(form: Option<&Form>, option: &str) -> bool {
    form.is_some_and(|form| form.is_open(option))
}

/// An address may hold a user and a password of its own.
fn is_open_value(value: &str) -> bool {
    decoded(value).is_some_and(|value| !value.contains('@'))
}

/// Whether this looks like the path of a file, and a scheme was forgotten.
fn is_path(text: &str) -> bool {
    text.chars().all(|c| c.is_alphanumeric() || "._-/\\ ".contains(c))
}

fn shown_query(form: Option<&Form>, query: &str) -> String {
    let mut seen = Vec::new();
    for (name, value) in pairs(query) {
        match value {
            Some(value) if is_open(form, name) && is_open_value(value) => {
                seen.push(format!("{name}={value}"));
            }
            Some(_) | None => {
                // What follows a secret may be a part of it, if there is an & in it.
                seen.push(if value.is_some() && is_word(name) {
                    format!("{name}=…")
                } else {
                    "…".to_owned()
                });
                break;
            }
        }
    }
    joined(seen)
}

fn open_query(form: Option<&Form>, query: &str) -> String {
    let is_shown =
        |name, value: Option<&str>| is_open(form, name) && value.is_none_or(is_open_value);
    let open = pairs(query).filter(|(name, value)| is_shown(name, *value));
    joined(open.map(|(name, value)| format!("{name}={}", value.unwrap_or_default())).collect())
}

fn joined(pairs: Vec<String>) -> String {
    if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) }
}
