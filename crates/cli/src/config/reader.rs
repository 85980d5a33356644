//! Reads values of a configuration file, and says what is wrong with them and where.

use std::path::Path;
use std::time::Duration;

use incumbent::Timing;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::Entry;
use crate::setting::LEAST_TTL;
use crate::span;

/// A table with what its keys and values say, and where.
pub(super) type Table<'i> = DeTable<'i>;
type Key<'i> = Spanned<DeString<'i>>;
type Value<'i> = Spanned<DeValue<'i>>;

/// A file that is being read.
pub(super) struct Reader<'a> {
    pub(super) path: &'a Path,
    pub(super) text: &'a str,
}

impl<'a> Reader<'a> {
    /// All of it.
    pub(super) fn table(&self) -> Result<Spanned<Table<'a>>, String> {
        DeTable::parse(self.text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            let said = error.message().lines().next().unwrap_or("it can't be read");
            let next = if said.contains("duplicate") {
                "Keep one of them"
            } else {
                "Put text in quotes: cluster = \"billing\""
            };
            format!("{}: this is not TOML: {said}. {next}", self.place(at))
        })
    }

    /// A table in it.
    pub(super) fn inner<'t>(
        &self,
        key: &Key<'_>,
        value: &'t Value<'a>,
    ) -> Result<&'t Table<'a>, String> {
        let table = value.get_ref().as_table();
        let advice = format!("write [{}] on a line of its own", key.get_ref());
        table.ok_or_else(|| self.wrong(key, value, &advice))
    }

    /// Some text that names something.
    pub(super) fn text(&self, key: &Key<'_>, value: &Value<'_>) -> Result<Entry<String>, String> {
        let text = value.get_ref().as_str();
        let text = text.ok_or_else(|| self.wrong(key, value, "write it in quotes"))?;
        if text.trim().is_empty() {
            return Err(self.wrong(key, value, "write a name, or leave the line out"));
        }
        if text.chars().any(char::is_control) {
            return Err(self.wrong(key, value, "write it without control characters"));
        }
        Ok(self.entry(key, text.to_owned()))
    }

    /// A span of time.
    pub(super) fn span(&self, key: &Key<'_>, value: &Value<'_>) -> Result<Entry<Duration>, String> {
        let text = value.get_ref().as_str();
        let quoted = "write a number and its unit in quotes, such as \"15s\"";
        let text = text.ok_or_else(|| self.wrong(key, value, quoted))?;
        let span = span::parse(text).map_err(|why| self.wrong(key, value, &why))?;
        Ok(self.entry(key, span))
    }

    /// A span of time that can be a ttl.
    pub(super) fn ttl(&self, key: &Key<'_>, value: &Value<'_>) -> Result<Entry<Duration>, String> {
        let ttl = self.span(key, value)?;
        let fits = Timing::for_ttl(ttl.value).check(LEAST_TTL);
        fits.map_err(|error| self.wrong(key, value, &error.to_string()))?;
        Ok(ttl)
    }

    /// One of a few words.
    pub(super) fn one_of(
        &self,
        key: &Key<'_>,
        value: &Value<'_>,
        words: &[&str],
    ) -> Result<Entry<String>, String> {
        match value.get_ref().as_str() {
            Some(text) if words.contains(&text) => Ok(self.entry(key, text.to_owned())),
            _ => {
                let (last, others) = words.split_last().unwrap_or((&"", &[]));
                let advice = format!("write {} or {last}, in quotes", others.join(", "));
                Err(self.wrong(key, value, &advice))
            }
        }
    }

    /// Yes or no.
    pub(super) fn truth(&self, key: &Key<'_>, value: &Value<'_>) -> Result<Entry<bool>, String> {
        let truth = value.get_ref().as_bool();
        let truth =
            truth.ok_or_else(|| self.wrong(key, value, "write true or false, without quotes"))?;
        Ok(self.entry(key, truth))
    }

    /// A key that there isn't.
    pub(super) fn unknown(&self, key: &Key<'_>, known: &str) -> String {
        format!(
            "{}: unknown key {:?}: the keys are {known}. Correct it, or leave it out",
            self.place(key.span().start),
            key.get_ref()
        )
    }

    fn wrong(&self, key: &Key<'_>, value: &Value<'_>, advice: &str) -> String {
        let name = key.get_ref();
        // A URL may hold a password.
        let shown = match self.text.get(value.span()) {
            Some(shown) if name != "store" => format!("{name} = {}", first_line(shown)),
            _ => name.to_string(),
        };
        let kind = value.get_ref().type_str();
        format!("{}: {shown} ({kind}) is not accepted: {advice}", self.place(key.span().start))
    }

    fn entry<T>(&self, key: &Key<'_>, value: T) -> Entry<T> {
        Entry { value, line: self.line(key.span().start) }
    }

    fn place(&self, at: usize) -> String {
        format!("{}:{}", self.path.display(), self.line(at))
    }

    /// Lines are counted from one, as editors do.
    fn line(&self, at: usize) -> usize {
        let before = self.text.as_bytes().get(..at).unwrap_or_default();
        before.iter().filter(|byte| **byte == b'\n').count() + 1
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
