//! What follows the question mark, and what is said about it where it isn't understood.

use std::path::PathBuf;
use std::time::Duration;

use incumbent_core::store::StoreError;

use super::decode::decoded;
use super::form::{Form, Kind};
use super::parts::{is_word, pairs};

/// The parameters of a URL: each at most once, and each as its form declares it. They may be secret,
/// so they can't be shown.
pub struct Options(Vec<(String, String)>);

impl Options {
    /// The value of this parameter.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The same, of one that names a file.
    #[must_use]
    pub fn file(&self, name: &str) -> Option<PathBuf> {
        self.text(name).map(PathBuf::from)
    }

    /// The same, of one that is declared as milliseconds.
    #[must_use]
    pub fn span(&self, name: &str) -> Option<Duration> {
        self.text(name)?.parse().ok().map(Duration::from_millis)
    }

    /// The same, of one that is declared as a number.
    #[must_use]
    pub fn number<N: TryFrom<u64>>(&self, name: &str) -> Option<N> {
        N::try_from(self.text(name)?.parse().ok()?).ok()
    }

    /// Whether this word was chosen, if any was.
    #[must_use]
    pub fn chose(&self, name: &str, word: &str) -> Option<bool> {
        self.text(name).map(|chosen| chosen == word)
    }

    /// All of them, in the order of the URL.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

impl Form {
    /// The parameters in what follows the question mark.
    ///
    /// # Errors
    ///
    /// Rejected if one isn't known, stands there twice, is badly escaped or isn't what it may be. The
    /// value of one that isn't known is not repeated: who mistypes `password` has a password there.
    pub fn options(&self, query: &str) -> Result<Options, StoreError> {
        // What follows a secret may be a part of it, if there is an & in it.
        let mut certain = true;
        for (name, value) in pairs(query) {
            if self.kind(name).is_none() && !self.others {
                return Err(self.unknown(name, certain && value.is_some()));
            }
            certain &= self.is_open(name);
        }
        let mut options: Vec<(String, String)> = Vec::new();
        for (name, value) in pairs(query) {
            let name = if self.others { name.to_ascii_lowercase() } else { name.to_owned() };
            let kind = self.kind(&name);
            // A name may be a part of a password as well.
            let shown = if kind.is_some() { name.as_str() } else { "…" };
            if options.iter().any(|(other, _)| *other == name) {
                return Err(StoreError::rejected(format!(
                    "{shown}= is given twice in the URL of {}: keep one",
                    self.name
                )));
            }
            let value = decoded(value.unwrap_or_default());
            let value = value.ok_or_else(|| self.badly_escaped(&format!("{shown}=…")))?;
            if let Some(kind) = kind {
                self.check(shown, kind, &value)?;
            }
            options.push((name, value));
        }
        Ok(Options(options))
    }

    fn check(&self, name: &str, kind: &Kind, value: &str) -> Result<(), StoreError> {
        let number = value.parse::<u64>().ok();
        match kind {
            Kind::Text | Kind::Secret => Ok(()),
            // Mostly a variable that isn't set. The directory of the process isn't meant.
            Kind::File if value.is_empty() => Err(StoreError::rejected(format!(
                "{name}= is empty in the URL of {}: name a file, or leave it out",
                self.name
            ))),
            Kind::File => Ok(()),
            Kind::Span(range) if number.is_some_and(|number| range.contains(&number)) => Ok(()),
            Kind::Span(range) => {
                let (least, most) = (range.start(), range.end());
                let known = format!(
                    "milliseconds from {least} to {most}, at most a third of the ttl, such as {name}=2000"
                );
                Err(misunderstood(name, value, &known))
            }
            Kind::Number(range) if number.is_some_and(|number| range.contains(&number)) => Ok(()),
            Kind::Number(range) => {
                let (least, most) = (range.start(), range.end());
                let known = format!("a number from {least} to {most}, such as {name}=1");
                Err(misunderstood(name, value, &known))
            }
            Kind::Choice(words) if words.contains(&value) => Ok(()),
            Kind::Choice(words) => Err(misunderstood(name, value, &listed(words, "or"))),
        }
    }

    fn unknown(&self, name: &str, certain: bool) -> StoreError {
        let known: Vec<&str> = self.parameters.iter().map(|parameter| parameter.name).collect();
        let (form, known) = (self.name, listed(&known, "and"));
        if !certain || !is_word(name) {
            return StoreError::rejected(format!(
                "the URL of {form} has an unknown option: the options are {known}"
            ));
        }
        let secret = ["pas", "pwd", "secret", "token"].iter().any(|word| name.contains(word));
        let step = if secret && known.contains("passwordfile") {
            ". Put the password into a file that passwordfile= names"
        } else {
            ""
        };
        StoreError::rejected(format!(
            "{name}=…: the URL of {form} has the options {known}, but no {name:?}{step}"
        ))
    }

    pub(super) fn malformed(&self, why: &str) -> StoreError {
        let Self { name, example, .. } = self;
        StoreError::rejected(format!("the URL of {name} isn't understood: {why}. Write {example}"))
    }

    /// The message doesn't repeat it: it may be a user and a password whose host was forgotten.
    pub(super) fn no_host(&self) -> StoreError {
        self.malformed(
            "no host is named, or a host or port is not valid: a port is a number from 1 to 65535, \
             and an IPv6 address needs brackets",
        )
    }

    pub(super) fn badly_escaped(&self, what: &str) -> StoreError {
        StoreError::rejected(format!(
            "{what} in the URL of {}: a % is followed by two hexadecimal digits, and all of it is \
             UTF-8; write %25 for the sign itself",
            self.name
        ))
    }
}

/// The error for the value of a known parameter that is open. These may be used instead.
#[must_use]
pub fn misunderstood(name: &str, value: &str, known: &str) -> StoreError {
    StoreError::rejected(format!("{name}={value} isn't understood: use {known}"))
}

/// The words with commas between them, and this one before the last.
fn listed(words: &[&str], last: &str) -> String {
    match words {
        [] => "none".to_owned(),
        [word] => (*word).to_owned(),
        [first @ .., word] => format!("{} {last} {word}", first.join(", ")),
    }
}
