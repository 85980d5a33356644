//! Where requests come in: TCP and Unix sockets, with limits.

use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderValue, header};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::io::{AsyncRead, AsyncWrite};
#[cfg(target_os = "linux")]
use tokio::net::UnixListener;
use tokio::net::{TcpListener, TcpStream};
use tower_service::Service as _;

use crate::crowd::{FILES_TCP, FILES_UNIX};
use crate::peer::{Connection, Peer};
use crate::service::Service;
#[cfg(feature = "tls")]
use crate::tls::Tls;

/// How long the headers of a request may take, and a connection may be idle.
const HEADERS: Duration = Duration::from_secs(30);
/// How large they may be.
const HEADER_BYTES: usize = 16 * 1024;
/// How long connections have to end when the server does.
const CLOSING: Duration = Duration::from_secs(2);

/// Where to listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// An address and a port.
    Tcp(SocketAddr),
    /// A path.
    Unix(PathBuf),
}

/// Where requests come in.
pub struct Listener {
    socket: Socket,
}

enum Socket {
    Tcp(TcpListener),
    #[cfg(feature = "tls")]
    Tls(TcpListener, Tls),
    #[cfg(target_os = "linux")]
    Unix(UnixListener, PathBuf, Option<Identity>),
}

/// Which file a socket is: its device and inode, which nobody else gets while it is open.
#[cfg(target_os = "linux")]
type Identity = (u64, u64);

/// Why requests can't be taken.
#[derive(Debug)]
pub enum ServeError {
    /// It isn't safe: says what is missing.
    Unsafe(String),
    /// The system doesn't allow it.
    Io(Address, std::io::Error),
}

impl Listener {
    /// Listens. Elsewhere than on loopback and on Unix sockets only if a token or a certificate is
    /// needed.
    ///
    /// # Errors
    /// If that isn't so, or the system doesn't allow it.
    pub async fn bind(address: &Address, service: &Service) -> Result<Self, ServeError> {
        let wrong = |error| ServeError::Io(address.clone(), error);
        match address {
            Address::Tcp(at) if !at.ip().is_loopback() && !service.is_guarded() => {
                Err(ServeError::Unsafe(format!(
                    "{at} can be reached from elsewhere, and nothing says who may: give a token file \
                     (--token-file), ask for certificates (--client-ca, with --tls-cert and --tls-key), \
                     or listen on 127.0.0.1"
                )))
            }
            Address::Tcp(at) => {
                let listener = TcpListener::bind(at).await.map_err(wrong)?;
                #[cfg(feature = "tls")]
                if let Some(tls) = service.tls() {
                    return Ok(Self::new(Socket::Tls(listener, tls.clone())));
                }
                Ok(Self::new(Socket::Tcp(listener)))
            }
            Address::Unix(path) => Self::unix(path).map_err(wrong),
        }
    }

    fn new(socket: Socket) -> Self {
        Self { socket }
    }

