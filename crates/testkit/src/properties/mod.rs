//! What every store must do, one property a file.

mod age_plausible;
mod batch;
mod beats_dont_hint;
mod bell;
mod capabilities_honest;
mod clusters_apart;
mod contest;
mod create_once;
mod delete_is_idempotent;
mod dropped_future;
mod durable_reopen;
mod errors_tell_the_truth;
mod hint_guard_drop;
mod hints_arrive;
mod hostile_keys;
mod hostile_values;
mod lanes_independent;
mod linearizable_history;
mod prefix_boundaries;
mod prefix_complete;
mod reads_in_order;
mod reads_see_writes;
mod refused_leaves_record;
mod refused_undoes_nothing;
mod stamps_as_attempts;
mod swap_once;
mod terms_survive_release;
mod unless;
mod versions_never_repeat;
mod versions_survive_delete;

use crate::Property;

pub(crate) const PROPERTIES: &[Property] = &[
    capabilities_honest::PROPERTY,
    create_once::PROPERTY,
    swap_once::PROPERTY,
    refused_leaves_record::PROPERTY,
    refused_undoes_nothing::PROPERTY,
    versions_never_repeat::PROPERTY,
    versions_survive_delete::PROPERTY,
    stamps_as_attempts::PROPERTY,
    terms_survive_release::PROPERTY,
    delete_is_idempotent::PROPERTY,
    reads_see_writes::PROPERTY,
    linearizable_history::PROPERTY,
    reads_in_order::PROPERTY,
    unless::PROPERTY,
    prefix_boundaries::PROPERTY,
    prefix_complete::PROPERTY,
    clusters_apart::PROPERTY,
    hostile_keys::PROPERTY,
    hostile_values::PROPERTY,
    batch::PROPERTY,
    lanes_independent::PROPERTY,
    dropped_future::PROPERTY,
    errors_tell_the_truth::PROPERTY,
    hints_arrive::PROPERTY,
    beats_dont_hint::PROPERTY,
    hint_guard_drop::PROPERTY,
    age_plausible::PROPERTY,
    durable_reopen::PROPERTY,
];

/// Every property that the kit tries, in that order.
#[must_use]
pub fn properties() -> &'static [Property] {
    PROPERTIES
}
