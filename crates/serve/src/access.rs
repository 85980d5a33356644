//! Who gets in, and what for.

use std::collections::BTreeMap;
use std::fmt;
use std::hint::black_box;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use axum::http::{HeaderMap, HeaderValue, Method, header};

use crate::certified::{Certified, Standing};
use crate::peer::Peer;
use crate::problem::{CROSS_SITE, NO_TOKEN, NOT_ALLOWED, Problem, WRONG_HOST};

/// What somebody may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Look.
    ReadOnly,
    /// Look, hold leases and serve duties.
    Client,
    /// All of it.
    Operator,
}

impl Role {
    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::Client => "client",
            Self::Operator => "operator",
        }
    }

    /// The role of this word.
    pub(crate) fn parse(word: &str) -> Option<Self> {
        [Self::ReadOnly, Self::Client, Self::Operator].into_iter().find(|it| it.as_str() == word)
    }
}

/// Who gets in.
#[derive(Clone, Debug, Default)]
pub struct Access {
    tokens: Option<Arc<[Token]>>,
    hosts: Vec<String>,
    read_only: bool,
}

struct Token {
    role: Role,
    name: String,
    secret: Vec<u8>,
}

/// Why a token file won't do.
#[derive(Debug)]
pub struct AccessError(String);

/// The shortest token.
const SHORTEST: usize = 16;

/// Who was let in.
#[derive(Clone, Debug)]
pub(crate) struct Who {
    pub(crate) name: String,
    pub(crate) from: String,
}

impl Access {
    /// Whoever reaches it may do all.
    #[must_use]
    pub fn open() -> Self {
        Self::default()
    }

