//! An object storage in memory whose ETags are hashes of the content, as those of S3 are, and that
//! counts what it is asked.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload,
    ObjectMeta, ObjectStore, ObjectStoreExt as _, PutMode, PutMultipartOptions, PutOptions,
    PutPayload, PutResult, Result,
};
use tokio::sync::Mutex;

/// One client. Clones made by [`Hashed::beside`] share the objects and count for themselves.
#[derive(Debug)]
pub struct Hashed {
    objects: Arc<InMemory>,
    writing: Arc<Mutex<()>>,
    puts: AtomicUsize,
    gets: AtomicUsize,
    unchanged: AtomicUsize,
    lists: AtomicUsize,
    deletes: AtomicUsize,
}

/// How often a client asked for what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub puts: usize,
    /// Reads, those included that found nothing new.
    pub gets: usize,
    pub unchanged: usize,
    pub lists: usize,
    pub deletes: usize,
}

impl Hashed {
    pub fn new() -> Arc<Self> {
        Self::with(Arc::default(), Arc::default())
    }

    pub fn beside(&self) -> Arc<Self> {
        Self::with(Arc::clone(&self.objects), Arc::clone(&self.writing))
    }

    fn with(objects: Arc<InMemory>, writing: Arc<Mutex<()>>) -> Arc<Self> {
        Arc::new(Self {
            objects,
            writing,
            puts: AtomicUsize::default(),
            gets: AtomicUsize::default(),
            unchanged: AtomicUsize::default(),
            lists: AtomicUsize::default(),
            deletes: AtomicUsize::default(),
        })
    }

    /// The counts since the last call.
    pub fn take(&self) -> Counts {
        let taken = |count: &AtomicUsize| count.swap(0, Ordering::SeqCst);
        Counts {
            puts: taken(&self.puts),
            gets: taken(&self.gets),
            unchanged: taken(&self.unchanged),
            lists: taken(&self.lists),
            deletes: taken(&self.deletes),
        }
    }

    /// The object itself, for those who look into the bucket by other means.
    pub fn objects(&self) -> &InMemory {
        &self.objects
    }
}

fn etag(content: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    content.hash(&mut hasher);
    format!("\"{:016x}\"", hasher.finish())
}

impl fmt::Display for Hashed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("hashed")
    }
}

#[async_trait]
impl ObjectStore for Hashed {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        mut options: PutOptions,
    ) -> Result<PutResult> {
        self.puts.fetch_add(1, Ordering::SeqCst);
        let _writing = self.writing.lock().await;
        if let PutMode::Update(wanted) = &options.mode {
            let there = match self.objects.get(location).await {
                Ok(got) => Some(etag(&got.bytes().await?)),
                Err(_) => None,
            };
            if there.is_none() || there != wanted.e_tag {
                let (path, source) = (location.to_string(), "another ETag".into());
                return Err(Error::Precondition { path, source });
            }
            options.mode = PutMode::Overwrite;
        }
        let content: Vec<u8> = payload.iter().flatten().copied().collect();
        let mut done = self.objects.put_opts(location, payload, options).await?;
        done.e_tag = Some(etag(&content));
        Ok(done)
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.objects.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.gets.fetch_add(1, Ordering::SeqCst);
        let got = self.objects.get(location).await?;
        let (mut meta, range, attributes) =
            (got.meta.clone(), got.range.clone(), got.attributes.clone());
        let bytes = got.bytes().await?;
        meta.e_tag = Some(etag(&bytes));
        if let Err(error) = options.check_preconditions(&meta) {
            self.unchanged.fetch_add(1, Ordering::SeqCst);
            return Err(error);
        }
        let payload = futures_util::stream::once(async move { Ok(bytes) }).boxed();
        let payload = GetResultPayload::Stream(payload);
        Ok(GetResult { payload, meta, range, attributes, extensions: Default::default() })
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.deletes.fetch_add(1, Ordering::SeqCst);
        let (objects, writing) = (Arc::clone(&self.objects), Arc::clone(&self.writing));
        // A delete in the midst of a compared write would be undone by it.
        let deleted = locations.then(move |location| {
            let (objects, writing) = (Arc::clone(&objects), Arc::clone(&writing));
            async move {
                let location = location?;
                let _alone = writing.lock().await;
                objects.delete(&location).await?;
                Ok(location)
            }
        });
        Box::pin(deleted)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.lists.fetch_add(1, Ordering::SeqCst);
        self.objects.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.objects.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.objects.copy_opts(from, to, options).await
    }
}
