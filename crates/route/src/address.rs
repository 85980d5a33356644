//! Where a request has to go.

use http::header::HOST;
use http::request::Parts;
use http::uri::{Authority, Uri};
use incumbent::{Leader, Node};

/// The request's path and query at the address of the leader, or why there is none.
pub(crate) fn location(
    request: &Parts,
    leader: &Leader,
    node: Option<&Node>,
    scheme: &str,
) -> Result<Uri, String> {
    let name = &leader.node;
    let Some(address) = leader.address.as_deref().filter(|address| !address.is_empty()) else {
        return Err(format!(
            "{name:?} leads and tells no address: give its node one, by `Builder::address` or \
             INCUMBENT_ADDRESS"
        ));
    };
    let base =
        if address.contains("://") { address.to_owned() } else { format!("{scheme}://{address}") };
    let path = request.uri.path_and_query().map_or("/", |path| path.as_str());
    // What is asked of a server as a whole has no path of its own.
    let path = if path.starts_with('/') { path } else { "/" };
    let whole = format!("{}{path}", base.trim_end_matches('/'));
    let uri: Uri = whole.parse().map_err(|_| unusable(name, address))?;
    let authority = uri.authority().ok_or_else(|| unusable(name, address))?;
    let own = node.and_then(Node::address) == Some(address);
    if own || asked_of(request).is_some_and(|asked| asked == *authority) {
        return Err(format!(
            "{name:?} leads and tells the address {address}, which leads here: each node needs an \
             address of its own"
        ));
    }
    Ok(uri)
}

fn unusable(name: &str, address: &str) -> String {
    format!(
        "{name:?} leads and tells the address {address:?}, which is not one: say host:port or a URL"
    )
}

/// The server that the client meant.
fn asked_of(request: &Parts) -> Option<Authority> {
    let host = || request.headers.get(HOST)?.to_str().ok()?.parse().ok();
    request.uri.authority().cloned().or_else(host)
}