    #[cfg(target_os = "linux")]
    fn unix(path: &std::path::Path) -> std::io::Result<Self> {
        use std::os::unix::fs::{FileTypeExt, PermissionsExt};

        // A socket that nobody listens on is left from a process that was killed. Nothing else is removed.
        let is_socket = std::fs::symlink_metadata(path).is_ok_and(|it| it.file_type().is_socket());
        let refused = |error: std::io::Error| error.kind() == std::io::ErrorKind::ConnectionRefused;
        if is_socket && std::os::unix::net::UnixStream::connect(path).is_err_and(refused) {
            std::fs::remove_file(path)?;
        }
        let listener = UnixListener::bind(path)?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o660))?;
        Ok(Self::new(Socket::Unix(listener, path.to_owned(), identity(path))))
    }

    #[cfg(not(target_os = "linux"))]
    fn unix(_: &std::path::Path) -> std::io::Result<Self> {
        Err(std::io::Error::other("Unix sockets are served on Linux alone"))
    }

    /// Where it listens: the port that the system chose, if it was to.
    #[must_use]
    pub fn address(&self) -> Option<Address> {
        match &self.socket {
            Socket::Tcp(listener) => listener.local_addr().ok().map(Address::Tcp),
            #[cfg(feature = "tls")]
            Socket::Tls(listener, _) => listener.local_addr().ok().map(Address::Tcp),
            #[cfg(target_os = "linux")]
            Socket::Unix(_, path, _) => Some(Address::Unix(path.clone())),
        }
    }

    /// The same as clients write it.
    #[must_use]
    pub fn url(&self) -> Option<String> {
        let address = self.address()?;
        #[cfg(feature = "tls")]
        if let (Socket::Tls(..), Address::Tcp(at)) = (&self.socket, &address) {
            return Some(format!("https://{at}"));
        }
        Some(address.to_string())
    }

    /// Takes requests until `stop` is ready; then lets those end that are under way.
    pub async fn serve(self, service: &Service, stop: impl Future<Output = ()>) {
        let (router, graceful) = (service.router(), GracefulShutdown::new());
        let files = if self.is_unix() { FILES_UNIX } else { FILES_TCP };
        let mut stop = std::pin::pin!(stop);
        loop {
            let accepted = tokio::select! {
                () = &mut stop => break,
                accepted = self.accept() => accepted,
            };
            let (caller, peer) = match accepted {
                Ok(accepted) => accepted,
                // That connection is gone, which says nothing about the next.
                Err(error) if is_of_one(&error) => continue,
                Err(error) => {
                    // No more files, for instance: that passes.
                    service.crowd().refused(&error.to_string());
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            };
            let Some(seat) = service.crowd().enter(files) else { continue };
            let (router, watcher) = (router.clone(), graceful.watcher());
            service.spawn(async move {
                if let Some((stream, peer)) = caller.meet(peer).await {
                    converse(stream, peer, router, watcher).await;
                }
                drop(seat);
            });
        }
        let _ = tokio::time::timeout(CLOSING, graceful.shutdown()).await;
    }

    fn is_unix(&self) -> bool {
        match self.socket {
            Socket::Tcp(_) => false,
            #[cfg(feature = "tls")]
            Socket::Tls(..) => false,
            #[cfg(target_os = "linux")]
            Socket::Unix(..) => true,
        }
    }

    async fn accept(&self) -> std::io::Result<(Caller, Peer)> {
        match &self.socket {
            Socket::Tcp(listener) => {
                let (stream, peer) = accept_tcp(listener).await?;
                Ok((Caller::Plain(Box::new(stream)), peer))
            }
            #[cfg(feature = "tls")]
            Socket::Tls(listener, tls) => {
                let (stream, peer) = accept_tcp(listener).await?;
                Ok((Caller::Tls(stream, tls.clone()), peer))
            }
            #[cfg(target_os = "linux")]
            Socket::Unix(listener, ..) => {
                let (stream, _) = listener.accept().await?;
                let peer = Peer::unix(&stream)?;
                Ok((Caller::Plain(Box::new(stream)), peer))
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        #[cfg(target_os = "linux")]
        if let Socket::Unix(_, path, own) = &self.socket {
            // Somebody else may listen there by now.
            if own.is_some() && identity(path) == *own {
                let _ = std::fs::remove_file(path);
            }
        }
    }
}

#[cfg(target_os = "linux")]
fn identity(path: &std::path::Path) -> Option<Identity> {
    use std::os::unix::fs::MetadataExt;
    std::fs::symlink_metadata(path).ok().map(|it| (it.dev(), it.ino()))
}

async fn accept_tcp(listener: &TcpListener) -> std::io::Result<(TcpStream, Peer)> {
    // Asked for its address, a connection that was reset already would fail (O62).
    let (stream, from) = listener.accept().await?;
    let _ = stream.set_nodelay(true);
    Ok((stream, Peer::tcp(from)))
}

/// Whether an error is that of one connection, which ended before it was accepted.
fn is_of_one(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{
        ConnectionAborted, ConnectionReset, HostUnreachable, NetworkDown, NetworkUnreachable,
        NotConnected,
    };
    matches!(
        error.kind(),
        ConnectionAborted
            | ConnectionReset
            | HostUnreachable
            | NetworkDown
            | NetworkUnreachable
            | NotConnected
    )
}

/// Somebody who has connected.
enum Caller {
    Plain(Box<dyn Both>),
    /// Nothing is known of it before both sides have agreed on keys.
    #[cfg(feature = "tls")]
    Tls(TcpStream, Tls),
}

impl Caller {
    /// Its requests, and who it is; nothing if it isn't let in.
    async fn meet(self, peer: Peer) -> Option<(Box<dyn Both>, Peer)> {
        match self {
            Self::Plain(stream) => Some((stream, peer)),
            #[cfg(feature = "tls")]
            Self::Tls(stream, tls) => match tls.accept(stream).await {
                Ok((stream, certified)) => {
                    Some((Box::new(stream), peer.with_certificate(certified)))
                }
                Err(error) => {
                    let from = peer.shown();
                    tracing::debug!(from, %error, action = "tls", "a handshake failed");
                    None
                }
            },
        }
    }
}

/// A connection of any kind.
trait Both: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Both for S {}

async fn converse(
    stream: Box<dyn Both>,
    peer: Peer,
    router: Router,
    watcher: hyper_util::server::graceful::Watcher,
) {
    let peer = Arc::new(peer);
    let stream = TokioIo::new(Connection::new(stream, Arc::clone(&peer), HEADERS));
    let answer = service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(Arc::clone(&peer));
        name_host(&mut request);
        let mut router = router.clone();
        async move { router.call(request.map(Body::new)).await }
    });
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS)
        .max_buf_size(HEADER_BYTES)
        .keep_alive(true);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(128)
        .max_header_list_size(16 * 1024)
        .keep_alive_interval(Duration::from_secs(30));
    let conversation = watcher.watch(builder.serve_connection(stream, answer).into_owned());
    // How it ended is noted by the connection itself.
    let _ = conversation.await;
}

/// HTTP/2 names the host elsewhere. If it is named in both places, and not the same, there are two.
fn name_host(request: &mut hyper::Request<Incoming>) {
    let named = request.uri().authority().and_then(|it| HeaderValue::from_str(it.as_str()).ok());
    let Some(named) = named else { return };
    if request.headers().get(header::HOST) != Some(&named) {
        request.headers_mut().append(header::HOST, named);
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => write!(f, "http://{address}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsafe(said) => f.write_str(said),
            Self::Io(address, error) => {
                write!(
                    f,
                    "can't listen on {address}: {error}. Choose another with --listen or --unix"
                )
            }
        }
    }
}

impl std::error::Error for ServeError {}
