//! A request that was let in, and what it asks.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use incumbent::Cluster;
use percent_encoding::percent_decode_str;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::access::Who;
use crate::lines::Slices;
use crate::peer::Peer;
use crate::problem::{MEDIA_TYPE, Problem};
use crate::service::Service;
use crate::watched::Watched;

/// A request that was let in.
pub(crate) struct Call {
    pub(crate) service: Service,
    /// The cluster that it is about.
    pub(crate) watched: Arc<Watched>,
    /// The path as it was asked for, with what this is mounted under.
    pub(crate) path: String,
    pub(crate) parameters: Vec<(String, String)>,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) peer: Option<Arc<Peer>>,
    pub(crate) who: Who,
}

/// What is answered.
pub(crate) type Answer = Result<Response, Problem>;

impl Call {
    /// The cluster that it is about.
    pub(crate) fn cluster(&self) -> &Cluster {
        &self.watched.cluster
    }

    /// A part of the path. The table of routes names them, so that one is always there.
    pub(crate) fn parameter(&self, name: &str) -> &str {
        let found = self.parameters.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value)
    }

    /// A part of the query.
    pub(crate) fn query(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Refuses what isn't known, for it is mostly mistyped.
    pub(crate) fn know(&self, names: &[&str]) -> Result<(), Problem> {
        match self.query.iter().find(|(name, _)| !names.contains(&name.as_str())) {
            None => Ok(()),
            Some((name, _)) => {
                let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
                let name: String = name.chars().take(32).collect();
                Err(Problem::bad(format!("the query has an unknown {name:?}; known are: {known}")))
            }
        }
    }

    /// The body.
    pub(crate) fn body<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        let kind = self.headers.get(header::CONTENT_TYPE).and_then(|it| it.to_str().ok());
        let kind = kind.unwrap_or_default().split(';').next().unwrap_or_default().trim();
        if !kind.eq_ignore_ascii_case("application/json") {
            let said = "send it with `Content-Type: application/json`, even if it is only {}";
            return Err(Problem::new(&MEDIA_TYPE, said));
        }
        let body: &[u8] = if self.body.is_empty() { b"{}" } else { &self.body };
        // An array would be taken for the fields of an object in their order.
        if body.trim_ascii_start().first() != Some(&b'{') {
            return Err(Problem::bad("the body isn't a JSON object: send one, such as {}"));
        }
        serde_json::from_slice(body)
            .map_err(|error| Problem::bad(format!("the body can't be understood: {error}")))
    }
}

/// An answer of this document.
pub(crate) fn json<T: Serialize>(status: StatusCode, document: &T) -> Response {
    json_text(status, text(document))
}

/// A document as text, which any number of answers may share.
pub(crate) fn text<T: Serialize>(document: &T) -> Bytes {
    Bytes::from(serde_json::to_vec(document).unwrap_or_default())
}

/// The answer with a document that is text already.
pub(crate) fn json_text(status: StatusCode, text: Bytes) -> Response {
    let mut response = Response::new(Body::new(Slices(text)));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// Refuses a percent sign that stands for nothing, which would be taken as it is.
pub(crate) fn check_escapes(text: &str) -> Result<(), Problem> {
    let is_byte = |part: &str| {
        part.get(..2).is_some_and(|digits| digits.bytes().all(|it| it.is_ascii_hexdigit()))
    };
    match text.split('%').skip(1).find(|part| !is_byte(part)) {
        None => Ok(()),
        Some(part) => {
            let part: String = part.chars().take(2).collect();
            let said =
                format!("\"%{part}\" is not a byte: write two digits, and %25 for a percent sign");
            Err(Problem::bad(said))
        }
    }
}

/// Refuses labels without a name that people can see, and what would move their cursors.
pub(crate) fn check_texts(
    labels: Option<&BTreeMap<String, String>>,
    texts: &[(&str, Option<&str>)],
) -> Result<(), Problem> {
    let refuse = |field: &str, text: &str| {
        let text: String = text.chars().take(64).collect();
        Problem::bad(format!("{field} {text:?} has a control character: use printable ones"))
    };
    for (name, value) in labels.into_iter().flatten() {
        incumbent::check_name("label", name)?;
        if value.chars().any(char::is_control) {
            return Err(refuse(&format!("the label {name:?} with the value"), value));
        }
    }
    for (field, text) in texts {
        if let Some(text) = text.filter(|text| text.chars().any(char::is_control)) {
            return Err(refuse(&format!("the {field}"), text));
        }
    }
    Ok(())
}

/// The parts of a query.
pub(crate) fn query(text: &str) -> Result<Vec<(String, String)>, Problem> {
    let decoded = |text: &str| {
        check_escapes(text)?;
        let plain = text.replace('+', " ");
        let read = percent_decode_str(&plain).decode_utf8().map(std::borrow::Cow::into_owned);
        read.map_err(|_| {
            let text: String = text.chars().take(64).collect();
            Problem::bad(format!("{text:?} in the query isn't UTF-8 once it is decoded"))
        })
    };
    let pairs = text.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(name, value)| Ok((decoded(name)?, decoded(value)?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_decoded() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let read = query("after=7.free&wait=30s&&to=a+b%2Fc&x").unwrap();
        let expected =
            [pair("after", "7.free"), pair("wait", "30s"), pair("to", "a b/c"), pair("x", "")];
        assert_eq!(read, expected);
        for wrong in ["lease=%ff", "lease=%zz", "lease=%2", "lease=%", "%é=1"] {
            assert_eq!(query(wrong).unwrap_err().code(), "bad-request", "{wrong}");
        }
    }
}
