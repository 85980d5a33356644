//! A job broker over HTTP whose whole state is one object in a bucket. Any number of brokers run side
//! by side; one leads, elected in the same bucket, and the others redirect to it. See README.md.

mod state;

use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::routing::{get, post, put};
use axum::{Extension, Json, Router};
use incumbent::{BoxError, Node, Term};
use incumbent_route::RouteLayer;
use serde::Deserialize;

use state::{Bucket, Jobs, Refused};

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let variable =
        |name: &str| std::env::var(name).map_err(|_| format!("set {name}: see README.md"));
    // object_store is built without a choice of cryptography, as incumbent wants it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let bucket = Arc::new(Bucket::open(&variable("BROKER_STATE")?)?);
    let listen = std::env::var("BROKER_LISTEN").unwrap_or_else(|_| "127.0.0.1:0".to_owned());
    let listener = tokio::net::TcpListener::bind(listen).await?;
    let address = listener.local_addr()?.to_string();

    let store = incumbent::open(&variable("INCUMBENT_STORE")?).await?;
    let builder = Node::builder().cluster("broker").address(&address).from_env()?;
    let node = builder.join(store).await?;
    // Leading means nothing but that requests are answered here.
    let _leading = node.lead("broker", |term| async move {
        term.lost().await;
        Ok(())
    })?;

    let app = Router::new()
        .route("/jobs", get(list))
        .route("/jobs/{name}", put(add).delete(finish))
        .route("/claim", post(claim))
        .layer(RouteLayer::to_leader(&node, "broker"))
        .with_state(bucket);
    println!("{} listens at http://{address}", node.name());
    tokio::select! {
        served = axum::serve(listener, app) => served?,
        stop = tokio::signal::ctrl_c() => stop?,
    }
    node.leave().await?;
    Ok(())
}

/// All jobs that are not finished.
async fn list(
    State(bucket): State<Arc<Bucket>>,
    Extension(term): Extension<Term>,
) -> Result<Json<Jobs>, Refused> {
    bucket.look(&term).await.map(Json)
}

/// Adds a job. Said again, it changes nothing, so that a client may try again whatever happened.
async fn add(
    State(bucket): State<Arc<Bucket>>,
    Extension(term): Extension<Term>,
    Path(name): Path<String>,
    body: String,
) -> Result<String, Refused> {
    let changed = bucket.change(&term, |jobs| jobs.add(name, body)).await?;
    Ok(format!("revision {}\n", changed.revision))
}

#[derive(Deserialize)]
struct Claim {
    worker: String,
}

/// Gives a worker a job that nobody has. It may ask again after a crash, and gets the same one.
async fn claim(
    State(bucket): State<Arc<Bucket>>,
    Extension(term): Extension<Term>,
    Query(Claim { worker }): Query<Claim>,
) -> Result<(StatusCode, String), Refused> {
    let claimed = bucket.change(&term, |jobs| jobs.claim(&worker)).await?;
    Ok(match claimed.answer {
        Some((name, body)) => (StatusCode::OK, format!("{name}\n{body}\n")),
        None => (StatusCode::NO_CONTENT, String::new()),
    })
}

/// A worker is done with a job.
async fn finish(
    State(bucket): State<Arc<Bucket>>,
    Extension(term): Extension<Term>,
    Path(name): Path<String>,
) -> Result<String, Refused> {
    let changed = bucket.change(&term, |jobs| jobs.remove(&name)).await?;
    Ok(format!("revision {}\n", changed.revision))
}
