//! Who is at the other end of a connection, whether it reads, and how the connection ended.

use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;

use crate::certified::Certified;

#[cfg(target_os = "linux")]
use process::{Process, Socket};

/// The other end of a connection to this server's own listeners.
#[derive(Debug)]
pub(crate) struct Peer {
    from: Origin,
    certified: Option<Certified>,
    ended: AtomicU8,
    news: Notify,
    #[cfg(target_os = "linux")]
    socket: Socket,
    #[cfg(target_os = "linux")]
    process: Option<Process>,
}

/// Where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Tcp(std::net::SocketAddr),
    Unix { user: u32, process: Option<i32> },
}

/// Whom limits are counted for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Party {
    Address(IpAddr),
    User(u32),
    Unknown,
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Ended {
    /// It hasn't, or nobody knows how.
    No = 0,
    /// The peer closed it.
    Closed = 1,
    /// The peer's kernel reset it, or somebody in between did.
    Reset = 2,
    /// Otherwise: a time-out, an unreachable network.
    Broken = 3,
}

impl Peer {
    /// At the other end of a TCP connection.
    pub(crate) fn tcp(from: std::net::SocketAddr) -> Self {
        Self {
            from: Origin::Tcp(from),
            certified: None,
            ended: AtomicU8::new(Ended::No as u8),
            news: Notify::new(),
            #[cfg(target_os = "linux")]
            socket: Socket::none(),
            #[cfg(target_os = "linux")]
            process: None,
        }
    }

    /// At the other end of a Unix socket.
    #[cfg(target_os = "linux")]
    pub(crate) fn unix(stream: &tokio::net::UnixStream) -> io::Result<Self> {
        let credentials = stream.peer_cred()?;
        let process = credentials.pid();
        Ok(Self {
            from: Origin::Unix { user: credentials.uid(), process },
            certified: None,
            ended: AtomicU8::new(Ended::No as u8),
            news: Notify::new(),
            socket: Socket::of(stream)?,
            process: process.and_then(Process::open),
        })
    }

    /// With the certificate that it has shown.
    #[cfg(feature = "tls")]
    pub(crate) fn with_certificate(mut self, certified: Option<Certified>) -> Self {
        self.certified = certified;
        self
    }

    /// Who it is by its certificate.
    pub(crate) fn certified(&self) -> Option<&Certified> {
        self.certified.as_ref()
    }

    /// Whom limits are counted for.
    pub(crate) fn party(&self) -> Party {
        match &self.from {
            Origin::Tcp(address) => Party::Address(address.ip()),
            Origin::Unix { user, .. } => Party::User(*user),
        }
    }

    pub(crate) fn is_unix(&self) -> bool {
        matches!(self.from, Origin::Unix { .. })
    }

    /// For people.
    pub(crate) fn shown(&self) -> String {
        match &self.from {
            Origin::Tcp(address) => address.to_string(),
            Origin::Unix { user, process: Some(process) } => {
                format!("unix socket, user {user}, process {process}")
            }
            Origin::Unix { user, process: None } => format!("unix socket, user {user}"),
        }
    }

    /// Whether it has read all that was sent to it. Only a Unix socket can tell: on TCP it is the
    /// peer's kernel that acknowledges.
    pub(crate) fn has_read_all(&self) -> bool {
        #[cfg(target_os = "linux")]
        return self.is_unix() && self.socket.unread() == Some(0);
        #[cfg(not(target_os = "linux"))]
        false
    }

    /// Waits until the peer itself has closed the connection: by an end that on this kind of
    /// connection nobody else can cause, if the client promised that it is direct.
    pub(crate) async fn closed(&self) {
        let local = match &self.from {
            Origin::Tcp(address) => address.ip().is_loopback(),
            Origin::Unix { .. } => true,
        };
        loop {
            let news = self.news.notified();
            let ended = self.ended.load(Ordering::Acquire);
            // From afar a reset may be that of a firewall which lost its patience.
            if ended == Ended::Closed as u8 || (local && ended == Ended::Reset as u8) {
                return;
            }
            news.await;
        }
    }

    /// Waits until it is proven that the client is dead: the connection is closed, by all processes
    /// that had it, and so is the process that made it. Never ready where nothing proves that.
    pub(crate) async fn dead(&self) {
        #[cfg(target_os = "linux")]
        if let Some(process) = &self.process {
            process.ended().await;
            // A process closes all that it has before its end is told. Requests that it has sent ahead would
            // keep this from being read; if others have the connection too, it isn't so yet.
            if !self.socket.is_hung_up() {
                self.closed().await;
            }
            return;
        }
        std::future::pending::<()>().await;
    }

