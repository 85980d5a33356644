//! An object in a bucket, written by conditional writes. The term is metadata of the very object, so
//! that its content is yours alone.

use object_store::path::Path;
use object_store::{
    Attribute, Attributes, Error, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions,
    PutPayload, UpdateVersion,
};

use crate::error::seen;
use crate::{GateError, Token};

/// The name of the metadata. Azure takes letters and digits alone.
const TERM: &str = "incumbentterm";

/// What an object holds, and the state of it that the next write is based on.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// The content; empty if there is no object yet.
    pub content: Vec<u8>,
    /// The term that wrote it; 0 if it was written past the gate, or never.
    pub term: u64,
    version: Option<UpdateVersion>,
}

/// Reads an object.
///
/// # Errors
/// As the storage.
pub async fn load(store: &dyn ObjectStore, path: &Path) -> Result<Found, GateError<Error>> {
    let object = match store.get(path).await {
        Ok(object) => object,
        Err(Error::NotFound { .. }) => return Ok(Found::default()),
        Err(error) => return Err(GateError::Unreachable(error)),
    };
    let term = object.attributes.get(&Attribute::Metadata(TERM.into()));
    let term = term.map_or(Ok(0), |term| seen(term.as_bytes()))?;
    let version =
        UpdateVersion { e_tag: object.meta.e_tag.clone(), version: object.meta.version.clone() };
    let content = object.bytes().await.map_err(GateError::Unreachable)?;
    Ok(Found { content: content.to_vec(), term, version: Some(version) })
}

/// Writes an object, unless a higher term or anybody since `found` has. What comes back is what the
/// next write is based on.
///
/// A new leader saves what it has loaded before it relies on it: from then on its predecessor's
/// writes fail. Don't delete such an object: its term would be gone with it. The storage has to
/// support conditional writes; what is known of each is on the page of incumbent's own store.
///
/// # Errors
/// [`GateError::Superseded`] if a higher term has written, [`GateError::Changed`] if somebody else
/// has, or this very write did and its answer was lost: load again, and see.
pub async fn save(
    store: &dyn ObjectStore,
    path: &Path,
    token: &Token,
    found: &Found,
    content: Vec<u8>,
) -> Result<Found, GateError<Error>> {
    if found.term > token.term() {
        return Err(GateError::Superseded { term: found.term });
    }
    let mode = found.version.clone().map_or(PutMode::Create, PutMode::Update);
    let mut attributes = Attributes::new();
    attributes.insert(Attribute::Metadata(TERM.into()), token.term().to_string().into());
    let options = PutOptions { mode, attributes, ..PutOptions::default() };
    match store.put_opts(path, PutPayload::from(content.clone()), options).await {
        Ok(done) => {
            let version = UpdateVersion { e_tag: done.e_tag, version: done.version };
            Ok(Found { content, term: token.term(), version: Some(version) })
        }
        Err(Error::Precondition { .. } | Error::AlreadyExists { .. }) => {
            let now = load(store, path).await?;
            let over = now.term > token.term();
            Err(if over { GateError::Superseded { term: now.term } } else { GateError::Changed })
        }
        Err(error) => Err(GateError::Unreachable(error)),
    }
}