    /// Only who has a token in this file: a line for each, with its role, a name and the token.
    ///
    /// # Errors
    /// If the file can't be read, others can read it, or a line can't be understood. No token is in
    /// the message.
    pub fn with_token_file(mut self, path: &Path) -> Result<Self, AccessError> {
        let wrong =
            |said: String| AccessError(format!("the token file {}: {said}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|error| {
            let next = "name a file with a line for each token: its role, a name and the token, such \
                        as `operator alice …`";
            wrong(format!("{error}: {next}"))
        })?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            let mode = std::fs::metadata(path).map_err(|error| wrong(error.to_string()))?.mode();
            if mode & 0o007 != 0 {
                return Err(wrong("others can read it: `chmod o-rwx` it".to_owned()));
            }
        }
        self.tokens = Some(tokens(&text).map_err(wrong)?.into());
        Ok(self)
    }

    /// Takes requests for this host too, where no token is needed.
    #[must_use]
    pub fn with_host(mut self, host: impl Into<String>) -> Self {
        self.hosts.push(host.into().to_ascii_lowercase());
        self
    }

    /// Refuses all that changes anything.
    #[must_use]
    pub fn read_only(mut self, read_only: bool) -> Self {
        self.read_only = read_only;
        self
    }

    /// Whether a token is needed.
    #[must_use]
    pub fn needs_token(&self) -> bool {
        self.tokens.is_some()
    }

    pub(crate) fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// Lets a request in that needs this role, if any; says who it is.
    pub(crate) fn admit(
        &self,
        method: &Method,
        headers: &HeaderMap,
        peer: Option<&Peer>,
        needed: Option<Role>,
    ) -> Result<Who, Problem> {
        check_doubles(headers)?;
        self.check_host(headers, peer)?;
        let changes = !matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS);
        if changes {
            check_site(headers)?;
        }
        let mut from = peer.map_or_else(|| "the application".to_owned(), Peer::shown);
        let (token, certified) = (self.token(headers), peer.and_then(Peer::certified));
        let name = match (token, certified) {
            (Some(token), certified) => {
                if let Some(certified) = certified {
                    from = format!("{from}, certificate {}", certified.subject);
                }
                token.name.clone()
            }
            (None, Some(certified)) => certified.subject.clone(),
            (None, None) => String::new(),
        };
        let Some(needed) = needed else { return Ok(Who { name, from }) };
        let role = match (token, certified) {
            (Some(token), _) => token.role,
            (None, Some(certified)) => self.role_of(certified, headers)?,
            (None, None) if self.needs_token() => return Err(no_token()),
            (None, None) => Role::Operator,
        };
        if needed > Role::ReadOnly && self.read_only {
            let said = "this server only shows things: it was started with --read-only";
            return Err(Problem::new(&NOT_ALLOWED, said));
        }
        if role < needed {
            let (has, needs) = (role.as_str(), needed.as_str());
            let what = if token.is_some() { "token" } else { "certificate" };
            let said = format!("the {what} {name:?} has the role {has}, and this needs {needs}");
            return Err(Problem::new(&NOT_ALLOWED, said));
        }
        let name = if name.is_empty() { from.clone() } else { name };
        Ok(Who { name, from })
    }

    /// What somebody may do who sent no known token. Where tokens are needed and nobody has given roles to
    /// certificates, these only let somebody knock; and who sends a token means to be known by that.
    fn role_of(&self, certified: &Certified, headers: &HeaderMap) -> Result<Role, Problem> {
        let open = !self.needs_token();
        match certified.standing() {
            Standing::Has(role) if open || !headers.contains_key(header::AUTHORIZATION) => Ok(role),
            Standing::Unsaid if open => Ok(Role::Operator),
            Standing::HasNone if open => {
                let Certified { subject, names, .. } = certified;
                let names = names.join(", ");
                let said = format!(
                    "the certificate {subject:?} has no role: let --certificate-roles give one to a \
                     name of it ({names:.400})"
                );
                Err(Problem::new(&NOT_ALLOWED, said))
            }
            Standing::Has(_) | Standing::Unsaid | Standing::HasNone => Err(no_token()),
        }
    }

    /// The token that was sent, if it is known. Takes as long for any token of the same length.
    fn token(&self, headers: &HeaderMap) -> Option<&Token> {
        let sent = headers.get(header::AUTHORIZATION)?.as_bytes();
        let (scheme, sent) = sent.split_at_checked(7)?;
        let sent = sent.trim_ascii();
        let mut found = None;
        for token in self.tokens.as_ref()?.iter() {
            if same(&token.secret, sent) {
                found = Some(token);
            }
        }
        found.filter(|_| scheme.eq_ignore_ascii_case(b"Bearer "))
    }

    /// A page of another site may let its name point here, and ask in its visitor's name.
    fn check_host(&self, headers: &HeaderMap, peer: Option<&Peer>) -> Result<(), Problem> {
        let tcp = peer.is_some_and(|peer| !peer.is_unix() && peer.certified().is_none());
        if self.needs_token() || !tcp {
            return Ok(());
        }
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
        let name = host.map(host_name).unwrap_or_default().to_ascii_lowercase();
        let address = name.parse::<IpAddr>();
        if name == "localhost"
            || address.is_ok_and(|address| address.is_loopback())
            || self.hosts.contains(&name)
        {
            return Ok(());
        }
        let name: String = name.chars().take(64).collect();
        let said = format!(
            "the request is for {name:?}: use localhost, or let the server know that name with \
             --allow-host"
        );
        Err(Problem::new(&WRONG_HOST, said))
    }
}

fn no_token() -> Problem {
    let said = "send one that this server knows as `Authorization: Bearer <token>`";
    let bearer = HeaderValue::from_static("Bearer");
    Problem::new(&NO_TOKEN, said).header(header::WWW_AUTHENTICATE, bearer)
}

/// Refuses headers that are judged by their value and come twice: another program on the way may judge by the
/// other one.
fn check_doubles(headers: &HeaderMap) -> Result<(), Problem> {
    const ONCE: [&str; 6] =
        ["host", "origin", "sec-fetch-site", "authorization", "content-type", "if-match"];
    let doubled = |name: &&str| headers.get_all(*name).iter().nth(1).is_some();
    match ONCE.iter().find(|name| doubled(name)) {
        None => Ok(()),
        Some(name) => {
            let count = headers.get_all(*name).iter().count();
            Err(Problem::bad(format!("the header {name} was sent {count} times: send it once")))
        }
    }
}

