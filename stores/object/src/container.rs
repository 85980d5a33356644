//! Makes an Azure container that is missing, where the URL asks for that.
//!
//! Buckets of the other clouds have names that are unique in the world, regions and owners: those
//! are somebody's decision and not made here.

use incumbent_core::store::StoreError;
use object_store::ClientOptions;
use object_store::azure::{AzureAuthorizer, AzureConfigKey};
use object_store::client::{HttpConnector as _, HttpRequestBody};

use crate::client;
use crate::error::Place;
use crate::http::{Connector, traced};
use crate::options::BucketOptions;

/// Makes the container unless it is there.
pub(crate) async fn create(
    options: &BucketOptions,
    connector: &Connector,
    place: &Place,
) -> Result<(), StoreError> {
    let what = format!("creating the container {:?}", options.bucket);
    let (status, code) = match traced(send(options, connector)).await {
        (Ok(status), trace) => (status, trace.code),
        (Err(error), trace) => return Err(place.failure(&what, &error, &trace)),
    };
    match (status, code.as_str()) {
        (200..300, _) | (409, "ContainerAlreadyExists") => Ok(()),
        (409 | 429 | 500..600, _) => Err(StoreError::unavailable(format!(
            "{}: {what} was answered with {status} {code}",
            place.shown
        ))),
        _ => Err(StoreError::rejected(format!(
            "{}: {what} was answered with {status} {code}. Ask somebody who may create it to do so, and \
             leave out create=yes",
            place.shown
        ))),
    }
}

async fn send(options: &BucketOptions, connector: &Connector) -> object_store::Result<u16> {
    let builder =
        client::azure_builder(options, connector).map_err(|error| generic(error.message))?;
    let value = |key| builder.get_config_value(&key);
    let account = value(AzureConfigKey::AccountName).unwrap_or_default();
    let endpoint = value(AzureConfigKey::Endpoint)
        .unwrap_or_else(|| format!("https://{account}.blob.core.windows.net"));
    let store = builder.build()?;
    let credential = store.credentials().get_credential().await?;
    let uri = format!("{}/{}?restype=container", endpoint.trim_end_matches('/'), options.bucket);
    let mut request = http::Request::builder()
        .method(http::Method::PUT)
        .uri(uri)
        .header(http::header::CONTENT_LENGTH, 0)
        .body(HttpRequestBody::empty())
        .map_err(|error| generic(error.to_string()))?;
    AzureAuthorizer::new(&credential, &account).try_authorize(&mut request)?;
    // Whether this may go unencrypted was decided by whoever named the endpoint.
    let plain = ClientOptions::new().with_allow_http(endpoint.starts_with("http://"));
    let sent = connector.connect(&plain)?.execute(request).await;
    Ok(sent.map_err(|error| generic(error.to_string()))?.status().as_u16())
}

fn generic(message: String) -> object_store::Error {
    object_store::Error::Generic { store: "MicrosoftAzure", source: message.into() }
}
