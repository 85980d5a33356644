//! What can be chosen about the store.

use std::fmt;
use std::time::Duration;

use incumbent_core::store::{Access, StoreError};
use incumbent_store_common::choices;

/// Which bucket, and how it is reached.
#[derive(Clone, PartialEq, Eq)]
pub struct BucketOptions {
    pub(crate) cloud: Cloud,
    pub(crate) bucket: String,
    pub(crate) prefix: String,
    pub(crate) timeout: Duration,
    pub(crate) requests: usize,
    pub(crate) authorities: Option<String>,
    pub(crate) bare_etags: bool,
    pub(crate) create: bool,
    pub(crate) access: Access,
    /// Names and values as object_store knows them. Some are secret.
    pub(crate) settings: Vec<(String, String)>,
}

/// Whose object storage it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cloud {
    /// Amazon S3, and whatever speaks its protocol.
    S3,
    /// Google Cloud Storage.
    Google,
    /// Azure Blob Storage.
    Azure,
}

const LONGEST_TIMEOUT: Duration = Duration::from_secs(60);
const MOST_REQUESTS: usize = 1_000;

impl Cloud {
    /// The scheme of its URLs.
    pub(crate) fn scheme(self) -> &'static str {
        match self {
            Self::S3 => "s3",
            Self::Google => "gs",
            Self::Azure => "az",
        }
    }
}

impl BucketOptions {
    /// This bucket or container, with the defaults for all else.
    pub fn new(cloud: Cloud, bucket: impl Into<String>) -> Self {
        Self {
            cloud,
            bucket: bucket.into(),
            prefix: String::new(),
            timeout: Duration::from_secs(5),
            requests: 32,
            authorities: None,
            bare_etags: false,
            create: false,
            access: Access::Full,
            settings: Vec::new(),
        }
    }

    /// The options in a URL such as `s3://bucket/prefix?region=eu-central-1`.
    ///
    /// See [the crate's documentation](crate#urls) for what may stand there.
    ///
    /// # Errors
    ///
    /// Rejected if something in the URL isn't understood, or is a secret; the message names it.
    pub fn parse(url: &str) -> Result<Self, StoreError> {
        crate::url::parse(url)
    }

    choices! {
        /// What the store is opened for: [`Access::Full`] by default. To look, it is enough
        /// to be allowed to get and to list objects, and no container is made.
        access: Access;

        /// What the names of all objects start with: nothing by default.
        prefix: Text;

        /// How long a request may take, 5 s by default. A node waits no longer than a third of its
        /// ttl in any case.
        timeout: Duration;

        /// How many requests may be under way at once on each of the three lanes, 32 by default.
        requests: usize;

        /// Whether ETags are sent back without quotes, as some releases of Ceph want them.
        bare_etags: bool;

        /// Whether a missing container is made, which it isn't by default. Only for Azure: a bucket of
        /// the other clouds has a name that is unique in the world, and a place.
        create: bool;
    }

    /// The command that makes the bucket. Nothing has to be made in it.
    #[must_use]
    pub fn create_command(&self) -> String {
        let bucket = &self.bucket;
        match self.cloud {
            Cloud::S3 => format!("aws s3api create-bucket --bucket {bucket}"),
            Cloud::Google => format!("gcloud storage buckets create gs://{bucket}"),
            Cloud::Azure => format!("az storage container create --name {bucket}"),
        }
    }

    /// A PEM file with certificates of authorities to trust beside those of the system.
    #[must_use]
    pub fn authorities(mut self, path: impl Into<String>) -> Self {
        self.authorities = Some(path.into());
        self
    }

    /// One of the settings that object_store has for this cloud, such as `region`, `endpoint`,
    /// `allow_http`, `secret_access_key`. The name is looked at by [`crate::BucketStore::connect_with`].
    #[must_use]
    pub fn setting(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.settings.push((name.into(), value.into()));
        self
    }

    /// The same options, or why they can't be used.
    pub(crate) fn checked(self) -> Result<Self, StoreError> {
        if self.bucket.is_empty() || self.bucket.contains('/') {
            return Err(StoreError::rejected(format!(
                "{:?} isn't the name of a bucket: write {1}://bucket or {1}://bucket/prefix",
                self.bucket,
                self.cloud.scheme()
            )));
        }
        if self.create && self.cloud != Cloud::Azure {
            return Err(StoreError::rejected(format!(
                "create=yes works only for az://: create the bucket {:?} by hand",
                self.bucket
            )));
        }
        if self.timeout.is_zero() || self.timeout > LONGEST_TIMEOUT {
            return Err(StoreError::rejected(format!(
                "timeout={} is out of bounds: give milliseconds, at most a third of the ttl, such \
                 as timeout=3000",
                self.timeout.as_millis()
            )));
        }
        if !(1..=MOST_REQUESTS).contains(&self.requests) {
            return Err(StoreError::rejected(format!(
                "requests={} is out of bounds: give a number from 1 to {MOST_REQUESTS}",
                self.requests
            )));
        }
        for (name, value) in &self.settings {
            if matches!(name.as_str(), "endpoint" | "endpoint_url" | "base_url" | "proxy_url") {
                check_address(name, value)?;
            }
        }
        Ok(self)
    }

    /// The URL without anything that could be secret.
    pub(crate) fn shown(&self) -> String {
        let (scheme, bucket, prefix) = (self.cloud.scheme(), &self.bucket, &self.prefix);
        let slash = if prefix.is_empty() { "" } else { "/" };
        format!("{scheme}://{bucket}{slash}{prefix}")
    }
}

/// Whether this can be asked at all. object_store panics if it is no URL.
pub(crate) fn check_address(name: &str, value: &str) -> Result<(), StoreError> {
    let url = url::Url::parse(value).ok();
    let url = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    match url {
        None if value.contains('@') => Err(StoreError::rejected(format!(
            "{name}=… isn't understood: use an address such as https://storage.example:9000"
        ))),
        None => Err(StoreError::rejected(format!(
            "{name}={value} isn't understood: use an address such as https://storage.example:9000"
        ))),
        Some(url) if !url.username().is_empty() || url.password().is_some() => {
            Err(StoreError::rejected(format!(
                "{name}=… holds a user or a password: credentials come from the environment"
            )))
        }
        Some(_) => Ok(()),
    }
}

impl fmt::Debug for BucketOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.settings.iter().map(|(name, _)| name).collect();
        f.debug_struct("BucketOptions")
            .field("url", &self.shown())
            .field("timeout", &self.timeout)
            .field("requests", &self.requests)
            .field("settings", &names)
            .finish_non_exhaustive()
    }
}
