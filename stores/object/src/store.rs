//! The store itself: three lanes to a bucket.

use std::fmt;
use std::sync::Arc;

use incumbent_core::store::{
    Access, Answer, Capabilities, Exchange, HintGuard, Lane, Store, StoreError, Wake,
};
use object_store::ObjectStore;

use crate::client;
use crate::container;
use crate::error::Place;
use crate::exchange::exchange;
use crate::http::Connector;
use crate::lane::{LaneClient, Shared};
use crate::names::Names;
use crate::options::{BucketOptions, Cloud};

/// Enough for a sweep over many records, few enough that an exchange ends within its deadline.
const MOST_OPERATIONS: usize = 100;
/// Any object storage takes far larger ones; nothing here is.
const LARGEST_VALUE: usize = 16 * 1024 * 1024;

/// Records in a bucket of an object storage. Clones share their connections.
#[derive(Clone)]
pub struct BucketStore {
    inner: Arc<Inner>,
}

struct Inner {
    shared: Arc<Shared>,
    beat: LaneClient,
    change: LaneClient,
    watch: LaneClient,
}

impl BucketStore {
    /// Reaches the bucket that a URL names; see [the crate's documentation](crate#urls).
    ///
    /// # Errors
    ///
    /// As [`BucketStore::connect_with`], and rejected if the URL isn't understood.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        Self::connect_with(BucketOptions::parse(url)?).await
    }

    /// Reaches the bucket that the options name, and sees that it may be listed and read.
    ///
    /// # Errors
    ///
    /// Rejected if the bucket isn't there or can't be used so, unavailable if nobody answers. The
    /// message names the bucket and the next step.
    pub async fn connect_with(options: BucketOptions) -> Result<Self, StoreError> {
        let options = options.checked()?;
        let connector = Connector::new(options.timeout, options.authorities.as_deref())?;
        let shared = Arc::new(Shared {
            names: Names::new(&options.prefix)?,
            place: Place {
                cloud: Some(options.cloud),
                shown: options.shown(),
                bucket: options.bucket.clone(),
            },
            timeout: options.timeout,
            noted: true,
            generations: options.cloud == Cloud::Google,
            bare_etags: options.bare_etags,
        });
        if options.create && options.access != Access::Look {
            container::create(&options, &connector, &shared.place).await?;
        }
        let lane = || -> Result<LaneClient, StoreError> {
            let client = client::connect(&options, &connector)?;
            Ok(LaneClient::new(client, Arc::clone(&shared), options.requests))
        };
        // A connection belongs to the runtime that opened it, and this one may be another than
        // that of the exchanges; so what probes goes away again.
        lane()?.probe().await?;
        let (beat, change, watch) = (lane()?, lane()?, lane()?);
        Ok(Self { inner: Arc::new(Inner { shared, beat, change, watch }) })
    }

    /// Uses a client that exists already, for instance one in memory for tests.
    ///
    /// It must compare and swap (`PutMode::Create` and `PutMode::Update`), give an ETag with every
    /// answer, and never retry a write by itself. As nothing is known about its errors, a write
    /// that failed always counts as unknown. All lanes share it.
    ///
    /// # Errors
    ///
    /// Rejected if no object's name can start with this prefix.
    pub fn over(client: Arc<dyn ObjectStore>, prefix: &str) -> Result<Self, StoreError> {
        let options = BucketOptions::new(Cloud::S3, client.to_string()).prefix(prefix);
        let shared = Arc::new(Shared {
            names: Names::new(prefix)?,
            place: Place {
                cloud: None,
                shown: options.bucket.clone(),
                bucket: options.bucket.clone(),
            },
            timeout: options.timeout,
            noted: false,
            generations: true,
            bare_etags: false,
        });
        let lane = || LaneClient::new(Arc::clone(&client), Arc::clone(&shared), options.requests);
        let (beat, change, watch) = (lane(), lane(), lane());
        Ok(Self { inner: Arc::new(Inner { shared, beat, change, watch }) })
    }
}

impl Store for BucketStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            kind: self.inner.shared.place.cloud.map_or("object", Cloud::scheme),
            push: false,
            clock: false,
            max_operations: MOST_OPERATIONS,
            max_value: LARGEST_VALUE,
            durable: true,
            shared: true,
        }
    }

    fn exchange<'a>(&'a self, cluster: &'a str, lane: Lane, asked: Exchange) -> Answer<'a> {
        let Inner { beat, change, watch, .. } = &*self.inner;
        let lane = match lane {
            Lane::Beat => beat,
            Lane::Change => change,
            Lane::Watch => watch,
        };
        Box::pin(exchange(lane, cluster, asked))
    }

    /// Object storage can't push: reads are timed by what is due.
    fn hints(&self, _cluster: &str, _wake: Wake) -> Option<HintGuard> {
        None
    }
}

impl fmt::Debug for BucketStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BucketStore").field("place", &self.inner.shared.place.shown).finish()
    }
}
