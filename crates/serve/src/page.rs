//! The page for people, embedded in the program.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;

use crate::call::{Answer, Call};
use crate::problem::{NOT_FOUND, Problem};
use crate::roles;

macro_rules! files {
    ($($name:literal,)*) => {
        &[$(($name, include_bytes!(concat!("../page/", $name)))),*]
    };
}

/// All that the page consists of.
static FILES: &[(&str, &[u8])] = files![
    "actions.js",
    "api.js",
    "bands.js",
    "dialog.js",
    "dom.js",
    "duties.js",
    "events.js",
    "format.js",
    "health.js",
    "icon.svg",
    "leases.js",
    "log.js",
    "main.js",
    "model.js",
    "nodes.js",
    "overview.js",
    "status.js",
    "style.css",
    "timeline.js",
    "virtual.js",
];

static INDEX: &str = include_str!("../page/index.html");

/// `GET /`: the page for browsers, and the name of the leader for all others.
pub(crate) async fn root(call: Call) -> Answer {
    let accepts = call.headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    if !accepts.is_some_and(|accept| accept.contains("text/html")) {
        return roles::name(call).await;
    }
    // Relative to where this is mounted, which may be asked for without the last slash.
    let last = call.path.rsplit('/').next().unwrap_or_default();
    let plain = last.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~%".contains(&byte));
    let base = match last {
        "" => "./".to_owned(),
        last if plain => format!("{last}/"),
        _ => "./".to_owned(),
    };
    Ok(file("index.html", Body::from(INDEX.replace("{base}", &base))))
}

/// `GET /page/{file}`.
pub(crate) async fn show(call: Call) -> Answer {
    let name = call.parameter("file");
    let found = FILES.iter().find(|(known, _)| *known == name);
    let (name, bytes) =
        found.ok_or_else(|| Problem::new(&NOT_FOUND, "the page has no such file"))?;
    Ok(file(name, Body::from(*bytes)))
}

fn file(name: &str, body: Body) -> Response {
    let kind = match name.rsplit('.').next().unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        _ => "image/svg+xml",
    };
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::OK;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_small_and_whole() {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/page");
        let mut there: Vec<String> = std::fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name != "index.html")
            .collect();
        there.sort();
        let known: Vec<&str> = FILES.iter().map(|(name, _)| *name).collect();
        assert_eq!(known, there, "name every file of the page in the table");
        let bytes: usize = FILES.iter().map(|(_, bytes)| bytes.len()).sum();
        assert!(bytes + INDEX.len() < 150_000, "{bytes}");
    }
}
