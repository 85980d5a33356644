//! Counters in 64 shards. Each shard is a duty: it runs on one node at a time, spread over zones and
//! within each node's capacity, moves to a new version in a deploy, and is found by key. See README.md.

mod client;
mod counters;

use std::path::PathBuf;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::routing::get;
use axum::{Extension, Router};
use incumbent::{BoxError, Duty, DutyDescription, Node, Term, family};
use incumbent_route::{KeyRouter, RouteLayer};

use counters::Counters;

fn shards() -> impl Iterator<Item = String> {
    (0..64).map(|shard| shard.to_string())
}

/// The shard of a key: the same one in every process.
fn shard(key: &str) -> Result<String, BoxError> {
    let shards = KeyRouter::over(shards());
    Ok(shards.duty(key).ok_or("there are no shards")?.to_owned())
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["node", file, zone, version] => node(file, zone, version).await,
        ["where", file, key] => client::find(file, key).await,
        ["add", file, key] => client::add(file, key).await,
        _ => Err("usage: shards node FILE ZONE VERSION | where FILE KEY | add FILE KEY".into()),
    }
}

async fn node(file: &str, zone: &str, version: &str) -> Result<(), BoxError> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?.to_string();
    let store = incumbent::open(&format!("sqlite:{file}")).await?;
    let counters = Arc::new(Counters::open(PathBuf::from(file))?);
    let builder = Node::builder().cluster("shards").address(&address).label("zone", zone);
    let node = builder.capacity(40).from_env()?.join(store).await?;

    let duty = |shard: String| DutyDescription::named(shard).spread("zone").version(version);
    let serving = family("shard")
        .version(version)
        .duties(shards().map(duty))
        .waits_for_ready()
        .run_with(Arc::clone(&counters), own);
    let _serving = node.serve(serving)?;

    let by_key = RouteLayer::to_owner(node.owners("shard")?, KeyRouter::over(shards()), key);
    let app =
        Router::new().route("/keys/{key}", get(show).post(add)).layer(by_key).with_state(counters);
    println!("{} of version {version} in zone {zone} listens at http://{address}", node.name());
    tokio::select! {
        served = axum::serve(listener, app) => served?,
        stop = tokio::signal::ctrl_c() => stop?,
    }
    node.leave().await?;
    Ok(())
}

/// A shard, while it is this node's: its counters are in memory.
async fn own(counters: Arc<Counters>, duty: Duty) -> Result<(), BoxError> {
    let shard = counters.load(&duty).await?;
    duty.ready();
    duty.lost().await;
    drop(shard); // nothing is left to be written: each change is in the file before it is told
    Ok(())
}

fn key(request: &Parts) -> Option<String> {
    Some(request.uri.path().strip_prefix("/keys/")?.to_owned())
}

/// What a request gets: requests reach it only on the node that owns the key, under its term.
type Answer = Result<String, (StatusCode, String)>;

async fn show(
    State(counters): State<Arc<Counters>>,
    Extension(term): Extension<Term>,
    Path(key): Path<String>,
) -> Answer {
    let shard = shard(&key).map_err(refused)?;
    counters.show(&shard, &key, term).await.map(|count| format!("{count}\n")).map_err(refused)
}

async fn add(
    State(counters): State<Arc<Counters>>,
    Extension(term): Extension<Term>,
    Path(key): Path<String>,
) -> Answer {
    let shard = shard(&key).map_err(refused)?;
    counters.add(&shard, &key, term).await.map(|count| format!("{count}\n")).map_err(refused)
}

fn refused(error: BoxError) -> (StatusCode, String) {
    (StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n"))
}
