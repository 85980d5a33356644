//! The page for people, embedded in the program.

use axum::body::{Body, Bytes};
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
    "clusters.js",
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
    let mut response = file(&call, "index.html", INDEX.replace("{base}", &base).into());
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept"));
    Ok(response)
}

/// `GET /page/{file}`.
pub(crate) async fn show(call: Call) -> Answer {
    let name = call.parameter("file");
    let found = FILES.iter().find(|(known, _)| *known == name);
    let (name, bytes) =
        found.ok_or_else(|| Problem::new(&NOT_FOUND, "the page has no such file"))?;
    Ok(file(&call, name, Bytes::from_static(bytes)))
}

/// The file, unless the browser has it already.
fn file(call: &Call, name: &str, content: Bytes) -> Response {
    let kind = match name.rsplit('.').next().unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        _ => "image/svg+xml",
    };
    let tag = tag(&content);
    let known = call.headers.get(header::IF_NONE_MATCH).and_then(|it| it.to_str().ok());
    let known = known.is_some_and(|known| known.split(',').any(|one| one.trim() == tag));
    let mut response = Response::new(if known { Body::empty() } else { Body::from(content) });
    if known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    // Kept, and asked about each time: another version of the program has another page.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(header::ETAG, tag);
    }
    response
}

/// Tells one content from another (FNV-1a): for caches, and no secret.
fn tag(content: &[u8]) -> String {
    let hash = content.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("\"{hash:016x}\"")
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

    #[test]
    fn nothing_in_it_makes_markup_of_text_or_asks_elsewhere() {
        const BAD: &[&str] = &[
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            " style=\"",
            "onclick=\"",
            "https://",
        ];
        let texts = FILES.iter().map(|(name, bytes)| (*name, std::str::from_utf8(bytes).unwrap()));
        for (name, text) in texts.chain([("index.html", INDEX)]) {
            for bad in BAD {
                assert!(!text.contains(bad), "{name} has {bad}");
            }
            assert!(text.lines().count() <= 500, "{name} is too long");
        }
    }

    #[test]
    fn another_content_has_another_tag() {
        assert_eq!(tag(b"a"), tag(b"a"));
        assert_ne!(tag(b"a"), tag(b"b"));
        assert_eq!(tag(b"").len(), 18);
    }
}
