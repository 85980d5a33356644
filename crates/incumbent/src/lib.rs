//! Leader election.
