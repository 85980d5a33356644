//! A server that gives the answer it was told to give to every write.

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

#[derive(Clone)]
pub struct Canned {
    pub port: u16,
    answer: Arc<Mutex<(u16, String)>>,
}

const NOTHING_LISTED: &str = "<?xml version=\"1.0\"?><ListBucketResult></ListBucketResult>";
const NO_KEY: &str = "<Error><Code>NoSuchKey</Code></Error>";

impl Canned {
    pub async fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let answer = Arc::new(Mutex::new((200, String::new())));
        let given = Arc::clone(&answer);
        let handle = tokio::runtime::Handle::current();
        handle.clone().spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                handle.spawn(serve(client, Arc::clone(&given)));
            }
        });
        Self { port, answer }
    }

    /// From now on writes are answered so.
    pub fn answer(&self, status: u16, code: &str) {
        let body = format!("<Error><Code>{code}</Code><Message>no</Message></Error>");
        *self.answer.lock().unwrap_or_else(PoisonError::into_inner) = (status, body);
    }
}

async fn serve(mut client: TcpStream, answer: Arc<Mutex<(u16, String)>>) {
    let mut buffer = vec![0_u8; 65_536];
    // A request is small, and arrives whole.
    while let Ok(count @ 1..) = client.read(&mut buffer).await {
        let asked = String::from_utf8_lossy(buffer.get(..count).unwrap_or_default()).into_owned();
        let (status, body) = if asked.starts_with("GET") && asked.contains("list-type=2") {
            (200, NOTHING_LISTED.to_owned())
        } else if asked.starts_with("GET") {
            (404, NO_KEY.to_owned())
        } else {
            answer.lock().unwrap_or_else(PoisonError::into_inner).clone()
        };
        let length = body.len();
        let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\n\r\n");
        if client.write_all((head + &body).as_bytes()).await.is_err() {
            return;
        }
    }
}
