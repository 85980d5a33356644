//! The page beside the live view, so that one can watch both while killing leaders.

use incumbent::{ClusterLead, Node};
use incumbent_serve::{Address, Listener, Options, Service};
use tokio::sync::oneshot;

use super::stage::Stage;

/// Where the page usually is. If somebody else is there, the system chooses a port.
const USUAL: u16 = 7070;

/// A page that is served until this is closed.
pub(crate) struct Page {
    /// Where it is.
    pub(crate) address: String,
    node: Node,
    stop: oneshot::Sender<()>,
}

impl Page {
    /// Serves the cluster of a stage on loopback. Nothing if that can't be: the demo goes on.
    pub(crate) async fn open(stage: &Stage) -> Option<Self> {
        // It only looks on, so it never leads the cluster, and the demo's nodes do.
        let builder = Node::builder().cluster(stage.cluster.name()).name("page");
        let builder = builder.ttl(stage.recipe.ttl).cluster_lead(ClusterLead::Never);
        let node = builder.join(stage.cluster.store()).await.ok()?;
        let service = Service::new(node.clone(), Options::default()).ok()?;
        let at = |port: u16| Address::Tcp(([127, 0, 0, 1], port).into());
        let listener = match Listener::bind(&at(USUAL), &service).await {
            Ok(listener) => listener,
            Err(_) => Listener::bind(&at(0), &service).await.ok()?,
        };
        let address = listener.address()?.to_string();
        let (stop, stopped) = oneshot::channel::<()>();
        let task = async move {
            let stopped = async {
                let _ = stopped.await;
            };
            listener.serve(&service, stopped).await;
        };
        tokio::runtime::Handle::current().spawn(task);
        Some(Self { address, node, stop })
    }

    /// Ends it, before its store is gone.
    pub(crate) async fn close(self) {
        let _ = self.stop.send(());
        let _ = self.node.leave().await;
    }
}
