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

use crate::{Need, Property};

/// The property of a module, what it needs of the store, and whether it also holds behind faults:
/// `anywhere`, or `plainly` only.
macro_rules! property {
    (@faults anywhere) => {
        true
    };
    (@faults plainly) => {
        false
    };
    ($name:literal, $module:ident, $needs:ident, $where:ident) => {
        Property {
            name: $name,
            about: $module::ABOUT,
            needs: Need::$needs,
            under_faults: property!(@faults $where),
            run: |context| Box::pin($module::run(context)),
        }
    };
}

pub(crate) const PROPERTIES: &[Property] = &[
    property!("capabilities-honest", capabilities_honest, Nothing, plainly),
    property!("create-once", create_once, Nothing, anywhere),
    property!("swap-once", swap_once, Nothing, anywhere),
    property!("refused-leaves-record", refused_leaves_record, Nothing, anywhere),
    property!("refused-undoes-nothing", refused_undoes_nothing, Nothing, plainly),
    property!("versions-never-repeat", versions_never_repeat, Nothing, anywhere),
    property!("versions-survive-delete", versions_survive_delete, Nothing, anywhere),
    property!("stamps-as-attempts", stamps_as_attempts, Nothing, anywhere),
    property!("terms-survive-release", terms_survive_release, Nothing, anywhere),
    property!("delete-is-idempotent", delete_is_idempotent, Nothing, anywhere),
    property!("reads-see-writes", reads_see_writes, Nothing, anywhere),
    property!("linearizable-history", linearizable_history, Nothing, anywhere),
    property!("reads-in-order", reads_in_order, Nothing, anywhere),
    property!("unless", unless, Nothing, anywhere),
    property!("prefix-boundaries", prefix_boundaries, Nothing, anywhere),
    property!("prefix-complete", prefix_complete, Nothing, plainly),
    property!("clusters-apart", clusters_apart, Nothing, anywhere),
    property!("hostile-keys", hostile_keys, Nothing, anywhere),
    property!("hostile-values", hostile_values, Nothing, anywhere),
    property!("batch", batch, Nothing, plainly),
    property!("lanes-independent", lanes_independent, Nothing, plainly),
    property!("dropped-future", dropped_future, Nothing, plainly),
    property!("errors-tell-the-truth", errors_tell_the_truth, Nothing, anywhere),
    property!("hints-arrive", hints_arrive, Push, plainly),
    property!("beats-dont-hint", beats_dont_hint, Push, plainly),
    property!("hint-guard-drop", hint_guard_drop, Push, plainly),
    property!("age-plausible", age_plausible, Clock, plainly),
    property!("durable-reopen", durable_reopen, Shared, anywhere),
];

/// Every property that the kit tries, in that order.
#[must_use]
pub fn properties() -> &'static [Property] {
    PROPERTIES
}
