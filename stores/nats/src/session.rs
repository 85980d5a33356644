//! One connection to the server, opened with all the care that relying on it needs.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_nats::client::RequestErrorKind;
use async_nats::{Client, HeaderMap, Message, Request};
use incumbent_core::store::{Reply, StoreError, Version};
use incumbent_store_common::{self as common, Failure, Sent, locked};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::watch;

use crate::api::{ApiError, Envelope, Info, InfoRequest};
use crate::bucket;
use crate::error::{Trouble, nonsense};
use crate::exchange::Job;
use crate::keys;
use crate::options::NatsOptions;

/// An open connection and what is known of it.
pub(crate) struct Session {
    pub(crate) options: Arc<NatsOptions>,
    /// Which making of the bucket this connection has found, as a short text.
    pub(crate) epoch: Arc<str>,
    /// The one that was found last by any connection of the store.
    current: Arc<Mutex<Arc<str>>>,
    line: Line,
}

/// The driver's client together with what became of its connection. The driver would connect
/// again by itself and send what it still had; here a connection that is lost stays so, and the
/// next one is another line.
#[derive(Clone)]
pub(crate) struct Line {
    client: Arc<Mutex<Option<Client>>>,
    /// Why it is not to be used any more, once it isn't.
    lost: Arc<watch::Sender<Option<Arc<str>>>>,
}

impl Line {
    pub(crate) fn new() -> Self {
        Self { client: Arc::default(), lost: Arc::new(watch::Sender::new(None)) }
    }

    pub(crate) fn attach(&self, client: Client) {
        *locked(&self.client) = Some(client);
    }

    /// Why it was lost, if it was.
    pub(crate) fn why_lost(&self) -> Option<Arc<str>> {
        self.lost.borrow().clone()
    }

    /// Gives the connection up, and with it all that is under way. The driver ends with its last
    /// client, and everybody who waits on one lets go of it now.
    pub(crate) fn end(&self, why: &str) {
        self.lost.send_if_modified(|lost| {
            let first = lost.is_none();
            lost.get_or_insert_with(|| why.into());
            first
        });
        let client = locked(&self.client).take();
        drop(client);
    }

    fn client(&self) -> Option<Client> {
        locked(&self.client).clone()
    }

    async fn lost(&self) -> Arc<str> {
        let mut lost = self.lost.subscribe();
        let why = lost.wait_for(Option::is_some).await.ok().and_then(|why| why.clone());
        why.unwrap_or_else(|| "the connection is gone".into())
    }
}

impl Session {
    pub(crate) fn new(
        options: &Arc<NatsOptions>,
        current: &Arc<Mutex<Arc<str>>>,
        line: Line,
    ) -> Self {
        let epoch = Arc::clone(&locked(current));
        Self { options: Arc::clone(options), epoch, current: Arc::clone(current), line }
    }

    /// Takes note of when the bucket was made.
    pub(crate) fn found(mut self, epoch: Arc<str>) -> Self {
        *locked(&self.current) = Arc::clone(&epoch);
        self.epoch = epoch;
        self
    }

    pub(crate) fn client(&self) -> Option<Client> {
        self.line.client()
    }

    pub(crate) fn end(&self, why: &str) {
        self.line.end(why);
    }

    /// The version of what has this sequence number. A bucket made anew counts from the start
    /// again, so the number alone would repeat (F8).
    pub(crate) fn version(&self, sequence: u64) -> Version {
        Version::new(&format!("{sequence}-{}", self.epoch))
    }

    /// The sequence number of a version of this bucket; none of any other has one.
    pub(crate) fn sequence(&self, version: &Version) -> Option<u64> {
        let (sequence, epoch) = version.as_str().split_once('-')?;
        (epoch == &*self.epoch).then(|| sequence.parse().ok()).flatten()
    }

