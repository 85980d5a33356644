//! The HTTP client under the object storage clients, and what it notes about each request.
//!
//! object_store's errors don't say whether a request was sent, nor which code the server gave as
//! the reason. Whether a write may have been applied hangs on just that, so it is noted here.

use std::error::Error as _;
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use incumbent_core::store::StoreError;
use incumbent_store_common::locked;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpRequest, HttpResponse, HttpResponseBody, HttpService,
};
use object_store::{ClientConfigKey, ClientOptions};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{self, PemObject};
use rustls::{ClientConfig, RootCertStore};

/// Longer than between two beats of the default ttl, shorter than most servers keep a connection:
/// a request on one that the server is just closing has an unknown outcome.
const IDLE: Duration = Duration::from_secs(10);
/// Connecting takes a few round trips; one that takes longer should be tried again.
const CONNECT: Duration = Duration::from_secs(3);

tokio::task_local! {
    static TRACE: Arc<Mutex<Trace>>;
}

/// What became of the last request of an operation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trace {
    /// Whether there was any request.
    pub(crate) asked: bool,
    /// Whether it can't have been sent, because there was no connection.
    pub(crate) unsent: bool,
    /// The status of the answer, if there was one.
    pub(crate) status: Option<u16>,
    /// The reason that the server gave, such as `NoSuchBucket`.
    pub(crate) code: String,
}

/// Runs an operation and says what became of its last request.
pub(crate) async fn traced<F: Future>(operation: F) -> (F::Output, Trace) {
    let trace = Arc::<Mutex<Trace>>::default();
    let output = TRACE.scope(Arc::clone(&trace), operation).await;
    let trace = locked(&trace).clone();
    (output, trace)
}

fn note(trace: Trace) {
    let _ = TRACE.try_with(|noted| {
        *locked(noted) = trace;
    });
}

/// Makes clients, each with connections of its own.
#[derive(Clone, Debug)]
pub(crate) struct Connector {
    timeout: Duration,
    tls: ClientConfig,
}

impl Connector {
    /// `authorities` names a PEM file with certificates to trust beside the system's.
    pub(crate) fn new(timeout: Duration, authorities: Option<&str>) -> Result<Self, StoreError> {
        let mut roots = RootCertStore::empty();
        // Where there are none, only an encrypted connection fails, and says so.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if let Some(path) = authorities {
            let unreadable = |error: String| {
                StoreError::rejected(format!(
                    "ca={path}: {error}. Name a PEM file that this process may read"
                ))
            };
            let certificates: Vec<_> = CertificateDer::pem_file_iter(path)
                .and_then(Iterator::collect)
                .map_err(|error| match error {
                    pem::Error::Io(error) => unreadable(error.to_string()),
                    // It would quote what is in the file, which may be a key (O58).
                    _ => unreadable("it isn't PEM".to_owned()),
                })?;
            for certificate in certificates {
                roots.add(certificate).map_err(|error| unreadable(error.to_string()))?;
            }
        }
        // Named here, because a process may hold several providers and rustls then refuses to
        // choose.
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| StoreError::rejected(format!("TLS can't be used: {error}")))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self { timeout, tls })
    }
}

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let plain = options.get_config_value(&ClientConfigKey::AllowHttp);
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("incumbent/", env!("CARGO_PKG_VERSION")))
            .tls_backend_preconfigured(self.tls.clone())
            // A write that was sent again could find its own first attempt.
            .retry(reqwest::retry::never())
            .redirect(reqwest::redirect::Policy::none())
            // With HTTP/2 one hung connection would hold up every request after it.
            .http1_only()
            .timeout(self.timeout)
            .connect_timeout(CONNECT.min(self.timeout))
            .pool_idle_timeout(IDLE)
            .https_only(plain.as_deref() != Some("true"));
        if let Some(proxy) = options.get_config_value(&ClientConfigKey::ProxyUrl) {
            let excludes = options.get_config_value(&ClientConfigKey::ProxyExcludes);
            let excludes = excludes.and_then(|list| reqwest::NoProxy::from_string(&list));
            let proxy = reqwest::Proxy::all(proxy).map_err(generic)?.no_proxy(excludes);
            builder = builder.proxy(proxy);
        }
        Ok(HttpClient::new(Noting { client: builder.build().map_err(generic)? }))
    }
}

fn generic(error: reqwest::Error) -> object_store::Error {
    object_store::Error::Generic { store: "HTTP", source: Box::new(error.without_url()) }
}

#[derive(Debug)]
struct Noting {
    client: reqwest::Client,
}

#[async_trait]
impl HttpService for Noting {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        // Until it is known better it may have been sent, also if this future is dropped.
        note(Trace { asked: true, ..Trace::default() });
        match HttpService::call(&self.client, request).await {
            Ok(response) if response.status().is_success() => {
                let status = Some(response.status().as_u16());
                note(Trace { asked: true, status, ..Trace::default() });
                Ok(response)
            }
            Ok(response) => explained(response).await,
            Err(error) => {
                note(Trace { asked: true, unsent: is_unsent(&error), ..Trace::default() });
                Err(error)
            }
        }
    }
}

/// Notes why the server declined, and hands the answer on as it is.
async fn explained(response: HttpResponse) -> Result<HttpResponse, HttpError> {
    let (parts, body) = response.into_parts();
    let status = Some(parts.status.as_u16());
    note(Trace { asked: true, status, ..Trace::default() });
    let bytes = body.bytes().await?;
    let header = parts.headers.get("x-ms-error-code").and_then(|code| code.to_str().ok());
    let code = match header {
        Some(code) => code.to_owned(),
        None => code_in(&String::from_utf8_lossy(&bytes)),
    };
    note(Trace { asked: true, status, code, ..Trace::default() });
    Ok(HttpResponse::from_parts(parts, HttpResponseBody::from(bytes)))
}

/// The code in an answer such as `<Error><Code>NoSuchBucket</Code>…`, as S3, Google and Azure
/// give it.
fn code_in(body: &str) -> String {
    let code = body.split_once("<Code>").and_then(|(_, rest)| rest.split_once("</Code>"));
    code.map(|(code, _)| code.chars().take(64).collect()).unwrap_or_default()
}

/// An error while connecting, a time-out included, came before the request.
fn is_unsent(error: &HttpError) -> bool {
    let source = error.source().and_then(|source| source.downcast_ref::<reqwest::Error>());
    source.is_some_and(|error| error.is_connect() || error.is_builder())
}

#[cfg(test)]
mod tests {
    use super::code_in;

    #[test]
    fn the_reason_is_found_in_the_body() {
        let body = "<?xml version=\"1.0\"?><Error><Code>NoSuchKey</Code><Message>x</Message>";
        assert_eq!(code_in(body), "NoSuchKey");
        assert_eq!(code_in("<html>"), "");
        assert_eq!(code_in("<Code>"), "");
    }
}
