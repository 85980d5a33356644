//! `incumbent serve`: the cluster over HTTP.

mod guard;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use incumbent::{ClusterLead, Node};
use incumbent_serve::{
    Address, Listener, MOST_CLUSTERS, Options, ServeError, Service, agent_check,
};
use tokio::net::TcpListener;
use tokio::sync::watch;

use self::guard::GuardArguments;
use crate::exit::{Code, Failure, Outcome};
use crate::interrupt;
use crate::out::say;
use crate::session::Session;
use crate::{setting, span};

/// What `--help` shows below.
pub(crate) const EXAMPLES: &str = "\
Programs in any language hold leases through it, load balancers ask it who leads, and operators look
and steer: see docs/http.md. It listens on 127.0.0.1:7070 unless you say otherwise.
Beyond loopback it asks for a token or a certificate.

Examples:
  incumbent serve
  incumbent serve --unix /run/incumbent.sock
  incumbent --cluster billing serve --also shop --also mail   # three clusters in one page
  incumbent serve --listen 0.0.0.0:7070 --token-file /etc/incumbent/tokens
  incumbent serve --listen 0.0.0.0:7443 --tls-cert server.crt --tls-key server.key \\
       --client-ca clients.crt --certificate-roles /etc/incumbent/roles
  curl -s localhost:7070/leader/scheduler
  curl -sN --unix-socket /run/incumbent.sock -X POST localhost/v1/leases/scheduler/hold \\
       -H 'content-type: application/json' -d '{\"name\": \"billing-1\"}'";

/// Where it listens unless something else is said.
const USUAL: &str = "127.0.0.1:7070";

/// How, and to whom.
#[derive(Args, Clone, Debug)]
pub(crate) struct ServeArguments {
    /// Listen on this address and port [default: 127.0.0.1:7070, unless --unix is given]
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    listen: Vec<SocketAddr>,
    /// Listen on a Unix socket at this path: its clients' deaths are noticed at once
    #[arg(long, value_name = "PATH")]
    unix: Option<PathBuf>,
    /// The name of this node [default: the host's name]
    #[arg(long, value_name = "NAME", env = "INCUMBENT_NODE", hide_env_values = true)]
    node: Option<String>,
    /// How long others wait for this node, and for clients that name no ttl [default: 15s] [env:
    /// INCUMBENT_TTL]
    #[arg(long, value_name = "SPAN", value_parser = span::ttl)]
    ttl: Option<Duration>,
    /// The lease that `GET /` and --agent-check speak of [default: the cluster's own leader]
    #[arg(long, value_name = "NAME")]
    lease: Option<String>,
    /// Answer HAProxy's agent checks here: up if --lease is held here, otherwise maint
    #[arg(long, value_name = "ADDRESS", requires = "lease", value_parser = address)]
    agent_check: Option<SocketAddr>,
    /// Show and steer this cluster of the same store too; can be given several times
    #[arg(long, value_name = "CLUSTER", value_parser = cluster)]
    also: Vec<String>,
    #[command(flatten)]
    guard: GuardArguments,
    /// The directory for trust files: one on tmpfs [default: /dev/shm]
    #[arg(long, value_name = "PATH")]
    trust_dir: Option<PathBuf>,
}

/// Reads an address and a port. Names aren't looked up: what is listened on is to be said plainly.
fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        let port = text.rsplit(':').next().and_then(|port| port.parse::<u16>().ok());
        let local = text.strip_suffix(&port.map_or_else(String::new, |port| port.to_string()));
        match (port, local) {
            (Some(port), Some("" | ":" | "localhost:")) => format!(
                "write the address too: 127.0.0.1:{port} for this machine alone, 0.0.0.0:{port} for \
                 all that reach it"
            ),
            _ => "write an IP address and a port, such as 127.0.0.1:7070 or [::1]:7070".to_owned(),
        }
    })
}

/// Reads the name of a cluster.
fn cluster(text: &str) -> Result<String, String> {
    incumbent::check_name("cluster", text).map_err(|error| error.to_string())?;
    Ok(text.to_owned())
}