    fn end(&self, ended: Ended) {
        let (no, order) = (Ended::No as u8, Ordering::AcqRel);
        let first = self.ended.compare_exchange(no, ended as u8, order, Ordering::Acquire);
        if first.is_ok() {
            self.news.notify_waiters();
        }
    }

    /// Nothing more comes. A Unix socket tells whether it was closed, by all who had it, or only one of
    /// its ways: then somebody may still be there. On TCP the two look the same.
    fn finished(&self) -> Ended {
        #[cfg(target_os = "linux")]
        if self.is_unix() && !self.socket.is_hung_up() {
            return Ended::Broken;
        }
        Ended::Closed
    }

    /// An error of the connection.
    fn failed(&self, error: &io::Error) {
        self.end(match error.kind() {
            io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe if self.is_unix() => {
                self.finished()
            }
            io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => Ended::Reset,
            // An encrypted connection that was closed without a farewell, as that of a process that was killed is.
            io::ErrorKind::UnexpectedEof => self.finished(),
            _ => Ended::Broken,
        });
    }
}

/// A connection that notes how it ended.
pub(crate) struct Connection<S> {
    stream: S,
    peer: std::sync::Arc<Peer>,
    /// Until it is known which protocol is spoken, nobody else watches the time.
    opening: Option<Opening>,
    /// How long it may take until more of what is sent fits.
    patience: Duration,
    /// Until when it may take now: set while nothing more fits.
    stuck: Option<Pin<Box<tokio::time::Sleep>>>,
}

/// What HTTP/2 begins with.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

struct Opening {
    until: Pin<Box<tokio::time::Sleep>>,
    /// What is left of the preface.
    left: &'static [u8],
}

impl Opening {
    /// Whether it is still open what is spoken, after these bytes.
    fn goes_on(&mut self, bytes: &[u8]) -> bool {
        match self.left.strip_prefix(bytes) {
            Some(left) => {
                self.left = left;
                !left.is_empty()
            }
            None => false,
        }
    }
}

impl<S> Connection<S> {
    /// One whose peer says within this time what it speaks, and takes at least something of what is sent
    /// within each such time.
    pub(crate) fn new(stream: S, peer: std::sync::Arc<Peer>, patience: Duration) -> Self {
        let until = Box::pin(tokio::time::sleep(patience));
        let opening = Some(Opening { until, left: PREFACE });
        Self { stream, peer, opening, patience, stuck: None }
    }

    /// Gives up a peer that takes nothing for too long: what it doesn't read takes room here.
    fn watch<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        match &written {
            Poll::Ready(Ok(_)) => self.stuck = None,
            Poll::Ready(Err(error)) => self.peer.failed(error),
            Poll::Pending => {
                let patience = self.patience;
                let until = || Box::pin(tokio::time::sleep(patience));
                if self.stuck.get_or_insert_with(until).as_mut().poll(context).is_ready() {
                    let error = io::Error::from(io::ErrorKind::TimedOut);
                    self.peer.failed(&error);
                    return Poll::Ready(Err(error));
                }
            }
        }
        written
    }
}

