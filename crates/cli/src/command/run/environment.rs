//! What the command finds in its environment.

use incumbent::Leadership;
use incumbent_store_common::without_secrets;

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
        ("INCUMBENT_TERM", leadership.number().to_string()),
        ("INCUMBENT_NODE", node.to_owned()),
        ("INCUMBENT_CLUSTER", place.cluster.clone()),
        ("INCUMBENT_STORE", without_secrets(&place.url)),
    ];
    variables.extend(slot.map(|slot| ("INCUMBENT_SLOT", slot.to_string())));
    variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
