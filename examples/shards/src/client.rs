//! A client that joins nothing: it knows from memory who owns which shard, and asks that node.

use axum::body::{Body, to_bytes};
use axum::http::Request;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use incumbent::{BoxError, Cluster, Leader, Owners};

/// Says where a key is.
pub(crate) async fn find(file: &str, key: &str) -> Result<(), BoxError> {
    let owners = owners(file).await?;
    let (shard, owner) = owner(&owners, key)?;
    println!(
        "{key} is in shard {shard} on {} at {}",
        owner.node,
        owner.address.unwrap_or_default()
    );
    Ok(())
}

/// Counts one more of a key.
pub(crate) async fn add(file: &str, key: &str) -> Result<(), BoxError> {
    let owners = owners(file).await?;
    let (_, owner) = owner(&owners, key)?;
    let url = format!("http://{}/keys/{key}", owner.address.unwrap_or_default());
    let client = Client::builder(TokioExecutor::new()).build_http();
    let answer = client.request(Request::post(url).body(Body::empty())?).await?;
    let status = answer.status();
    let body = to_bytes(Body::new(answer.into_body()), 1000).await?;
    print!("{status}: {}", String::from_utf8_lossy(&body));
    Ok(())
}

/// A long-running client keeps this. Every question after the first look is answered from memory.
async fn owners(file: &str) -> Result<Owners, BoxError> {
    let store = incumbent::open_to_look(&format!("sqlite:{file}")).await?;
    let owners = Cluster::new(store, "shards")?.owners("shard")?;
    owners.looked().await;
    Ok(owners)
}

fn owner(owners: &Owners, key: &str) -> Result<(String, Leader), BoxError> {
    let shard = crate::shard(key)?;
    let owner = owners.owner(&shard).and_then(|known| known.owner);
    let owner =
        owner.ok_or_else(|| format!("nobody runs shard {shard} at the moment: try again"))?;
    Ok((shard, owner))
}