impl<S> Drop for Connection<S> {
    fn drop(&mut self) {
        // Whoever still knows this peer must not keep its socket open.
        #[cfg(target_os = "linux")]
        self.peer.socket.close();
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Connection<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let room = buffer.remaining() > 0;
        let mut read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if let Some(opening) = &mut self.opening {
            let bytes = buffer.filled().get(before..).unwrap_or_default();
            if !opening.goes_on(bytes) {
                self.opening = None;
            } else if read.is_pending() && opening.until.as_mut().poll(context).is_ready() {
                read = Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
        }
        match &read {
            Poll::Ready(Ok(())) if room && buffer.filled().len() == before => {
                self.peer.end(self.peer.finished());
            }
            Poll::Ready(Err(error)) => self.peer.failed(error),
            Poll::Ready(Ok(())) | Poll::Pending => {}
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Connection<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch(context, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.watch(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(target_os = "linux")]
mod process {
    use std::io;
    use std::os::fd::{AsFd, OwnedFd};
    use std::sync::{Mutex, PoisonError};

    use rustix::process::{Pid, PidfdFlags, pidfd_open};
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;

    /// The process that made a connection.
    #[derive(Debug)]
    pub(super) enum Process {
        /// Seen to its end by this.
        Watched(AsyncFd<OwnedFd>),
        /// It was gone before it could be watched.
        Gone,
    }

    impl Process {
        /// An id is given to another process only after the first is dead, so that the end of
        /// whatever has this one proves the end of the one that connected. Nothing can be said of
        /// a process that has no id here, being in another namespace.
        pub(super) fn open(id: i32) -> Option<Self> {
            let id = Pid::from_raw(id).filter(|_| id > 0)?;
            match pidfd_open(id, PidfdFlags::empty()) {
                Ok(file) => watched(file).map(Self::Watched),
                Err(rustix::io::Errno::SRCH) => Some(Self::Gone),
                Err(_) => None,
            }
        }

        /// Waits for its end; for ever if that can't be told.
        pub(super) async fn ended(&self) {
            match self {
                Self::Gone => {}
                Self::Watched(file) => {
                    if file.readable().await.is_err() {
                        std::future::pending::<()>().await;
                    }
                }
            }
        }
    }

    #[allow(unsafe_code, reason = "a descriptor that stays open can't be promised without")]
    fn watched(file: OwnedFd) -> Option<AsyncFd<OwnedFd>> {
        // SAFETY: the descriptor is owned by what is made here, and closed only after that is gone.
        unsafe { AsyncFd::register_with_interest(file, Interest::READABLE) }.ok()
    }

    /// A second handle to the socket, to ask it how much isn't read yet.
    #[derive(Debug)]
    pub(super) struct Socket(Mutex<Option<OwnedFd>>);

    impl Socket {
        pub(super) fn none() -> Self {
            Self(Mutex::new(None))
        }

        pub(super) fn of(stream: &tokio::net::UnixStream) -> io::Result<Self> {
            Ok(Self(Mutex::new(Some(stream.as_fd().try_clone_to_owned()?))))
        }

        pub(super) fn close(&self) {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        }

        /// How many bytes the peer hasn't read; nothing if the connection is over.
        pub(super) fn unread(&self) -> Option<i32> {
            let socket = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            unread(socket.as_ref()?)
        }
    }

    impl Socket {
        /// Whether both ways of it are closed.
        pub(super) fn is_hung_up(&self) -> bool {
            use rustix::event::{PollFd, PollFlags, Timespec, poll};
            let socket = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(socket) = socket.as_ref() else { return false };
            let mut asked = [PollFd::new(socket, PollFlags::empty())];
            let now = Timespec { tv_sec: 0, tv_nsec: 0 };
            poll(&mut asked, Some(&now)).is_ok()
                && asked.iter().any(|it| it.revents().contains(PollFlags::HUP))
        }
    }

    #[allow(unsafe_code, reason = "an ioctl that has no safe form")]
    fn unread(socket: &OwnedFd) -> Option<i32> {
        /// SIOCOUTQ.
        const UNREAD: rustix::ioctl::Opcode = 0x5411;
        // SAFETY: on a socket this ioctl writes one integer, and reads nothing.
        unsafe {
            let question = rustix::ioctl::Getter::<UNREAD, i32>::new();
            rustix::ioctl::ioctl(socket, question).ok()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn who_never_says_what_it_speaks_is_not_waited_for() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        for (sent, is_cut) in [("", true), ("PRI * HTTP", true), ("G", false), ("PRX", false)] {
            let mut client =
                tokio::net::TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            let (stream, _) = listener.accept().await.unwrap();
            let peer = Arc::new(Peer::tcp(stream.peer_addr().unwrap()));
            let mut server = Connection::new(stream, peer, Duration::from_millis(50));
            client.write_all(sent.as_bytes()).await.unwrap();
            let mut bytes = vec![0; sent.len()];
            server.read_exact(&mut bytes).await.unwrap();
            let next = server.read_u8();
            // Who has said it has as much time as its protocol gives it.
            let patience = Duration::from_secs(if is_cut { 60 } else { 1 });
            let waited = tokio::time::timeout(patience, next).await;
            let cut = waited.ok().map(|read| read.unwrap_err().kind());
            assert_eq!(cut, is_cut.then_some(io::ErrorKind::TimedOut), "{sent:?}");
        }
    }

    #[tokio::test]
    async fn who_takes_nothing_of_what_is_sent_is_given_up() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = tokio::net::TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, from) = listener.accept().await.unwrap();
        let peer = Arc::new(Peer::tcp(from));
        let mut server = Connection::new(stream, Arc::clone(&peer), Duration::from_millis(200));
        let bytes = vec![0; 1 << 20];
        let sending = async {
            loop {
                if let Err(error) = server.write_all(&bytes).await {
                    return error;
                }
            }
        };
        let error = tokio::time::timeout(Duration::from_secs(60), sending).await.unwrap();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        let proven = tokio::time::timeout(Duration::from_millis(100), peer.closed()).await;
        assert!(proven.is_err(), "that says nothing about the life of the client");
        drop(client);
    }
}
