//! What the command finds in its environment.

use incumbent::Leadership;

use crate::place::Place;

/// The variables that tell the command what it holds.
pub(crate) fn variables(
    place: &Place,
    node: &str,
    lease: &str,
    leadership: &Leadership,
    slot: Option<u16>,
) -> Vec<(String, String)> {
    let mut variables = vec![
        ("INCUMBENT_LEASE", lease.to_owned()),
        ("INCUMBENT_TERM", leadership.term().to_string()),
        ("INCUMBENT_NODE", node.to_owned()),
        ("INCUMBENT_CLUSTER", place.cluster.clone()),
        ("INCUMBENT_STORE", without_secrets(&place.url)),
    ];
    variables.extend(slot.map(|slot| ("INCUMBENT_SLOT", slot.to_string())));
    variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The URL without its password and without parameters that may be one.
fn without_secrets(url: &str) -> String {
    let (base, query) =
        url.split_once('?').map_or((url, None), |(base, query)| (base, Some(query)));
    let mut kept = without_password(base);
    let open = |pair: &&str| {
        let name = pair.split_once('=').map_or(*pair, |(name, _)| name).to_ascii_lowercase();
        !["pass", "secret", "token", "key", "cred"].iter().any(|word| name.contains(word))
    };
    let parameters: Vec<&str> =
        query.into_iter().flat_map(|it| it.split('&')).filter(open).collect();
    if !parameters.is_empty() {
        kept.push('?');
        kept.push_str(&parameters.join("&"));
    }
    kept
}

fn without_password(base: &str) -> String {
    let Some((scheme, rest)) = base.split_once("://") else { return base.to_owned() };
    // What can't be a host ends the authority; a password may hold an @ of its own.
    let end = rest.find('/').unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let Some((user, host)) = authority.rsplit_once('@') else { return base.to_owned() };
    match user.split_once(':').map_or(user, |(user, _)| user) {
        "" => format!("{scheme}://{host}{path}"),
        user => format!("{scheme}://{user}@{host}{path}"),
    }
}

#[cfg(test)]
mod tests {
    use super::without_secrets;

    #[test]
    fn passwords_are_left_out_and_the_rest_stays() {
        for (url, shown) in [
            ("sqlite:app.db?busy=5s", "sqlite:app.db?busy=5s"),
            ("postgres://me:secret@db/app", "postgres://me@db/app"),
            ("postgres://me@db/app?sslmode=require", "postgres://me@db/app?sslmode=require"),
            ("redis://:se@cret@db:6379/1", "redis://db:6379/1"),
            ("mysql://me@db/app?password=secret&tls=on", "mysql://me@db/app?tls=on"),
            ("s3://bucket?secret_access_key=x", "s3://bucket"),
        ] {
            assert_eq!(without_secrets(url), shown);
        }
    }
}
