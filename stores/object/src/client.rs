//! Makes the clients of the three clouds.

use std::sync::Arc;

use incumbent_core::store::StoreError;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey, S3ConditionalPut};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::{BackoffConfig, ClientConfigKey, ObjectStore, RetryConfig};

use crate::http::Connector;
use crate::options::{BucketOptions, Cloud, check_address};

/// The account and the key of every Azure emulator, as its makers publish them.
const EMULATOR_ACCOUNT: &str = "devstoreaccount1";
const EMULATOR_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// A client with connections of its own.
pub(crate) fn connect(
    options: &BucketOptions,
    connector: &Connector,
) -> Result<Arc<dyn ObjectStore>, StoreError> {
    let built = match options.cloud {
        Cloud::S3 => s3(options, connector)?,
        Cloud::Google => google(options, connector)?,
        Cloud::Azure => azure(options, connector)?,
    };
    built.map_err(|error| {
        let (shown, variables) = (options.shown(), variables(options.cloud));
        StoreError::rejected(format!(
            "{shown} can't be used as it is set up: {error}. Check {variables} in the \
             environment, or the options of the URL"
        ))
    })
}

type Built = object_store::Result<Arc<dyn ObjectStore>>;

fn s3(options: &BucketOptions, connector: &Connector) -> Result<Built, StoreError> {
    let mut builder = AmazonS3Builder::from_env();
    for (name, value) in &options.settings {
        let key = s3_key(name).ok_or_else(|| unknown(Cloud::S3, name))?;
        builder = builder.with_config(key, value);
    }
    checked("AWS_ENDPOINT_URL", builder.get_config_value(&AmazonS3ConfigKey::Endpoint))?;
    let built = builder
        .with_bucket_name(&options.bucket)
        .with_conditional_put(S3ConditionalPut::ETagMatch)
        // One plain request a delete: no other right, and every lookalike has it.
        .with_config(AmazonS3ConfigKey::DisableBulkDelete, "true")
        .with_retry(never())
        .with_http_connector(connector.clone())
        .build();
    Ok(built.map(|store| Arc::new(store) as _))
}

fn google(options: &BucketOptions, connector: &Connector) -> Result<Built, StoreError> {
    let mut builder = GoogleCloudStorageBuilder::from_env();
    for (name, value) in &options.settings {
        let key = google_key(name).ok_or_else(|| unknown(Cloud::Google, name))?;
        builder = builder.with_config(key, value);
    }
    checked("GOOGLE_BASE_URL", builder.get_config_value(&GoogleConfigKey::BaseUrl))?;
    let built = builder
        .with_bucket_name(&options.bucket)
        .with_retry(never())
        .with_http_connector(connector.clone())
        .build();
    Ok(built.map(|store| Arc::new(store) as _))
}

fn azure(options: &BucketOptions, connector: &Connector) -> Result<Built, StoreError> {
    Ok(azure_builder(options, connector)?.build().map(|store| Arc::new(store) as _))
}

/// A client of Azure that only needs to be built.
pub(crate) fn azure_builder(
    options: &BucketOptions,
    connector: &Connector,
) -> Result<MicrosoftAzureBuilder, StoreError> {
    let mut builder = MicrosoftAzureBuilder::from_env();
    for (name, value) in &options.settings {
        let key = azure_key(name).ok_or_else(|| unknown(Cloud::Azure, name))?;
        builder = builder.with_config(key, value);
    }
    checked("AZURE_STORAGE_ENDPOINT", builder.get_config_value(&AzureConfigKey::Endpoint))?;
    Ok(emulated(builder)
        .with_container_name(&options.bucket)
        .with_retry(never())
        .with_http_connector(connector.clone()))
}

/// The address of another server may come from the environment as well.
fn checked(variable: &str, address: Option<String>) -> Result<(), StoreError> {
    address.map_or(Ok(()), |address| check_address(variable, &address))
}

