//! How an encrypted connection begins.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

use super::names::Names;
use super::{Inner, Tls};
use crate::certified::Certified;

/// How long it may take. Who is connected meanwhile has a seat as everybody else.
const PATIENCE: Duration = Duration::from_secs(10);

/// What every encrypted connection begins with: a record of the handshake.
const HANDSHAKE: u8 = 22;

/// So much is read of what isn't encrypted, so that its sender reads the answer and no reset.
const HEAD: usize = 16 * 1024;

const PLAIN: &str = "This port speaks TLS: ask with https://\n";

impl Tls {
    /// Agrees with who has connected on keys, and sees who it is if certificates are asked for.
    pub(crate) async fn accept(
        &self,
        stream: TcpStream,
    ) -> io::Result<(TlsStream<TcpStream>, Option<Certified>)> {
        let late = || io::Error::new(io::ErrorKind::TimedOut, "the handshake took too long");
        let shaken = tokio::time::timeout(PATIENCE, shake(&self.0, stream)).await;
        let stream = shaken.map_err(|_| late())??;
        let shown = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
        let certified = match shown {
            None => None,
            Some(certificate) => {
                let unread = || io::Error::other("the certificate doesn't say who it belongs to");
                let Names { subject, all: names } = Names::of(certificate).ok_or_else(unread)?;
                let roles = Arc::clone(&self.0) as Arc<_>;
                Some(Certified { subject, names, roles })
            }
        };
        Ok((stream, certified))
    }
}

async fn shake(tls: &Inner, mut stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
    let mut first = [0];
    if stream.peek(&mut first).await? > 0 && first != [HANDSHAKE] {
        answer_plainly(&mut stream).await?;
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it isn't encrypted"));
    }
    tls.acceptor().accept(stream).await
}

/// People who forget the s are told so.
async fn answer_plainly(stream: &mut TcpStream) -> io::Result<()> {
    let _ = stream.read(&mut vec![0; HEAD]).await?;
    let answer = format!(
        "HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n{PLAIN}",
        PLAIN.len()
    );
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await
}
