//! Options after the question mark, and what is said about those that aren't understood.

use incumbent_core::store::StoreError;

use super::decode::decoded;
use super::form::Form;
use super::parts::{is_word, pairs};

impl Form {
    /// The options in what follows the question mark, as `StoreUrl::options` has them.
    ///
    /// # Errors
    ///
    /// Rejected if one isn't known, stands there twice or is badly escaped.
    pub fn options<'a>(&self, query: &'a str) -> Result<Vec<(&'a str, String)>, StoreError> {
        // What follows a secret may be a part of it, if there is an & in it.
        let mut certain = true;
        for (name, value) in pairs(query) {
            if !self.knows(name) {
                return Err(self.unknown(name, certain && value.is_some()));
            }
            certain &= self.open.contains(&name);
        }
        self.any_options(query)
    }

    pub(super) fn any_options<'a>(
        &self,
        query: &'a str,
    ) -> Result<Vec<(&'a str, String)>, StoreError> {
        let mut options: Vec<(&str, String)> = Vec::new();
        for (name, value) in pairs(query) {
            // A name may be a part of a password as well.
            let shown = if self.knows(name) { name } else { "…" };
            if options.iter().any(|(other, _)| *other == name) {
                return Err(StoreError::rejected(format!(
                    "{shown}= stands twice in the URL of {}: keep one",
                    self.name
                )));
            }
            let value = decoded(value.unwrap_or_default());
            let value = value.ok_or_else(|| self.badly_escaped(&format!("{shown}=…")))?;
            // Mostly a variable that isn't set. The directory of the process isn't meant.
            if value.is_empty() && names_a_file(name) {
                return Err(StoreError::rejected(format!(
                    "{shown}= is empty in the URL of {}: name a file, or leave it out",
                    self.name
                )));
            }
            options.push((name, value));
        }
        Ok(options)
    }

    fn unknown(&self, name: &str, certain: bool) -> StoreError {
        let known: Vec<&str> = self.open.iter().chain(self.secret).copied().collect();
        let (last, others) = known.split_last().unwrap_or((&"none", &[]));
        let (form, known) = (self.name, format!("{} and {last}", others.join(", ")));
        if !certain || !is_word(name) {
            return StoreError::rejected(format!(
                "the URL of {form} has an option that isn't one: there are {known}"
            ));
        }
        let secret = ["pas", "pwd", "secret", "token"].iter().any(|word| name.contains(word));
        let step = if secret && known.contains("passwordfile") {
            ". A password stands in a file that passwordfile= names"
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
            "no host is named, or a host or port isn't one: a port is a number from 1 to 65535, \
             and an IPv6 address stands in brackets",
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

/// Whether the value of this option is the path of a file that must be there.
fn names_a_file(option: &str) -> bool {
    let files = ["passwordfile", "tokenfile", "creds", "nkey", "cafile", "certfile", "keyfile"];
    files.contains(&option) || option.ends_with("_file")
}