/// An emulator at another address than its usual one. object_store reads that only from a
/// variable of the whole process.
fn emulated(mut builder: MicrosoftAzureBuilder) -> MicrosoftAzureBuilder {
    let value = |builder: &MicrosoftAzureBuilder, key| builder.get_config_value(&key);
    let endpoint = value(&builder, AzureConfigKey::Endpoint);
    let emulator = value(&builder, AzureConfigKey::UseEmulator);
    let (Some(endpoint), Some("true")) = (endpoint, emulator.as_deref()) else { return builder };
    let account = value(&builder, AzureConfigKey::AccountName);
    let account = account.unwrap_or_else(|| EMULATOR_ACCOUNT.to_owned());
    if value(&builder, AzureConfigKey::AccessKey).is_none() {
        builder = builder.with_access_key(EMULATOR_KEY);
    }
    builder
        .with_use_emulator(false)
        .with_endpoint(format!("{}/{account}", endpoint.trim_end_matches('/')))
        .with_account(account)
        .with_allow_http(true)
}

/// A write that was retried after it had succeeded would come back as a conflict with itself.
fn never() -> RetryConfig {
    RetryConfig { max_retries: 0, backoff: BackoffConfig::default(), ..RetryConfig::default() }
}

/// Whether this is a setting of that cloud, and one that may be chosen.
pub(crate) fn knows(cloud: Cloud, name: &str) -> bool {
    match cloud {
        Cloud::S3 => s3_key(name).is_some(),
        Cloud::Google => google_key(name).is_some(),
        Cloud::Azure => azure_key(name).is_some(),
    }
}

fn s3_key(name: &str) -> Option<AmazonS3ConfigKey> {
    use AmazonS3ConfigKey as Key;
    match name.parse().ok()? {
        Key::Bucket | Key::ConditionalPut | Key::CopyIfNotExists | Key::DisableBulkDelete => None,
        Key::Client(key) => used(key).map(Key::Client),
        key => Some(key),
    }
}

fn google_key(name: &str) -> Option<GoogleConfigKey> {
    use GoogleConfigKey as Key;
    // The other two clouds call it so.
    let name = if name == "endpoint" { "base_url" } else { name };
    match name.parse().ok()? {
        Key::Bucket => None,
        Key::Client(key) => used(key).map(Key::Client),
        key => Some(key),
    }
}

fn azure_key(name: &str) -> Option<AzureConfigKey> {
    use AzureConfigKey as Key;
    match name.parse().ok()? {
        Key::ContainerName => None,
        Key::Client(key) => used(key).map(Key::Client),
        key => Some(key),
    }
}

/// Settings of the HTTP client that ours heeds.
fn used(key: ClientConfigKey) -> Option<ClientConfigKey> {
    use ClientConfigKey as Key;
    matches!(key, Key::AllowHttp | Key::ProxyUrl | Key::ProxyExcludes).then_some(key)
}

/// The error for a setting that isn't one.
pub(crate) fn unknown(cloud: Cloud, name: &str) -> StoreError {
    let known = match cloud {
        Cloud::S3 => "region, endpoint, allow_http, virtual_hosted_style_request, role_arn",
        Cloud::Google => "base_url, application_credentials, service_account, allow_http",
        Cloud::Azure => "account_name, endpoint, allow_http, use_emulator, client_id, tenant_id",
    };
    StoreError::rejected(format!(
        "{name}= isn't understood: {}:// URLs have the options timeout, requests, ca, etag, \
         create, {known}, and others that object_store documents for this cloud",
        cloud.scheme()
    ))
}

/// The variable in which a setting may stand.
pub(crate) fn variable(cloud: Cloud, name: &str) -> String {
    let variable = match cloud {
        Cloud::S3 => s3_key(name).map(|key| key.as_ref().to_owned()),
        Cloud::Google => google_key(name).map(|key| key.as_ref().to_owned()),
        Cloud::Azure => azure_key(name).map(|key| key.as_ref().to_owned()),
    };
    variable.unwrap_or_default().to_ascii_uppercase()
}

/// The variables that hold credentials.
pub(crate) fn variables(cloud: Cloud) -> &'static str {
    match cloud {
        Cloud::S3 => "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION",
        Cloud::Google => "GOOGLE_APPLICATION_CREDENTIALS",
        Cloud::Azure => "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
    }
}
