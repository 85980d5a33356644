//! Opens connections, and finds out what is at the other end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use async_nats::{Client, ConnectOptions, Event, ServerError};
use incumbent_core::store::StoreError;
use incumbent_store_common::{Connect, chance, first_of};
use rustls::ClientConfig;
use sha2::{Digest as _, Sha256};

use crate::bucket;
use crate::error::{denied, unconnected};
use crate::facts::Facts;
use crate::keys;
use crate::options::NatsOptions;
use crate::session::{Line, Session, is_denial};

/// How often the driver tries a connection on which nothing comes in. It gives up after three.
const PING: Duration = Duration::from_secs(5);

/// How long the driver waits before it connects again by itself. By then it has been dropped.
const TOO_LATE: Duration = Duration::from_secs(1);

/// What all connections of a store share.
pub(crate) struct Shared {
    pub(crate) options: Arc<NatsOptions>,
    /// When the bucket was made, as the newest connection found it.
    epoch: Arc<Mutex<Arc<str>>>,
    /// Whether JetStream answered once.
    proven: AtomicBool,
    /// Made once where no files are named that could change.
    encryption: OnceLock<ClientConfig>,
}

/// Makes connections for one purpose.
pub(crate) struct NatsConnect {
    pub(crate) shared: Arc<Shared>,
    /// For people who look at the server.
    pub(crate) purpose: &'static str,
}

impl Connect for NatsConnect {
    type Session = Session;

    async fn connect(&self) -> Result<Session, StoreError> {
        self.open().await.map(|(session, _)| session)
    }

    fn server(&self) -> String {
        self.shared.options.shown()
    }
}

impl Shared {
    pub(crate) fn new(options: NatsOptions) -> Self {
        let epoch = Arc::new(Mutex::new(Arc::from("")));
        let (proven, encryption) = (AtomicBool::new(false), OnceLock::new());
        Self { options: Arc::new(options), epoch, proven, encryption }
    }

    /// Why the bucket couldn't be looked at, if more is known than that.
    fn explained(&self, line: &Line, session: &Session, error: StoreError) -> StoreError {
        if let Some(why) = line.why_lost()
            && is_denial(&why)
        {
            // What the error says may be more to the point, such as how to make the bucket.
            return if is_denial(&error.message) && error.message.contains("Run: ") {
                error
            } else {
                denied(&self.options, &why)
            };
        }
        let jetstream = session.client().is_some_and(|client| client.server_info().jetstream);
        if error.message.contains("nobody answers") && !jetstream && !self.is_proven() {
            return bucket::without_jetstream(&self.options);
        }
        error
    }

    /// Once JetStream was there, its absence is taken for an outage.
    fn is_proven(&self) -> bool {
        self.proven.load(Ordering::SeqCst)
    }

    /// Given even where the URL doesn't ask for it, because the server may.
    fn encryption(&self) -> Result<ClientConfig, StoreError> {
        let files = &self.options.files;
        if !files.are_none() {
            return files.config();
        }
        if let Some(config) = self.encryption.get() {
            return Ok(config.clone());
        }
        let config = files.config()?;
        Ok(self.encryption.get_or_init(|| config).clone())
    }
}

impl NatsConnect {
    /// A connection that is ready to be used, or why there is none.
    pub(crate) async fn open(&self) -> Result<(Session, Facts), StoreError> {
        let Shared { options, epoch, proven, .. } = &*self.shared;
        let line = self.line().await?;
        let session = Session::new(options, epoch, line.clone());
        let info = match bucket::prepare(&session, options).await {
            Ok(info) => info,
            Err(error) => return Err(self.shared.explained(&line, &session, error)),
        };
        proven.store(true, Ordering::SeqCst);
        let server = session.client().map(|client| client.server_info()).unwrap_or_default();
        let facts = Facts {
            version: server.version,
            replicas: info.config.num_replicas,
            clustered: server.cluster.is_some(),
            max_payload: server.max_payload,
        };
        bucket::check_room(options, facts.max_payload)?;
        let digest = Sha256::digest(info.created.as_bytes());
        let epoch: String = digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
        Ok((session.found(epoch.into()), facts))
    }

    /// The servers are tried from a random one on, so that many clients spread over them.
    async fn line(&self) -> Result<Line, StoreError> {
        let servers = &self.shared.options.servers;
        let start = chance(servers.len());
        let servers = servers.iter().cycle().skip(start).take(servers.len());
        first_of(servers, |server| self.line_to(server)).await
    }

    async fn line_to(&self, server: &str) -> Result<Line, StoreError> {
        let line = Line::new();
        line.attach(self.dial(server, &line).await?);
        Ok(line)
    }

    async fn dial(&self, server: &str, line: &Line) -> Result<Client, StoreError> {
        let options = &self.shared.options;
        let opened = Arc::new(AtomicBool::new(false));
        let (late, watched) = (Arc::clone(&opened), line.clone());
        let hint = keys::hint(&options.bucket, "");
        let mut driver = ConnectOptions::new()
            .name(format!("incumbent {}", self.purpose))
            .custom_inbox_prefix(&options.inbox)
            .connection_timeout(options.connect_timeout)
            .request_timeout(None)
            .ping_interval(PING)
            .require_tls(options.tls)
            .ignore_discovered_servers()
            .max_reconnects(1)
            .reconnect_delay_callback(move |_| {
                if late.load(Ordering::SeqCst) { TOO_LATE } else { Duration::ZERO }
            })
            .event_callback(move |event| {
                note(&watched, &hint, event);
                std::future::ready(())
            });
        if options.tls_first {
            driver = driver.tls_first();
        }
        driver = driver.tls_client_config(self.shared.encryption()?);
        let driver = options.login.fill(driver)?;
        let scheme = if options.tls { "tls" } else { "nats" };
        let connected = driver.connect(format!("{scheme}://{server}")).await;
        opened.store(true, Ordering::SeqCst);
        connected.map_err(|error| unconnected(options, server, &error))
    }
}

/// Gives a line up when the driver says that its connection is lost, or that a right is missing:
/// the server drops such a message and nothing else would ever be heard of it.
fn note(line: &Line, hint: &str, event: Event) {
    match event {
        Event::Disconnected | Event::Closed => line.end("the connection was lost"),
        // Without the right to give hints only latency is lost.
        Event::ServerError(ServerError::Other(text))
            if is_denial(&text) && !(text.contains(hint) && text.contains("Publish")) =>
        {
            line.end(&text);
        }
        _ => {}
    }
}
