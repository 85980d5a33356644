//! The fence: a term asserted inside the application's own transaction.

use incumbent_core::store::AssertionSql;

/// The view whose trigger does it. Its message is a literal, so that another question finds out
/// what there is instead.
pub(crate) fn assertion(prefix: &str) -> AssertionSql {
    AssertionSql {
        statement: format!("INSERT INTO {prefix}assert (cluster, lease, term) VALUES (?1, ?2, ?3)"),
        query: None,
        standing: Some(format!(
            "SELECT term, holder FROM {prefix}leases WHERE cluster = ?1 AND name = ?2"
        )),
    }
}
