//! The fence: a term asserted inside the application's own transaction.

use incumbent_core::store::AssertionSql;

use crate::options::PostgresOptions;

/// The function, and what does without it.
pub(crate) fn assertion(options: &PostgresOptions) -> AssertionSql {
    AssertionSql {
        statement: format!("SELECT {}($1, $2, $3)", options.names.object("assert")),
        query: Some(sql(options)),
        standing: None,
    }
}

/// `$1` is the cluster, `$2` the lease's key, `$3` the term.
///
/// `FOR SHARE` is what makes it hold: a take-over updates this row, so it has to wait until the
/// transaction has ended, and a transaction that comes after a take-over finds another term.
pub(crate) fn sql(options: &PostgresOptions) -> String {
    format!(
        "SELECT (value::json ->> 'term')::bigint AS term FROM {} \
         WHERE cluster = $1 AND key = $2 AND (value::json ->> 'term')::bigint = $3 \
         AND value::json -> 'holder' ->> 'member' IS NOT NULL FOR SHARE",
        options.names.records
    )
}
