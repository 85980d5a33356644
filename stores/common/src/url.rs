//! URLs of stores: taken apart strictly, and shown without what is secret in them.
//!
//! A password in a URL may hold anything that its owner forgot to escape. So nothing is guessed: the
//! user and the password end at the last `@`, and a URL with an `@` after its host is refused, since
//! that may be the end of a password with a `/`, `?` or `#` in it. No message repeats a part of a URL
//! of which it isn't certain that anybody may see it.

mod absolute;
mod decode;
mod endpoint;
mod form;
mod options;
mod parts;
mod shown;
#[cfg(test)]
mod tests;

pub use absolute::absolute;
pub use decode::{decoded_bytes, encoded};
pub use endpoint::Endpoint;
pub use form::{Form, Kind, Parameter};
pub use options::{Options, misunderstood};
pub use shown::{has_secret, names_a_user, shown, shown_scheme, without_secrets};

use incumbent_core::store::StoreError;

use crate::secret::Secret;
use decode::decoded;
use parts::Parts;
use shown::are_hosts;

/// Looks up a variable of the environment.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The environment of this process.
pub fn process_environment() -> Environment<'static> {
    &|name| std::env::var(name).ok()
}

/// A URL of a store, taken apart. It holds what is secret, so it can't be shown.
#[derive(Clone, Copy)]
pub struct StoreUrl<'a> {
    form: &'static Form,
    environment: Environment<'a>,
    scheme: &'a str,
    parts: Parts<'a>,
}

impl<'a> StoreUrl<'a> {
    /// Takes a URL apart that is to have this form. What it leaves open may stand in the environment.
    ///
    /// # Errors
    ///
    /// Rejected if it has another scheme, or isn't certain where its password ends.
    pub fn parse(
        text: &'a str,
        form: &'static Form,
        environment: Environment<'a>,
    ) -> Result<Self, StoreError> {
        let known = text.split_once("://").filter(|(scheme, _)| form.schemes.contains(scheme));
        let Some((scheme, rest)) = known else {
            let Form { name, example, .. } = form;
            let shown = shown_scheme(text);
            return Err(StoreError::rejected(format!(
                "{shown:?}… is not the URL of {name}: write {example}"
            )));
        };
        let parts = Parts::split(rest).map_err(|why| form.malformed(why))?;
        if !are_hosts(parts.hosts) {
            return Err(form.no_host());
        }
        Ok(Self { form, environment, scheme, parts })
    }

    /// What stands before the `://`.
    #[must_use]
    pub fn scheme(&self) -> &'a str {
        self.scheme
    }

    /// The user, which is empty if there is an `@` and nothing before it.
    ///
    /// # Errors
    ///
    /// Rejected if it is badly escaped.
    pub fn user(&self) -> Result<Option<String>, StoreError> {
        self.parts.user().map(|user| self.decoded("the user", user)).transpose()
    }

    /// The password.
    ///
    /// # Errors
    ///
    /// Rejected if it is badly escaped.
    pub fn password(&self) -> Result<Option<String>, StoreError> {
        self.parts.password().map(|password| self.decoded("the password", password)).transpose()
    }

    /// The hosts as they stand there.
    #[must_use]
    pub fn raw_hosts(&self) -> &'a str {
        self.parts.hosts
    }

    /// The hosts, of which there may be several with commas between them, with this port unless they
    /// name another. No host at all is an error.
    ///
    /// # Errors
    ///
    /// Rejected if one isn't understood. The message doesn't repeat it, for it may be a password
    /// whose host was forgotten.
    pub fn endpoints(&self, port: u16) -> Result<Vec<Endpoint>, StoreError> {
        let hosts = self.parts.hosts.split(',');
        let endpoints: Option<Vec<Endpoint>> = hosts.map(|it| Endpoint::parse(it, port)).collect();
        endpoints.ok_or_else(|| self.form.no_host())
    }

    /// The one host, where there may be no more.
    ///
    /// # Errors
    ///
    /// Rejected as by [`StoreUrl::endpoints`], and if there are several.
    pub fn endpoint(&self, port: u16) -> Result<Endpoint, StoreError> {
        let mut endpoints = self.endpoints(port)?;
        match (endpoints.pop(), endpoints.is_empty()) {
            (Some(endpoint), true) => Ok(endpoint),
            _ => Err(self.malformed("it names several hosts, of which there may be one")),
        }
    }

    /// What follows the host as it stands there, with the slash that it starts with.
    #[must_use]
    pub fn raw_path(&self) -> &'a str {
        self.parts.path
    }

    /// What follows the host, without the slash that it starts with.
    ///
    /// # Errors
    ///
    /// Rejected if it is badly escaped.
    pub fn path(&self) -> Result<String, StoreError> {
        let path = self.parts.path;
        self.decoded("what follows the host", path.strip_prefix('/').unwrap_or(path))
    }

    /// What follows the question mark.
    ///
    /// # Errors
    ///
    /// As [`Form::options`].
    pub fn options(&self) -> Result<Options, StoreError> {
        self.form.options(self.parts.query)
    }

    /// The password: all that the file holds which `passwordfile=` names, or what stands in the URL,
    /// or what this variable holds.
    ///
    /// # Errors
    ///
    /// Rejected if the URL has both, or it is badly escaped.
    pub fn secret(&self, options: &Options, variable: &str) -> Result<Secret, StoreError> {
        let given = self.password()?.filter(|password| !password.is_empty());
        match (options.file("passwordfile"), given) {
            (Some(_), Some(_)) => Err(StoreError::rejected(format!(
                "the URL of {} has a password and passwordfile=: keep one",
                self.form.name
            ))),
            (Some(path), None) => Ok(Secret::File(path)),
            (None, Some(password)) => Ok(Secret::Given(password)),
            (None, None) => Ok(match (self.environment)(variable) {
                Some(password) if !password.is_empty() => Secret::Given(password),
                _ => Secret::None,
            }),
        }
    }

    /// The error for a URL that can't be understood for this reason.
    #[must_use]
    pub fn malformed(&self, why: &str) -> StoreError {
        self.form.malformed(why)
    }

    fn decoded(&self, what: &str, text: &str) -> Result<String, StoreError> {
        decoded(text).ok_or_else(|| self.form.badly_escaped(what))
    }
}
