//! The fence: a term asserted inside the application's own transaction.

use incumbent_core::store::AssertionSql;

use crate::names::quoted;
use crate::options::MysqlOptions;

/// The procedure, and what does without it. An application may use another database by default.
pub(crate) fn assertion(options: &MysqlOptions) -> AssertionSql {
    let database = quoted(&options.database);
    AssertionSql {
        statement: format!("CALL {database}.{}(?, ?, ?)", options.names.object("assert")),
        query: Some(sql(options)),
        standing: None,
    }
}

/// The parameters are the cluster, the lease's key and the term.
///
/// `LOCK IN SHARE MODE` is what makes it hold: a take-over updates this row, so it has to wait
/// until the transaction has ended, and a transaction that comes after a take-over finds another
/// term, whatever its snapshot shows. MySQL's `FOR SHARE` is the same, but MariaDB has only this.
pub(crate) fn sql(options: &MysqlOptions) -> String {
    format!(
        "SELECT CAST(JSON_UNQUOTE(JSON_EXTRACT(value, '$.term')) AS UNSIGNED) AS term \
         FROM {} WHERE cluster = ? AND `key` = ? \
         AND CAST(JSON_UNQUOTE(JSON_EXTRACT(value, '$.term')) AS UNSIGNED) = ? \
         AND JSON_EXTRACT(value, '$.holder.member') IS NOT NULL LOCK IN SHARE MODE",
        options.names.records
    )
}
