//! The quick way of the fence's function, which guesses how records begin: what programs write is
//! asserted by it, and what it can't tell is left to the long way.

#![allow(clippy::expect_used, clippy::panic)] // A test fails by panicking, its helpers too.

mod common;

use std::time::Duration;

use common::{application, applied, block_on, connect, shared, with_value, write};
use incumbent::DutyId;
use incumbent_core::records::{Content, Holder, LeaseRecord, MemberRecord};
use incumbent_core::store::Expect;
use incumbent_core::{LeaseName, MemberId, keys};
use tokio_postgres::{Client, Error};

const ASSERT: &str = "SELECT incumbent_assert('c', $1, $2)";

/// Without the long way, whatever needs it fails with this.
const LONG_WAY: &str = "P0001";
const BLOCKED: &str = "CREATE OR REPLACE FUNCTION incumbent_examine(cluster text, lease text, \
    term bigint) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RAISE 'the long way'; END $$";

/// Leases that are held in term 7, written as a program writes them, and an application.
async fn scene(leases: &[LeaseName]) -> Client {
    let url = shared();
    let store = connect(&url).await;
    let id = MemberId::new("01jcxyz-member");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    let (ttl, due) = (Duration::from_millis(1500), Duration::from_millis(500));
    let member = MemberRecord { profile: 1, ..MemberRecord::joining(id.clone(), ttl, due) };
    let key = keys::member(&id);
    let put = with_value(key.as_str(), Expect::Absent, 1000, false, &text(member.bytes()));
    assert_eq!(write(&store, put).await, Ok(applied(1000)));
    for (lease, attempt) in leases.iter().zip(0..) {
        let (node, address) = ("node \"one\"".to_owned(), Some("10.0.0.7:80".to_owned()));
        let (member, mark, due_ms) = (id.clone(), Some("1.2".to_owned()), 700);
        let holder = Holder { member, node, address, mark, unproven: false, due_ms };
        let free = LeaseRecord::free(lease.as_str().to_owned(), 7);
        let record = LeaseRecord { holder: Some(holder), ..free };
        let (key, value) = (keys::lease(lease), text(record.bytes()));
        let put = with_value(key.as_str(), Expect::Absent, attempt, true, &value);
        assert_eq!(write(&store, put).await, Ok(applied(attempt)));
    }
    let schema = url.split("schema=").nth(1).and_then(|rest| rest.split('&').next());
    let client = application(&url).await;
    let path = format!("SET search_path = {}", schema.expect("a schema"));
    client.batch_execute(&path).await.expect("a path");
    client
}

fn named(name: &str) -> LeaseName {
    LeaseName::new(name).expect("a name")
}

async fn held(client: &Client, lease: &str, term: i64) -> Result<i64, Error> {
    client.query_one(ASSERT, &[&lease, &term]).await.map(|row| row.get(0))
}

fn code(answer: Result<i64, Error>) -> String {
    let error = answer.expect_err("it is refused");
    error.code().unwrap_or_else(|| panic!("{error}")).code().to_owned()
}

#[test]
fn what_programs_write_needs_no_long_way() {
    block_on(async {
        let duty = DutyId::new("projections", "orders-eu").expect("a duty").lease();
        let leases = [named("scheduler"), named("billing.daily:report"), LeaseName::leader(), duty];
        let client = scene(&leases).await;
        client.batch_execute(BLOCKED).await.expect("another function");
        for name in leases.iter().map(LeaseName::as_str) {
            assert_eq!(held(&client, name, 7).await.expect("it is held"), 7, "{name}");
            for term in [6, 8, 77, 0, -7] {
                assert_eq!(code(held(&client, name, term).await), LONG_WAY, "{name} {term}");
            }
        }
        // Closed, freed, or not there.
        let close = "UPDATE incumbent_records SET value = replace(value, 'alive', 'expired') \
                     WHERE key LIKE 'member/%'";
        client.batch_execute(close).await.expect("a closed member");
        assert_eq!(code(held(&client, "scheduler", 7).await), LONG_WAY);
    });
}

#[test]
fn names_that_look_like_keys_of_others_are_nobody_s() {
    block_on(async {
        let client = scene(&["a.b", "a b", "a:b"].map(named)).await;
        for name in ["a.b", "a b", "a:b"] {
            assert_eq!(held(&client, name, 7).await.expect("it is held"), 7, "{name}");
        }
        let forged = "a.b\",\"term\":7,\"holder\":{\"member\":\"01jcxyz-member";
        for name in ["a=2Eb", "a=20b", "a=3Ab", "a=2eb", "a_b", "a%b", forged] {
            assert_eq!(code(held(&client, name, 7).await), "IN001", "{name}");
        }
    });
}

#[test]
fn records_that_are_written_otherwise_are_asserted_too() {
    block_on(async {
        let client = scene(&[named("scheduler")]).await;
        let bound = "SELECT current_setting('idle_in_transaction_session_timeout')";
        for change in [
            // Other spaces, another order, and a field that is the last one now.
            "UPDATE incumbent_records SET value = value::jsonb::text",
            "UPDATE incumbent_records SET value = '{\"format\":1,\"id\":\"01jcxyz-member\",\
             \"state\":\"alive\",\"beat\":1,\"due_ms\":500,\"ttl_ms\":1500}' WHERE key LIKE 'member/%'",
            "UPDATE incumbent_records SET value = replace(value, '\"term\"', '\"new\":[{}],\"term\"') \
             WHERE key LIKE 'lease/%'",
        ] {
            client.batch_execute(change).await.expect("a change by hand");
            client.batch_execute("BEGIN").await.expect("a transaction");
            assert_eq!(held(&client, "scheduler", 7).await.expect("it is held"), 7, "{change}");
            let said: String = client.query_one(bound, &[]).await.expect("a value").get(0);
            assert_eq!(said, "1500ms", "{change}");
            client.batch_execute("COMMIT").await.expect("a commit");
            assert_eq!(code(held(&client, "scheduler", 8).await), "IN001", "{change}");
        }
    });
}