/// Refuses what a browser sends on behalf of another site.
fn check_site(headers: &HeaderMap) -> Result<(), Problem> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let site = text("sec-fetch-site");
    let foreign = site.is_some_and(|site| site != "same-origin" && site != "none");
    let origin = text("origin").map(|origin| {
        let (_, host) = origin.split_once("://").unwrap_or(("", origin));
        host.to_ascii_lowercase()
    });
    let host = text("host").unwrap_or_default().to_ascii_lowercase();
    if foreign || origin.is_some_and(|origin| origin != host) {
        let said = "requests that change something have to come from a page of this server, or \
                    from a program that sends neither Origin nor Sec-Fetch-Site";
        return Err(Problem::new(&CROSS_SITE, said));
    }
    Ok(())
}

/// The host without its port and brackets.
fn host_name(host: &str) -> &str {
    if let Some(rest) = host.strip_prefix('[') {
        return rest.split_once(']').map_or(rest, |(address, _)| address);
    }
    host.rsplit_once(':').map_or(host, |(name, _)| name)
}

/// Whether two secrets are the same, in a time that depends on their lengths alone.
fn same(known: &[u8], sent: &[u8]) -> bool {
    let differs = known.iter().zip(sent).fold(0, |differs, (one, other)| differs | (one ^ other));
    (black_box(differs) == 0) & (known.len() == sent.len())
}

fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let (mut tokens, mut lines) = (Vec::new(), BTreeMap::new());
    for (number, line) in text.lines().enumerate() {
        let (line, number) = (line.trim(), number + 1);
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let [role, name, secret] = words.as_slice() else {
            return Err(format!(
                "line {number} is not a role, a name and a token: write it as `operator alice …`"
            ));
        };
        let role = Role::parse(role).ok_or_else(|| {
            format!("line {number} has no known role: use read-only, client or operator")
        })?;
        if secret.len() < SHORTEST {
            return Err(format!(
                "the token in line {number} is shorter than {SHORTEST} characters: draw one, for \
                 instance with `openssl rand -hex 16`"
            ));
        }
        // Nobody could tell which of the two names an act was by.
        if let Some(line) = lines.insert(secret.to_owned(), number) {
            return Err(format!(
                "line {number} has the same token as line {line}: give each a token of its own"
            ));
        }
        tokens.push(Token { role, name: (*name).to_owned(), secret: secret.as_bytes().to_vec() });
    }
    if tokens.is_empty() {
        return Err("it has no token: write a role, a name and a token in a line".to_owned());
    }
    Ok(tokens)
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token").field("name", &self.name).finish_non_exhaustive()
    }
}

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for AccessError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_compared_as_a_whole() {
        assert!(same(b"0123456789abcdef", b"0123456789abcdef"));
        for other in [&b"0123456789abcdeg"[..], b"0123456789abcde", b"0123456789abcdef0", b""] {
            assert!(!same(b"0123456789abcdef", other));
        }
    }

    #[test]
    fn a_token_file_is_read_and_its_tokens_are_never_shown() {
        let text = "# who\noperator alice 0123456789abcdef\nread-only board fedcba9876543210\n";
        let read = tokens(text).unwrap();
        assert_eq!(read.len(), 2);
        assert!(!format!("{read:?}").contains("0123456789abcdef"));
        let twice = "operator a 0123456789abcdef\nread-only b 0123456789abcdef\n";
        let bad =
            ["", "operator a short", "king a 0123456789abcdef", "operator 0123456789abcdef", twice];
        for text in bad {
            let said = tokens(text).unwrap_err();
            assert!(!said.contains("0123456789abcdef"), "{said}");
        }
    }

    #[test]
    fn hosts_are_told_from_their_ports() {
        for (host, name) in [
            ("a:80", "a"),
            ("a", "a"),
            ("[::1]:7070", "::1"),
            ("[::1]", "::1"),
            ("1.2.3.4:5", "1.2.3.4"),
        ] {
            assert_eq!(host_name(host), name);
        }
    }
}
