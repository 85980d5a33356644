//! What is answered where something can't be done: RFC 9457, with what changed and what to do next.

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use incumbent::store::ErrorKind;
use incumbent::{CampaignError, ClusterError, JoinError, NameError};
use serde_json::{Map, Value, json};

/// Whether a request that failed changed anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Changed {
    No,
    Unknown,
}

/// A problem document.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    kind: &'static Kind,
    detail: String,
    changed: Changed,
    more: Map<String, Value>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

/// One row of the table in docs/http.md.
#[derive(Debug)]
pub(crate) struct Kind {
    pub(crate) status: u16,
    pub(crate) code: &'static str,
    pub(crate) title: &'static str,
}

macro_rules! kinds {
    ($($name:ident = $status:literal $code:literal $title:literal;)*) => {
        $(pub(crate) static $name: Kind = Kind { status: $status, code: $code, title: $title };)*
        /// All of them, for the OpenAPI document.
        pub(crate) static ALL: &[&Kind] = &[$(&$name),*];
    };
}

kinds! {
    BAD_REQUEST = 400 "bad-request" "The request isn't right";
    NO_TOKEN = 401 "no-token" "A token is needed";
    NOT_ALLOWED = 403 "not-allowed" "This isn't allowed";
    CROSS_SITE = 403 "cross-site" "A browser sent this on behalf of another site";
    NOT_FOUND = 404 "not-found" "Not found";
    NO_SUCH_HOLD = 404 "no-such-hold" "There is no such hold";
    METHOD = 405 "method" "This can't be done with it";
    SLOW = 408 "slow" "The body didn't come in time";
    HELD = 409 "held" "Somebody else holds the lease";
    NOBODY_LEADS = 409 "nobody-leads" "Nobody holds the lease";
    AMBIGUOUS = 409 "ambiguous" "Several members have this name";
    LOST = 410 "lost" "The hold is over";
    TERM_CHANGED = 412 "term-changed" "The lease is in another term";
    TOO_LARGE = 413 "too-large" "The body is too large";
    MEDIA_TYPE = 415 "media-type" "The body has to be JSON";
    WRONG_HOST = 421 "wrong-host" "This server isn't called that";
    TOO_MANY = 429 "too-many" "A limit is reached";
    STORE = 503 "store" "The store didn't answer";
    UNREADABLE = 503 "unreadable" "A record can't be read";
    STOPPING = 503 "stopping" "This server is shutting down";
    TIMEOUT = 504 "timeout" "The wait is over";
}

impl Problem {
    /// One of this kind; nothing was changed.
    pub(crate) fn new(kind: &'static Kind, detail: impl Into<String>) -> Self {
        let (more, headers) = (Map::new(), Vec::new());
        Self { kind, detail: detail.into(), changed: Changed::No, more, headers }
    }

    /// What was sent isn't right.
    pub(crate) fn bad(detail: impl Into<String>) -> Self {
        Self::new(&BAD_REQUEST, detail)
    }

    /// With another field.
    pub(crate) fn with(mut self, field: &str, value: impl Into<Value>) -> Self {
        self.more.insert(field.to_owned(), value.into());
        self
    }

    /// It may have been done all the same.
    pub(crate) fn in_doubt(mut self) -> Self {
        self.changed = Changed::Unknown;
        self
    }

    /// With a header.
    pub(crate) fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    #[cfg(test)]
    pub(crate) fn code(&self) -> &'static str {
        self.kind.code
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let Kind { status, code, title } = *self.kind;
        let mut document = json!({
            "type": format!("urn:incumbent:problem:{code}"),
            "title": title,
            "status": status,
            "detail": self.detail,
            "code": code,
            "changed": match self.changed { Changed::No => "no", Changed::Unknown => "unknown" },
        });
        if let Some(fields) = document.as_object_mut() {
            fields.extend(self.more);
        }
        let mut response = Response::new(Body::from(document.to_string()));
        *response.status_mut() =
            StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        let json = HeaderValue::from_static("application/problem+json");
        headers.insert(header::CONTENT_TYPE, json);
        headers.extend(self.headers);
        response
    }
}

impl From<NameError> for Problem {
    fn from(error: NameError) -> Self {
        Self::bad(error.to_string())
    }
}

impl From<ClusterError> for Problem {
    fn from(error: ClusterError) -> Self {
        let said = error.to_string();
        match error {
            ClusterError::Name(error) => error.into(),
            ClusterError::Store(store) => {
                let problem = Self::new(&STORE, said);
                match store.kind {
                    ErrorKind::Unknown => problem.in_doubt(),
                    ErrorKind::Unavailable | ErrorKind::Rejected => problem,
                }
            }
            ClusterError::Unreadable(_) => Self::new(&UNREADABLE, said),
            ClusterError::NobodyLeads { lease } => {
                Self::new(&NOBODY_LEADS, said).with("lease", lease.as_str())
            }
            ClusterError::OtherTerm { lease, term, .. } => {
                Self::new(&TERM_CHANGED, format!("{said}. Nothing was changed"))
                    .with("lease", lease.as_str())
                    .with("term", term)
            }
            ClusterError::NoSuchMember { .. } => Self::new(&NOT_FOUND, said),
            ClusterError::Ambiguous { ids, .. } => {
                let ids: Vec<&str> = ids.iter().map(incumbent::MemberId::as_str).collect();
                Self::new(&AMBIGUOUS, said).with("members", ids)
            }
            _ => Self::new(&STORE, said),
        }
    }
}

impl From<JoinError> for Problem {
    fn from(error: JoinError) -> Self {
        let said = error.to_string();
        match error {
            JoinError::Name(_) | JoinError::Timing(_) => Self::bad(said),
            _ => Self::new(&STORE, format!("no member could be made for this: {said}")),
        }
    }
}

impl From<CampaignError> for Problem {
    fn from(error: CampaignError) -> Self {
        Self::bad(error.to_string())
    }
}
