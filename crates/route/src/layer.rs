use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use http::request::Parts;
use incumbent::{Node, Owners};
use tower_layer::Layer;

use crate::KeyRouter;
use crate::elsewhere::{Forward, Redirect, Refuse};
use crate::service::Route;
use crate::target::{ToLeader, ToOwner};

/// What is known is used while it is no older than this. A leader that stays is looked at more often
/// than that.
const NO_OLDER: Duration = Duration::from_secs(10);

/// Lets requests be answered by the leader of a lease or the owner of a key; see the
/// [crate](crate).
#[derive(Clone, Debug)]
pub struct RouteLayer<T, E = Redirect> {
    pub(crate) target: T,
    pub(crate) elsewhere: E,
    pub(crate) settings: Settings,
}

#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) no_older: Duration,
    pub(crate) retry_after: Duration,
    pub(crate) scheme: Arc<str>,
}

impl RouteLayer<ToLeader> {
    /// To the leader of a lease that this node stands for, or
    /// [follows](incumbent::Candidacy::follow_only). Others are redirected there.
    #[must_use]
    pub fn to_leader(node: &Node, lease: &str) -> Self {
        Self::new(ToLeader { node: node.clone(), lease: lease.into(), seen: Arc::default() })
    }
}

impl RouteLayer<ToOwner> {
    /// To whoever runs the duty that the request's key belongs to. A request without a key is
    /// answered by whoever gets it.
    ///
    /// Take the owners from [`Node::owners`] on a node that runs such duties, and from
    /// [`Cluster::owners`](incumbent::Cluster::owners) on a gateway that runs none.
    #[must_use]
    pub fn to_owner(
        owners: Owners,
        keys: KeyRouter,
        key: impl Fn(&Parts) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        Self::new(ToOwner { owners, keys: Arc::new(keys), key: Arc::new(key) })
    }
}

impl<T> RouteLayer<T> {
    /// To whomever the target names. Others are redirected there.
    #[must_use]
    pub fn new(target: T) -> Self {
        let settings = Settings {
            no_older: NO_OLDER,
            retry_after: Duration::from_secs(1),
            scheme: "http".into(),
        };
        Self { target, elsewhere: Redirect, settings }
    }
}

impl<T, E> RouteLayer<T, E> {
    /// Sends requests for others on, instead of redirecting them, and brings back the answer. Any
    /// client will do: what it gets is the request with the URL that it is to be sent to. It must
    /// neither retry nor follow redirects.
    ///
    /// A request that can't be sent, or isn't answered, gets a 502: what became of it is unknown.
    #[must_use]
    pub fn forward<B, F, Fut>(self, send: F) -> RouteLayer<T, Forward<F>>
    where
        F: Fn(Request<B>) -> Fut,
        Fut: Future,
    {
        let Self { target, settings, .. } = self;
        RouteLayer { target, elsewhere: Forward(send), settings }
    }

    /// Answers requests for others with 503 and `Retry-After`: for nodes behind a load balancer that
    /// tries another, or takes the leader for the only one that is ready.
    #[must_use]
    pub fn refuse(self) -> RouteLayer<T, Refuse> {
        let Self { target, settings, .. } = self;
        RouteLayer { target, elsewhere: Refuse, settings }
    }

    /// Sends nobody to a leader that was last heard of longer ago than this; 10 s unless said
    /// otherwise.
    #[must_use]
    pub fn no_older_than(mut self, age: Duration) -> Self {
        self.settings.no_older = age;
        self
    }

    /// What `Retry-After` says, in whole seconds; one unless said otherwise.
    #[must_use]
    pub fn retry_after(mut self, pause: Duration) -> Self {
        self.settings.retry_after = pause;
        self
    }

    /// The scheme of addresses that name none (`10.0.0.7:8080`); `http` unless said otherwise.
    #[must_use]
    pub fn scheme(mut self, scheme: &str) -> Self {
        self.settings.scheme = scheme.into();
        self
    }
}

impl<S, T: Clone, E: Clone> Layer<S> for RouteLayer<T, E> {
    type Service = Route<S, T, E>;

    fn layer(&self, inner: S) -> Self::Service {
        Route { inner, layer: self.clone() }
    }
}