    /// Sends one request, once, and waits for its answer.
    pub(crate) async fn request(
        &self,
        subject: &str,
        headers: Option<HeaderMap>,
        payload: Vec<u8>,
    ) -> Result<Message, Trouble> {
        let Some(client) = self.client() else {
            return Err(Trouble::Unsent("the connection was lost before anything was sent".into()));
        };
        let mut request = Request::new().payload(payload.into()).timeout(None);
        if let Some(headers) = headers {
            request = request.headers(headers);
        }
        let span: Duration = self.options.timeout;
        tokio::select! {
            biased;
            answer = client.send_request(subject.to_owned(), request) => {
                answer.map_err(|error| match error.kind() {
                    RequestErrorKind::NoResponders => Trouble::NobodyThere,
                    RequestErrorKind::InvalidSubject => Trouble::Unsent(error.to_string()),
                    RequestErrorKind::MaxPayloadExceeded => Trouble::TooLarge(error.to_string()),
                    RequestErrorKind::TimedOut | RequestErrorKind::Other => {
                        Trouble::Silence("the connection was lost before the answer".to_owned())
                    }
                })
            }
            why = self.line.lost() => Err(blamed(&why, subject)),
            () = tokio::time::sleep(span) => {
                self.end("a request was not answered in time");
                Err(Trouble::Silence(format!("no answer came in {span:?}")))
            }
        }
    }

    /// Asks the JetStream interface.
    #[allow(clippy::type_complexity)] // No answer; an answer that is an error; nonsense.
    pub(crate) async fn ask<T: DeserializeOwned>(
        &self,
        subject: &str,
        body: Vec<u8>,
    ) -> Result<Result<T, Option<ApiError>>, Trouble> {
        let answer = self.request(subject, None, body).await?;
        Ok(match serde_json::from_slice::<Envelope<T>>(&answer.payload) {
            Ok(envelope) => envelope.open(),
            Err(_) => Err(None),
        })
    }

    /// What the stream is like, with the subjects that pass this filter from this place on.
    pub(crate) async fn info(
        &self,
        filter: Option<&str>,
        offset: Option<usize>,
    ) -> Result<Result<Info, ApiError>, StoreError> {
        let subject = format!("$JS.API.STREAM.INFO.{}", keys::stream(&self.options.bucket));
        let body = encoded(&InfoRequest { subjects_filter: filter, offset });
        let answer = self.ask(&subject, body).await;
        match answer.map_err(|trouble| bucket::unprepared(&self.options, trouble))? {
            Ok(info) => Ok(Ok(info)),
            Err(Some(error)) => Ok(Err(error)),
            Err(None) => Err(nonsense(&self.options, Sent::Nothing)),
        }
    }
}

impl common::Session for Session {
    type Job = Job;

    /// The server answers each request by itself, however many are on their way.
    const AT_ONCE: usize = 256;

    async fn perform(&self, job: &Job) -> Result<Reply, Failure> {
        let done = self.exchange(job).await;
        done.map_err(|error| Failure { error, keep: !common::Session::has_ended(self) })
    }

    /// The driver looks by itself whether the server still answers.
    async fn answers(&self) -> bool {
        !common::Session::has_ended(self)
    }

    fn has_ended(&self) -> bool {
        // A bucket that was made anew counts from the start again.
        self.line.why_lost().is_some() || *locked(&self.current) != self.epoch
    }

    async fn ended(&self) {
        self.line.lost().await;
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.line.end("the store was closed");
    }
}

/// Plain data always has a JSON form; should it ever have none, the server says what is missing.
pub(crate) fn encoded(request: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(request).unwrap_or_default()
}

/// What the loss of a connection means for a request to this subject. The server says which
/// subject it refused, and then that message surely went nowhere.
fn blamed(why: &str, subject: &str) -> Trouble {
    if is_denial(why) && why.contains(&format!("\"{subject}\"")) {
        return Trouble::Denied(why.to_owned());
    }
    Trouble::Silence(why.to_owned())
}

/// Whether the server said that a right is missing.
pub(crate) fn is_denial(why: &str) -> bool {
    why.to_ascii_lowercase().contains("permissions violation")
}
