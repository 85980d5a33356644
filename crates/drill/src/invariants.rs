//! What must hold, one a file.

pub(crate) mod broken;
pub(crate) mod ends;
pub(crate) mod events;
pub(crate) mod foreign;
pub(crate) mod left;
pub(crate) mod liveness;
pub(crate) mod one_leader;
pub(crate) mod steps;
pub(crate) mod terms;
pub(crate) mod trust_bound;
pub(crate) mod work_first;