/// Serves until it is told to end, and then until no client may trust any more.
pub(crate) fn run(session: &Session, arguments: &ServeArguments) -> Outcome {
    incumbent_serve::raise_file_limit();
    session.block_on(serve(session, arguments))
}

async fn serve(session: &Session, arguments: &ServeArguments) -> Outcome {
    let service = service(session, arguments).await?;
    let (stop, stopped) = watch::channel(false);
    let mut tasks = Vec::new();
    let mut listeners = Vec::new();
    for address in arguments.addresses() {
        listeners.push(Listener::bind(&address, &service).await?);
    }
    // Nobody is told to come before all doors are there.
    for listener in listeners {
        if let Some(url) = listener.url() {
            session.remark(format!("listening on {url}"));
            if session.json {
                say!("{}", serde_json::json!({ "listening": url }));
            }
        }
        let (service, until) = (service.clone(), until(stopped.clone()));
        let task = async move { listener.serve(&service, until).await };
        tasks.push(tokio::runtime::Handle::current().spawn(task));
    }
    if let (Some(address), Some(lease)) = (arguments.agent_check, &arguments.lease) {
        let listener = TcpListener::bind(address).await.map_err(|error| {
            Failure::new(Code::Unsupervised, format!("can't listen on {address}: {error}"))
        })?;
        session.remark(format!("answering agent checks on {}", listener.local_addr()?));
        let check = agent_check(listener, service.clone(), lease.clone(), until(stopped));
        tasks.push(tokio::runtime::Handle::current().spawn(check));
    }
    let signal = interrupt::received().await;
    session.remark(format!("{signal}: letting clients end; once more ends at once"));
    let ended = tokio::select! {
        () = service.shut_down() => true,
        _ = interrupt::received() => false,
    };
    let _ = stop.send(true);
    if !ended {
        return Err(Failure::new(
            Code::Interrupted,
            "interrupted; clients trust for up to their ttl",
        ));
    }
    for task in tasks {
        let _ = task.await;
    }
    // Others take over what this node itself did, which is little.
    let _ = service.node().leave().await;
    Ok(())
}

async fn until(mut stopped: watch::Receiver<bool>) {
    let _ = stopped.wait_for(|stopped| *stopped).await;
}

async fn service(session: &Session, arguments: &ServeArguments) -> Outcome<Service> {
    let ttl = setting::ttl(arguments.ttl, &session.config)?.value;
    let access = arguments.guard.access(&session.config)?;
    let tls = arguments.guard.tls(&session.config)?;
    guard::remark(session, &access, tls.as_ref());
    // The joined one is one of them.
    if arguments.also.len() >= MOST_CLUSTERS {
        let said = format!(
            "--also is given {} times: {MOST_CLUSTERS} clusters in all are the most. Start another server for the rest",
            arguments.also.len()
        );
        return Err(Failure::usage(said));
    }
    let store = session.place.open().await?;
    let mut builder = Node::builder()
        .cluster(&session.place.cluster)
        .ttl(ttl)
        .hints(session.place.hints.clone())
        .cluster_lead(ClusterLead::IfNeeded);
    let named = arguments.node.clone().filter(|name| !name.is_empty());
    let filed = || session.config.node.as_ref().map(|it| it.value.clone());
    if let Some(name) = named.or_else(filed) {
        builder = builder.name(name);
    }
    let node = builder.join(store).await?;
    let mut options = Options::default();
    options.access = access;
    options.tls = tls;
    options.lease = arguments.lease.clone();
    options.ttl = ttl;
    options.also.clone_from(&arguments.also);
    options.trust_directory = arguments.trust_dir.clone();
    Service::new(node, options).map_err(Failure::usage)
}

impl ServeArguments {
    fn addresses(&self) -> Vec<Address> {
        let mut all: Vec<Address> = self.listen.iter().copied().map(Address::Tcp).collect();
        all.extend(self.unix.iter().cloned().map(Address::Unix));
        if all.is_empty() {
            all.extend(USUAL.parse().map(Address::Tcp));
        }
        all
    }
}

impl From<ServeError> for Failure {
    fn from(error: ServeError) -> Self {
        match error {
            ServeError::Unsafe(_) => Self::usage(error),
            ServeError::Io(..) => Self::new(Code::Unsupervised, error),
        }
    }
}
