//! What the tests share: a server on real sockets, and a client as small as can be.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of it")]
#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "this is test code")]
#![allow(clippy::panic, clippy::unwrap_used, reason = "this is test code")]

pub mod events;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use incumbent::store::{Answer, Capabilities, Exchange, HintGuard, Lane, Store, Wake};
use incumbent::{MemoryStore, Moment, Node, OpenStore, clock};
use incumbent_serve::{Access, Address, Listener, Options, Service};
use serde_json::Value;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

/// Long enough for a slow machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// So many streams from one address: more than any other test needs.
pub const STREAMS_EACH: usize = 64;

/// A server in this process.
pub struct Server {
    pub runtime: Option<Runtime>,
    pub service: Service,
    pub store: MemoryStore,
    /// How often the server has asked its store.
    pub requests: Arc<AtomicU64>,
    pub tcp: SocketAddr,
    pub unix: PathBuf,
    stop: CancellationToken,
    _directory: tempfile::TempDir,
}

impl Server {
    /// With holds of this ttl.
    pub fn new(ttl: Duration) -> Self {
        Self::with(MemoryStore::new(), ttl, Access::open())
    }

    pub fn with(store: MemoryStore, ttl: Duration, access: Access) -> Self {
        Self::build(store, options(ttl, access))
    }

    /// For so many streams.
    pub fn with_streams(each: usize) -> Self {
        let mut options = options(Duration::from_secs(15), Access::open());
        options.streams_each = each;
        Self::build(MemoryStore::new(), options)
    }

    /// Which shows these clusters too, on the records of a memory store as seen through another.
    pub fn with_clusters(
        through: impl Into<OpenStore>,
        store: MemoryStore,
        access: Access,
        also: &[&str],
    ) -> Self {
        let mut options = options(Duration::from_secs(600), access);
        options.also = also.iter().map(|name| (*name).to_owned()).collect();
        Self::build_through(Some(through.into()), store, options)
    }

    pub fn build(store: MemoryStore, options: Options) -> Self {
        Self::build_through(None, store, options)
    }

