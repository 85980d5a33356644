//! Who holds the lock that a write of ours waits for.

use std::time::Duration;

use incumbent_core::store::Obstacle;
use incumbent_store_common::Connect as _;
use tokio_postgres::types::Type;
use tokio_postgres::{Error, Row};

use crate::connect::PostgresConnect;

/// All who wait for a row of ours, in whatever process, and those in front of them. The first to
/// wait for a row holds its tuple lock, which tells where the row is; who waits for transactions
/// that have asserted a term waits for a lock whose number tells the lease. Others wait behind them.
///
/// Of another role's sessions a server tells less. Of a statement only its first word is taken,
/// because the rest may hold anything.
fn sql(records: &str) -> String {
    format!(
        "SELECT DISTINCT r.cluster, r.key, a.pid, a.usename::text, a.application_name, a.state, \
         extract(epoch FROM clock_timestamp() - a.xact_start)::float8, \
         upper(substring(a.query FROM '^[[:space:]]*([A-Za-z]+)')) \
         FROM pg_locks w CROSS JOIN LATERAL unnest(pg_blocking_pids(w.pid)) AS b(pid) \
         JOIN pg_stat_activity a ON a.pid = b.pid LEFT JOIN LATERAL ( \
         SELECT cluster, key FROM {records} WHERE w.locktype = 'tuple' AND ctid = \
         CASE w.locktype WHEN 'tuple' THEN format('(%s,%s)', w.page, w.tuple)::tid END UNION ALL \
         SELECT cluster, key FROM {records} WHERE w.locktype = 'advisory' \
         AND key >= 'lease/' AND key < 'lease0' AND hashtextextended(cluster || '/' || key, \
         tableoid::bigint) = (w.classid::bigint << 32 | w.objid::bigint) LIMIT 1) r ON true \
         WHERE w.database = (SELECT oid FROM pg_database WHERE datname = current_database()) \
         AND (w.relation = to_regclass($1)::oid \
         AND (w.locktype = 'tuple' AND w.granted OR w.locktype = 'relation' AND NOT w.granted) \
         AND NOT EXISTS (SELECT 1 FROM pg_locks f WHERE f.pid = b.pid AND NOT f.granted \
         AND f.locktype = 'advisory' AND f.mode = 'ExclusiveLock') \
         OR w.locktype = 'advisory' AND w.objsubid = 1 AND w.mode = 'ExclusiveLock' \
         AND NOT w.granted AND r.key IS NOT NULL) LIMIT 16"
    )
}

/// How long all of it may take.
const LONGEST: Duration = Duration::from_secs(5);

/// Asks on a connection of its own, which is closed afterwards.
pub(crate) async fn find(connect: &PostgresConnect) -> Vec<Obstacle> {
    let finding = async {
        let session = connect.connect().await.ok()?;
        let records = &connect.options.names.records;
        let rows = session.client().query_typed(&sql(records), &[(records, Type::TEXT)]).await;
        Some(rows.ok()?.iter().filter_map(|row| obstacle(row).ok()).collect())
    };
    tokio::time::timeout(LONGEST, finding).await.ok().flatten().unwrap_or_default()
}

fn obstacle(row: &Row) -> Result<Obstacle, Error> {
    let record = row.try_get::<_, Option<String>>(0)?.zip(row.try_get::<_, Option<String>>(1)?);
    let text = |place| row.try_get::<_, Option<String>>(place);
    let user = text(3)?.unwrap_or_else(|| "unknown".to_owned());
    let mut holder = format!("pid {} (user {user}", row.try_get::<_, i32>(2)?);
    if let Some(application) = text(4)?.filter(|name| !name.is_empty()) {
        holder += &format!(", application {application}");
    }
    holder.push(')');
    if let Some(state) = text(5)?.filter(|state| !state.is_empty()) {
        holder += &format!(", {state}");
    }
    if let Some(seconds) = row.try_get::<_, Option<f64>>(6)? {
        holder += &format!(", whose transaction has been open for {seconds:.1} s");
    }
    if let Some(word) = text(7)? {
        holder += &format!(", last command {word}");
    }
    Ok(Obstacle::new(record, holder))
}
