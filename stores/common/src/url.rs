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
pub use form::Form;
pub use shown::{has_secret, names_a_user, shown, shown_scheme, without_secrets};

use incumbent_core::store::StoreError;

use decode::decoded;
use parts::Parts;
use shown::are_hosts;

/// A URL of a store, taken apart. It holds what is secret, so it can't be shown.
#[derive(Clone, Copy)]
pub struct StoreUrl<'a> {
    form: &'static Form,
    scheme: &'a str,
    parts: Parts<'a>,
}

impl<'a> StoreUrl<'a> {
    /// Takes a URL apart that is to have this form.
    ///
    /// # Errors
    ///
    /// Rejected if it has another scheme, or isn't certain where its password ends.
    pub fn parse(text: &'a str, form: &'static Form) -> Result<Self, StoreError> {
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
        Ok(Self { form, scheme, parts })
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

    /// The options with their values, each at most once. They may be any.
    ///
    /// # Errors
    ///
    /// Rejected if one stands there twice or is badly escaped.
    pub fn any_options(&self) -> Result<Vec<(&'a str, String)>, StoreError> {
        self.form.any_options(self.parts.query)
    }

    /// The options with their values, each at most once, and all of them known to this form.
    ///
    /// # Errors
    ///
    /// Rejected if one isn't known, stands there twice or is badly escaped. The value of one that
    /// isn't known is not repeated: who mistypes `password` has a password there.
    pub fn options(&self) -> Result<Vec<(&'a str, String)>, StoreError> {
        self.form.options(self.parts.query)
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