    fn build_through(through: Option<OpenStore>, store: MemoryStore, options: Options) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.unwrap();
        let directory = tempfile::tempdir().unwrap();
        let unix = directory.path().join("socket");
        let stop = CancellationToken::new();
        let requests = Arc::new(AtomicU64::new(0));
        let counted = Counted { store: store.clone(), requests: Arc::clone(&requests) };
        let through = through.unwrap_or_else(|| counted.into());
        let (service, tcp) = runtime.block_on(async {
            let builder = Node::builder().ttl(Duration::from_secs(15)).name("server");
            let node = builder.join(through).await.unwrap();
            let service = Service::new(node, options).unwrap();
            let any = Address::Tcp(([127, 0, 0, 1], 0).into());
            let tcp = Listener::bind(&any, &service).await.unwrap();
            let Some(Address::Tcp(address)) = tcp.address() else { panic!("no address") };
            let socket = Listener::bind(&Address::Unix(unix.clone()), &service).await.unwrap();
            for listener in [tcp, socket] {
                let (service, stop) = (service.clone(), stop.clone());
                let task = async move { listener.serve(&service, stop.cancelled()).await };
                runtime.handle().spawn(task);
            }
            (service, address)
        });
        let runtime = Some(runtime);
        Self { runtime, service, store, requests, tcp, unix, stop, _directory: directory }
    }

    pub fn runtime(&self) -> &Runtime {
        self.runtime.as_ref().unwrap()
    }

    /// A request over TCP.
    pub fn ask(&self, method: &str, path: &str, body: Option<Value>) -> Reply {
        self.ask_with(method, path, &[], body)
    }

    pub fn get(&self, path: &str) -> Reply {
        self.ask("GET", path, None)
    }

    /// A request over TCP with headers.
    pub fn ask_with(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<Value>,
    ) -> Reply {
        let body = body.map(|body| body.to_string());
        let mut all = vec![("connection", "close")];
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            all.push(("host", "localhost"));
        }
        if body.is_some() && !headers.iter().any(|(name, _)| *name == "content-type") {
            all.push(("content-type", "application/json"));
        }
        all.extend(headers);
        let stream = TcpStream::connect(self.tcp).unwrap();
        ask(stream, method, path, &all, body.as_deref().unwrap_or_default())
    }

    /// A stream of a hold over TCP.
    pub fn hold(&self, lease: &str, body: Value) -> Lines<TcpStream> {
        Lines::post(
            TcpStream::connect(self.tcp).unwrap(),
            &format!("/v1/leases/{lease}/hold"),
            &body,
        )
    }

    /// A stream of a hold over the Unix socket, by this process.
    pub fn hold_here(&self, lease: &str, body: Value) -> Lines<UnixStream> {
        let stream = UnixStream::connect(&self.unix).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Lines::post(stream, &format!("/v1/leases/{lease}/hold"), &body)
    }

    /// A stream of a hold over the Unix socket, by a process of its own.
    pub fn curl(&self, lease: &str, body: Value) -> Curl {
        Curl::start(&self.unix, &format!("leases/{lease}/hold"), &body)
    }

    /// A stream of a family's duties over the Unix socket, by this process.
    pub fn serve_here(&self, family: &str, body: Value) -> Lines<UnixStream> {
        let stream = UnixStream::connect(&self.unix).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Lines::post(stream, &format!("/v1/families/{family}/serve"), &body)
    }

    /// A stream of a family's duties over TCP.
    pub fn serve(&self, family: &str, body: Value) -> Lines<TcpStream> {
        let stream = TcpStream::connect(self.tcp).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Lines::post(stream, &format!("/v1/families/{family}/serve"), &body)
    }

    /// The same by a process of its own.
    pub fn curl_serve(&self, family: &str, body: Value) -> Curl {
        Curl::start(&self.unix, &format!("families/{family}/serve"), &body)
    }

    /// What a client says of a duty.
    pub fn report(&self, hold: &str, body: Value) -> u16 {
        self.ask("POST", &format!("/v1/holds/{hold}/report"), Some(body)).status
    }

    pub fn delete(&self, hold: &str) -> u16 {
        self.ask("DELETE", &format!("/v1/holds/{hold}"), None).status
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// A store that counts what it is asked.
struct Counted {
    store: MemoryStore,
    requests: Arc<AtomicU64>,
}

impl Store for Counted {
    fn capabilities(&self) -> Capabilities {
        self.store.capabilities()
    }

    fn exchange<'a>(&'a self, cluster: &'a str, lane: Lane, exchange: Exchange) -> Answer<'a> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.store.exchange(cluster, lane, exchange)
    }

    fn hints(&self, cluster: &str, wake: Wake) -> Option<HintGuard> {
        self.store.hints(cluster, wake)
    }
}

/// Holds of this ttl, for who gets in by this.
pub fn options(ttl: Duration, access: Access) -> Options {
    let mut options = Options::default();
    (options.ttl, options.access) = (ttl, access);
    options.least_ttl = ttl.min(Duration::from_secs(3));
    options.streams_each = STREAMS_EACH;
    options
}

/// An answer.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: BTreeMap<String, String>,
    pub text: String,
}

impl Reply {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    /// What programs go by.
    pub fn code(&self) -> String {
        assert_eq!(self.headers.get("content-type").unwrap(), "application/problem+json");
        self.json()["code"].as_str().unwrap().to_owned()
    }
}

