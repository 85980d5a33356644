use anyhow::{Context as _, Result, bail};
use object_store::aws::{AmazonS3Builder, S3ConditionalPut};
use object_store::azure::MicrosoftAzureBuilder;
use object_store::path::Path;
use object_store::{ObjectStore, PutMode, PutOptions, UpdateVersion};
use url::Url;

use super::{Bare, Connecting, Swapping, fresh, value};

/// The account and the key of every Azure emulator, as its makers publish them.
const EMULATOR: (&str, &str) = (
    "devstoreaccount1",
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==",
);

/// A conditional put of one object.
pub(crate) struct Bucket {
    store: Box<dyn ObjectStore>,
    path: Path,
    version: Option<UpdateVersion>,
    round: u64,
}

impl Bucket {
    /// At the emulators that the tests use. The container must be there already.
    pub(crate) fn connect(url: &str) -> Connecting<'_> {
        Box::pin(async move {
            // Somebody else of this process may have been first, which is as good.
            let _ = rustls::crypto::ring::default_provider().install_default();
            let url = Url::parse(url)?;
            let bucket = url.host_str().context("no bucket in the URL")?;
            let endpoint = url.query_pairs().find(|(name, _)| name == "endpoint");
            let (_, endpoint) = endpoint.context("only emulators are measured: endpoint=")?;
            let store: Box<dyn ObjectStore> = match url.scheme() {
                "az" | "azure" => Box::new(
                    MicrosoftAzureBuilder::new()
                        .with_account(EMULATOR.0)
                        .with_access_key(EMULATOR.1)
                        .with_endpoint(format!("{endpoint}/{}", EMULATOR.0))
                        .with_allow_http(true)
                        .with_container_name(bucket)
                        .build()?,
                ),
                "s3" => Box::new(
                    AmazonS3Builder::from_env()
                        .with_endpoint(endpoint)
                        .with_allow_http(true)
                        .with_bucket_name(bucket)
                        .with_conditional_put(S3ConditionalPut::ETagMatch)
                        .build()?,
                ),
                other => bail!("no emulator of {other}: is measured here"),
            };
            let path = Path::from(fresh());
            Ok(Box::new(Self { store, path, version: None, round: 0 }) as Box<dyn Bare>)
        })
    }

    async fn put(&mut self) -> Result<()> {
        self.round += 1;
        let mode = self.version.take().map_or(PutMode::Create, PutMode::Update);
        let options = PutOptions { mode, ..PutOptions::default() };
        let put = self.store.put_opts(&self.path, value(self.round).into(), options).await?;
        self.version = Some(put.into());
        Ok(())
    }
}

impl Bare for Bucket {
    fn swap(&mut self) -> Swapping<'_> {
        Box::pin(self.put())
    }
}
