//! The clusters that can be looked at and steered here: the one that the node has joined, and others of its store.
//!
//! A store can't say which clusters it has: names are hashed where they don't fit, and rights may end at one
//! cluster. So whoever starts the server names them.

use std::io;
use std::sync::Arc;

use axum::http::StatusCode;
use incumbent::{Cluster, Node};

use crate::call::{Answer, Call, json};
use crate::documents::{ClusterStateDocument, ClustersDocument};
use crate::problem::{NOT_FOUND, Problem};
use crate::verdict::Level;
use crate::watched::Watched;

/// So many clusters can be looked at through one server at most.
pub const MOST_CLUSTERS: usize = 64;

/// All of them.
#[derive(Debug)]
pub(crate) struct Clusters {
    joined: Arc<Watched>,
    others: Vec<Arc<Watched>>,
}

impl Clusters {
    /// That of the node, and those of these names.
    pub(crate) fn new(node: &Node, also: &[String], run: &str) -> io::Result<Self> {
        let joined = node.cluster();
        let mut others: Vec<Arc<Watched>> = Vec::new();
        for name in also {
            let known = others.iter().any(|other| other.cluster.name() == name);
            if known || joined.name() == name {
                continue;
            }
            let refuse = |said: String| io::Error::new(io::ErrorKind::InvalidInput, said);
            if others.len() + 1 >= MOST_CLUSTERS {
                let said = format!("the limit is {MOST_CLUSTERS} clusters: start another server");
                return Err(refuse(said));
            }
            let cluster =
                Cluster::new(joined.store(), name).map_err(|it| refuse(it.to_string()))?;
            let run = format!("{run}x{}", others.len() + 1);
            others.push(Arc::new(Watched::new(cluster, &run)));
        }
        Ok(Self { joined: Arc::new(Watched::new(joined.clone(), run)), others })
    }

    /// The one that the node has joined.
    pub(crate) fn joined(&self) -> &Arc<Watched> {
        &self.joined
    }

    /// All, and first the one that the node has joined.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Watched>> {
        std::iter::once(&self.joined).chain(&self.others)
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.all().map(|watched| watched.cluster.name().to_owned()).collect()
    }

    /// The one that a request names; the joined one if it names none.
    pub(crate) fn find(&self, name: Option<&str>) -> Result<&Arc<Watched>, Problem> {
        let Some(name) = name else { return Ok(&self.joined) };
        self.all().find(|watched| watched.cluster.name() == name).ok_or_else(|| {
            let (short, names) = (name.chars().take(64).collect::<String>(), self.names());
            let said = format!(
                "this server shows no cluster {short:?}, but: {}. `incumbent serve --also NAME` shows another",
                names.join(", ")
            );
            Problem::new(&NOT_FOUND, said).with("clusters", names)
        })
    }
}

/// `GET /v1/clusters`.
pub(crate) async fn show(call: Call) -> Answer {
    call.know(&[])?;
    let clusters = call.service.clusters();
    let (mut shown, mut away) = (Vec::new(), None);
    // One after the other: it isn't urgent, and no more than one reading at a time burdens the store.
    for watched in clusters.all() {
        let verdict = match away.clone() {
            // It is the same store for all, and each would be waited for.
            Some(away) => watched.known_verdict().unwrap_or(away),
            None => watched.verdict().await,
        };
        if verdict.level == Level::Unknown {
            away = Some(verdict.clone());
        }
        shown.push(ClusterStateDocument {
            cluster: watched.cluster.name().to_owned(),
            joined: Arc::ptr_eq(watched, clusters.joined()),
            state: verdict.level.as_str(),
            says: verdict.says,
        });
    }
    Ok(json(StatusCode::OK, &ClustersDocument { clusters: shown }))
}