fn send(stream: &mut impl Write, method: &str, path: &str, headers: &[(&str, &str)], body: &str) {
    let mut text = format!("{method} {path} HTTP/1.1\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str("\r\n");
    text.push_str(body);
    // The server may have answered and closed before it has read all of it.
    let _ = stream.write_all(text.as_bytes());
}

/// One request and its answer, on a connection of its own.
pub fn ask<S: Read + Write>(
    mut stream: S,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Reply {
    send(&mut stream, method, path, headers, body);
    let mut reader = BufReader::new(stream);
    let (status, headers) = head(&mut reader);
    let mut text = Vec::new();
    if method != "HEAD" {
        let _ = reader.read_to_end(&mut text);
    }
    Reply { status, headers, text: String::from_utf8_lossy(&text).into_owned() }
}

fn head(reader: &mut impl BufRead) -> (u16, BTreeMap<String, String>) {
    let mut line = String::new();
    reader.read_line(&mut line).expect("an answer");
    let status = line.split(' ').nth(1).unwrap_or_else(|| panic!("{line:?}")).parse().unwrap();
    let mut headers = BTreeMap::new();
    loop {
        line.clear();
        reader.read_line(&mut line).unwrap();
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    (status, headers)
}

/// The lines of a stream.
pub struct Lines<S> {
    reader: BufReader<S>,
    pub status: u16,
}

impl<S: Read + Write> Lines<S> {
    pub fn post(mut stream: S, path: &str, body: &Value) -> Self {
        let headers = [("host", "localhost"), ("content-type", "application/json")];
        send(&mut stream, "POST", path, &headers, &body.to_string());
        let mut reader = BufReader::new(stream);
        let (status, _) = head(&mut reader);
        Self { reader, status }
    }

    /// The next line; nothing once the stream is over.
    pub fn next(&mut self) -> Option<Value> {
        next(&mut self.reader)
    }

    /// The next line of this event.
    pub fn until(&mut self, event: &str) -> Value {
        loop {
            let line = self.next().unwrap_or_else(|| panic!("the stream ended before {event}"));
            if line["event"] == event {
                return line;
            }
        }
    }
}

fn next(reader: &mut impl BufRead) -> Option<Value> {
    let mut line = String::new();
    loop {
        line.clear();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        // The last chunk is empty; the connection may stay open after it.
        if line == "0\r\n" {
            return None;
        }
        // Between the lines are the sizes of chunks.
        if line.starts_with('{') {
            return Some(serde_json::from_str(&line).unwrap());
        }
    }
}

/// A hold by `curl`.
pub struct Curl {
    pub child: std::process::Child,
    reader: BufReader<std::process::ChildStdout>,
}

impl Curl {
    pub fn start(socket: &Path, path: &str, body: &Value) -> Self {
        let socket = ["--unix-socket", socket.to_str().unwrap()];
        Self::post(&socket, &format!("http://localhost/v1/{path}"), body)
    }

    /// The same over TCP.
    pub fn start_tcp(address: SocketAddr, path: &str, body: &Value) -> Self {
        Self::post(&[], &format!("http://{address}/v1/{path}"), body)
    }

    fn post(options: &[&str], url: &str, body: &Value) -> Self {
        let mut child = std::process::Command::new("curl")
            .arg("-sN")
            .args(options)
            .args(["-X", "POST", url])
            .args(["-H", "content-type: application/json", "-d", &body.to_string()])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("curl is installed");
        let reader = BufReader::new(child.stdout.take().unwrap());
        Self { child, reader }
    }

    pub fn until(&mut self, event: &str) -> Value {
        loop {
            let line = next(&mut self.reader);
            let line = line.unwrap_or_else(|| panic!("the stream ended before {event}"));
            if line["event"] == event {
                return line;
            }
        }
    }

    pub fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        let sent = std::process::Command::new("kill").args([signal, &id]).status().unwrap();
        assert!(sent.success());
    }
}

impl Drop for Curl {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The trust file that a line names, opened as a client would.
pub struct Trust(std::fs::File);

impl Trust {
    pub fn of(elected: &Value) -> Self {
        let path = elected["trust_file"].as_str().expect("a trust file");
        Self(std::fs::File::open(path).unwrap())
    }

    pub fn bytes(&self) -> [u8; 128] {
        let mut bytes = [0; 128];
        std::os::unix::fs::FileExt::read_exact_at(&self.0, &mut bytes, 0).unwrap();
        bytes
    }

    /// Until when it says that trust lasts.
    pub fn until(&self) -> Moment {
        Moment::from_nanos(u64::from_le_bytes(self.bytes()[8..16].try_into().unwrap()))
    }

    pub fn is_held(&self) -> bool {
        let until = self.until();
        clock::now() < until
    }
}

/// Waits until something is so.
pub fn wait_until(what: &str, mut test: impl FnMut() -> bool) {
    let until = clock::now() + PATIENCE;
    while !test() {
        assert!(clock::now() < until, "not in time: {what}");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

/// Lets time pass.
pub fn pass(span: Duration) {
    let until = clock::now() + span;
    while clock::now() < until {
        std::thread::park_timeout(until.since(clock::now()));
    }
}

pub fn text<'a>(line: &'a Value, field: &str) -> &'a str {
    line[field].as_str().unwrap_or_else(|| panic!("no {field} in {line}"))
}

/// So many in a normal run, and so many with `INCUMBENT_TEST_FULL=1`, before a release.
pub fn counted(short: usize, whole: usize) -> usize {
    if std::env::var_os("INCUMBENT_TEST_FULL").is_some() { whole } else { short }
}
