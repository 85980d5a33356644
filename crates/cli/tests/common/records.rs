//! Records that no node would write.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of it")]
#![allow(clippy::expect_used, reason = "this is test code, although no test")]

use incumbent::store::{Exchange, Expect, Found, Key, Lane, Outcome, Put, Read, Stamp, Write};

use super::Trial;

impl Trial {
    /// All records, by key.
    pub fn records(&self) -> Vec<(String, Vec<u8>)> {
        let found = self.ask(Vec::new(), vec![Read::Prefix(Key::new(""))]).1.remove(0);
        let Found::Records(records) = found else { return Vec::new() };
        records.into_iter().map(|it| (it.key.as_str().to_owned(), it.value)).collect()
    }

    /// The text of a record.
    pub fn record(&self, key: &str) -> Option<String> {
        let all = self.records().into_iter().find(|(it, _)| it == key);
        all.map(|(_, value)| String::from_utf8_lossy(&value).into_owned())
    }

    /// Writes a record over whatever is there.
    pub fn forge(&self, key: &str, value: impl Into<Vec<u8>>) {
        let value = value.into();
        for attempt in 1..100 {
            let key = Key::new(key);
            let reads = vec![Read::Key { key: key.clone(), unless: None }];
            let expect = match self.ask(Vec::new(), reads).1.remove(0) {
                Found::Record(there) => Expect::Version(there.version),
                _ => Expect::Absent,
            };
            let stamp = Stamp { writer: incumbent::clock::now().as_nanos(), attempt };
            let put = Put { key, expect, value: value.clone(), stamp, hint: false, durable: true };
            let written = self.ask(vec![Write::Put(put)], Vec::new()).0;
            if matches!(written.first(), Some(Outcome::Applied(_))) {
                return;
            }
        }
        panic!("{key} keeps changing");
    }

    fn ask(&self, writes: Vec<Write>, reads: Vec<Read>) -> (Vec<Outcome>, Vec<Found>) {
        let reply = self.runtime.block_on(async {
            let store = incumbent::open(&self.url()).await.expect("opens");
            store.exchange("trial", Lane::Change, Exchange { writes, reads }).await
        });
        let reply = reply.expect("answers");
        (reply.writes, reply.reads)
    }
}

/// A member that joined and was never heard of again.
pub fn silent_member(id: &str, ttl_ms: u64) -> String {
    format!(
        r#"{{"format":1,"id":"{id}","state":"alive","beat":1,"ttl_ms":{ttl_ms},"due_ms":1000}}"#
    )
}

/// A lease that such a member holds.
pub fn held_lease(name: &str, term: u64, member: &str, node: &str) -> String {
    format!(
        r#"{{"format":1,"name":"{name}","term":{term},"holder":{{"member":"{member}","node":"{node}"}},
            "changes":[{{"term":{term},"kind":"taken","node":"{node}","at_ms":1}}]}}"#
    )
}
