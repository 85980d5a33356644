//! Reads `s3:`, `gs:` and `az:` URLs.

use std::path::Path;

use incumbent_core::store::StoreError;
use incumbent_store_common::{Form, StoreUrl, process_environment, secret_file, unreadable};

use crate::client;
use crate::options::{BucketOptions, Cloud};

pub(crate) fn parse(text: &str) -> Result<BucketOptions, StoreError> {
    let url = StoreUrl::parse(text, Form::OBJECT, process_environment())?;
    let cloud = match url.scheme() {
        "gs" => Cloud::Google,
        "az" | "azure" => Cloud::Azure,
        _ => Cloud::S3,
    };
    let bucket = url.raw_hosts();
    if url.user()?.is_some() || bucket.contains(':') {
        return Err(StoreError::rejected(
            "an object storage URL holds no user, password or port: credentials come from the \
             environment, and another server is named by endpoint=",
        ));
    }
    let prefix = url.path()?;
    let mut options = BucketOptions::new(cloud, bucket).prefix(prefix.trim_matches('/'));
    let given = url.options()?;
    options.timeout = given.span("timeout").unwrap_or(options.timeout);
    options.requests = given.number("requests").unwrap_or(options.requests);
    options.authorities = given.text("ca").map(str::to_owned);
    options.bare_etags = given.chose("etag", "bare").unwrap_or(options.bare_etags);
    options.create = given.chose("create", "yes").unwrap_or(options.create);
    for (name, value) in given.iter().filter(|(name, _)| !OWN.contains(name)) {
        options = setting(options, name, value)?;
    }
    options.checked()
}

/// What object_store doesn't know.
const OWN: [&str; 5] = ["timeout", "requests", "ca", "etag", "create"];

fn setting(options: BucketOptions, name: &str, value: &str) -> Result<BucketOptions, StoreError> {
    let cloud = options.cloud;
    if client::knows(cloud, name) {
        if is_secret(name) {
            return Err(StoreError::rejected(format!(
                "{name}= is a secret, and URLs are seen in process lists and logs: set it in the \
                 environment ({}), or name a file that holds it with {name}_file=",
                client::variable(cloud, name)
            )));
        }
        return Ok(options.setting(name, value));
    }
    let Some(secret) = name.strip_suffix("_file").filter(|name| client::knows(cloud, name)) else {
        return Err(client::unknown(cloud, name));
    };
    let path = Path::new(value);
    let content = secret_file(path).map_err(|error| unreadable(name, path, &error))?;
    Ok(options.setting(secret, content.trim()))
}

/// Whether this setting's value must not be seen by others.
fn is_secret(name: &str) -> bool {
    let open = ["access_key_id", "token_file", "token_service_url", "sse_kms_key_id"];
    let secret = ["secret", "token", "key", "sas", "password"];
    !open.iter().any(|end| name.ends_with(end))
        && secret.iter().any(|part| name.contains(part))
        && name != "sse_bucket_key_enabled"
}

#[cfg(test)]
mod tests {
    use incumbent_proving::store::assert_refused;

    use super::parse;
    use crate::options::{BucketOptions, Cloud};
    use std::time::Duration;

    #[test]
    fn the_three_clouds_are_told_apart() {
        let new = BucketOptions::new;
        assert_eq!(parse("s3://b").unwrap(), new(Cloud::S3, "b"));
        assert_eq!(parse("s3://b/").unwrap(), new(Cloud::S3, "b"));
        assert_eq!(parse("gs://b/p/q/").unwrap(), new(Cloud::Google, "b").prefix("p/q"));
        assert_eq!(parse("az://c/a%20b+c").unwrap(), new(Cloud::Azure, "c").prefix("a b+c"));
        assert_eq!(parse("azure://c").unwrap(), new(Cloud::Azure, "c"));
    }

    #[test]
    fn all_options_are_read() {
        let url = "s3://b/p?region=eu-central-1&endpoint=http%3A%2F%2F127.0.0.1%3A9000\
                   &allow_http=true&timeout=1500&requests=8&etag=bare&ca=/etc/ca.pem";
        let expected = BucketOptions::new(Cloud::S3, "b")
            .prefix("p")
            .setting("region", "eu-central-1")
            .setting("endpoint", "http://127.0.0.1:9000")
            .setting("allow_http", "true")
            .timeout(Duration::from_millis(1500))
            .requests(8)
            .bare_etags(true)
            .authorities("/etc/ca.pem");
        assert_eq!(parse(url).unwrap(), expected);
    }

    #[test]
    fn secrets_come_from_files_and_never_from_the_url() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        std::fs::write(&path, "s3cret\n").unwrap();
        let url = format!("s3://b?secret_access_key_file={}", path.display());
        let options = parse(&url).unwrap();
        let expected = BucketOptions::new(Cloud::S3, "b").setting("secret_access_key", "s3cret");
        assert_eq!(options, expected);
        assert!(!format!("{options:?}").contains("s3cret"));
        for url in [
            "s3://b?secret_access_key=s3cret",
            "s3://b?session_token=s3cret",
            "az://c?account_key=s3cret",
            "az://c?sas_token=s3cret",
            "az://c?client_secret=s3cret",
            "gs://b?service_account_key=s3cret",
            "gs://b?bearer_token=s3cret",
            "s3://me:s3cret@b",
        ] {
            let error = parse(url).expect_err(url);
            assert!(!error.message.contains("s3cret"), "{url}: {error}");
            assert!(error.message.contains("environment"), "{url}: {error}");
        }
        assert!(parse("s3://b?access_key_id=me").is_ok());
    }

    #[test]
    fn what_is_not_understood_is_named_with_the_next_step() {
        let cases = [
            ("bucket", "not the URL", "s3://bucket/prefix"),
            ("sqlite://a", "sqlite", "s3://bucket/prefix"),
            ("s3://", "bucket", "s3://bucket/prefix"),
            ("s3:///p", "bucket", "s3://bucket/prefix"),
            ("s3://b?timeout=soon", "timeout=soon", "timeout=2000"),
            ("s3://b?timeout=0", "timeout=0", "ttl"),
            ("s3://b?requests=0", "requests=0", "1 to"),
            ("s3://b?etag=round", "etag=round", "bare"),
            ("az://c?create=maybe", "create=maybe", "yes or no"),
            ("s3://b?create=yes", "\"b\"", "by hand"),
            ("s3://b?color=red", "color", "region"),
            ("az://c?region=x", "region", "account_name"),
            ("gs://b?region=x", "region", "base_url"),
            ("s3://b?bucket=other", "bucket", "region"),
            ("s3://b?conditional_put=disabled", "conditional_put", "region"),
            ("s3://b?timeout=1&timeout=2", "timeout", "keep one"),
            ("s3://b?secret_access_key_file=/none", "/none", "may read"),
            ("s3://b/a%ffb", "follows the host", "UTF-8"),
            ("s3://b?endpoint=nonsense", "endpoint=nonsense", "https://"),
            ("s3://b?endpoint=ftp://x", "endpoint=ftp://x", "https://"),
            ("s3://b?endpoint=http://", "endpoint=http://", "https://"),
            ("s3://b?endpoint=", "endpoint=", "https://"),
            ("s3://b?proxy_url=nonsense", "proxy_url=nonsense", "https://"),
            ("gs://b?base_url=nonsense", "base_url=nonsense", "https://"),
            ("gs://b?endpoint=nonsense", "endpoint=nonsense", "https://"),
            ("az://b?endpoint=nonsense", "endpoint=nonsense", "https://"),
        ];
        assert_refused(&cases, parse);
    }
}
