//! Has the server do on a new connection what hand-overs are made of, where it changes nothing: it reads
//! its catalogs, loads the language of the trigger and makes its plans, and keeps all of that.

use incumbent_core::store::{Exchange, Expect, Key, Lane, Put, Stamp, Version, Write};

use crate::exchange::Job;
use crate::session::Session;
use crate::statement::{Shape, Writes};

/// No cluster is called that, so there are no records to be met.
const NOBODYS: &str = "";

/// Records that aren't there.
const LEASES: [&str; 2] = ["lease/a", "lease/b"];

/// The language of the function that a changed lease calls.
const LANGUAGE: &str = "DO 'BEGIN END' LANGUAGE plpgsql";

/// What fails here fails again when it is needed, and is told then.
pub(crate) async fn run(session: &Session) {
    let _ = session.client().batch_execute(LANGUAGE).await;
    for durable in [true, false] {
        for (writes, leases) in [(Writes::Swap, &LEASES[..1]), (Writes::Few, &LEASES[..])] {
            let (pooled, keys, prefixes) = (false, false, false);
            session.prepare(Shape { writes, hints: true, durable, keys, prefixes, pooled }).await;
            let writes = leases.iter().map(|key| swap(key, durable)).collect();
            let exchange = Exchange { writes, reads: Vec::new() };
            let (cluster, channel) = (NOBODYS.to_owned(), NOBODYS.to_owned());
            let job = Job { cluster, channel, exchange, lane: Lane::Change };
            let _ = session.exchange(&job).await;
        }
    }
}

/// A swap that finds nothing, and so tells nobody.
fn swap(key: &str, durable: bool) -> Write {
    let (expect, stamp) = (Expect::Version(Version::new("")), Stamp { writer: 0, attempt: 0 });
    Write::Put(Put { key: Key::new(key), expect, value: Vec::new(), stamp, hint: true, durable })
}
