//! Leases with their holder, and with names of every kind, for tests of assertions.

use std::time::Duration;

use incumbent::{DutyId, clock};
use incumbent_core::store::{Exchange, Expect, Lane, Store, Write};
use incumbent_core::{LeaseName, keys};

use super::numbered::{applied, version, with_value};
use super::write;

/// The lease `scheduler`.
pub const LEASE: &str = "lease/scheduler";

/// The member that holds leases here.
pub const MEMBER: &str = "member/m";

/// What a lease's record says.
#[must_use]
pub fn lease_value(name: &str, term: u64, holder: Option<&str>) -> String {
    let holder = holder.map_or(String::new(), |member| {
        format!(",\"holder\":{{\"member\":\"{member}\",\"node\":\"node-{member}\"}}")
    });
    format!("{{\"format\":1,\"name\":\"{name}\",\"term\":{term}{holder}}}")
}

/// What the record of the member says, whose ttl is 1.5 s.
#[must_use]
pub fn member_value(state: &str) -> String {
    format!(
        "{{\"format\":1,\"id\":\"m\",\"state\":\"{state}\",\"beat\":1,\"ttl_ms\":1500,\
         \"due_ms\":500}}"
    )
}

/// Writes the lease `scheduler`.
#[must_use]
pub fn lease(expect: Expect, attempt: u64, term: u64, holder: Option<&str>) -> Write {
    with_value(LEASE, expect, attempt, true, &lease_value("scheduler", term, holder))
}

/// Takes it from who wrote it last.
#[must_use]
pub fn take(from: u64, attempt: u64, term: u64) -> Write {
    lease(Expect::Version(version(from)), attempt, term, Some("m"))
}

/// Lets the member hold `scheduler` in term 7. The attempts are 0 and 100.
///
/// # Panics
///
/// If the store refuses.
pub async fn hold(store: &impl Store) {
    assert_eq!(write(store, lease(Expect::Absent, 0, 7, Some("m"))).await, Ok(applied(0)));
    let member = with_value(MEMBER, Expect::Absent, 100, false, &member_value("alive"));
    assert_eq!(write(store, member).await, Ok(applied(100)));
}

/// Takes `scheduler` as soon as whatever holds it up is over, and says how long that took.
///
/// # Panics
///
/// If nothing held it up.
pub async fn take_at_last(store: &impl Store) -> Duration {
    let since = clock::now();
    let mut attempt = 1;
    while write(store, take(0, attempt, 8)).await != Ok(applied(attempt)) {
        attempt += 1;
    }
    assert!(attempt > 1, "the take had to wait");
    clock::now().since(since)
}

/// Lets the member hold a lease in term 3, in another cluster.
///
/// # Panics
///
/// If the store refuses.
pub async fn hold_in(store: &impl Store, cluster: &str, lease: &LeaseName, attempt: u64) {
    let value = lease_value(lease.as_str(), 3, Some("m"));
    let writes = vec![
        with_value(keys::lease(lease).as_str(), Expect::Absent, attempt, false, &value),
        with_value(MEMBER, Expect::Absent, attempt + 1, false, &member_value("alive")),
    ];
    let exchange = Exchange { writes, reads: Vec::new() };
    let reply = store.exchange(cluster, Lane::Change, exchange).await;
    assert_eq!(reply.expect("a lease").writes, [applied(attempt), applied(attempt + 1)]);
}

/// Names of clusters around the longest that a store keeps whole, and others that could be taken for
/// names that were cut.
#[must_use]
pub fn odd_clusters(longest: usize) -> Vec<String> {
    let cut = "…sha256:";
    vec![
        "plain".to_owned(),
        "x".repeat(longest),
        "x".repeat(longest + 1),
        "é".repeat(300),
        format!("x{}", "☃".repeat(400)),
        format!("short{cut}"),
        format!("{}{cut}{}", "y".repeat(longest - 75), "z".repeat(100)),
        format!("{}{cut}{}", "y".repeat(longest - 103), "z".repeat(100)),
        "'; DROP TABLE x; --".to_owned(),
    ]
}

/// Ten thousand leases, of elections, slots and duties, with names of every length and kind. `name`
/// may change what was drawn; it gets the number of the lease too.
///
/// # Panics
///
/// If a name that should do doesn't.
pub fn odd_leases(seed: u64, name: impl Fn(usize, String) -> String) -> Vec<LeaseName> {
    let mut leases = vec![LeaseName::leader(), LeaseName::slot("☃", 3).expect("a slot")];
    let named = |name: String| LeaseName::new(&name).unwrap_or_else(|error| panic!("{error}"));
    // Every length around the longest key, with one byte and with three a letter.
    for length in 1..=210 {
        leases.push(named("y".repeat(length)));
        leases.push(named(format!("{}☃", "z".repeat(length))));
        leases.push(named(format!("{}.{}", "z".repeat(length), "a".repeat(200))));
    }
    let mut state = seed;
    while leases.len() < 10_000 {
        let drawn = name(leases.len(), odd_name(&mut state));
        leases.push(DutyId::new("family", &drawn).expect("a duty").lease());
        leases.push(named(drawn));
    }
    leases
}

/// Letters of all kinds, by a sequence of numbers.
fn odd_name(state: &mut u64) -> String {
    let mut next = |below: usize| {
        *state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 33) as usize % below
    };
    let longest = [8, 40, 200, 260, 1_500].into_iter().nth(next(5)).unwrap_or(8);
    let length = 1 + next(longest);
    let sets = ["az09_-/AZ", "a=.,: @%'\"\\", "éß☃𝄞ſK", "=%=3D/_hH", "aé b☃"];
    let letters: Vec<char> = sets.into_iter().nth(next(5)).unwrap_or("a").chars().collect();
    let letter = |at: usize| letters.get(at).copied().unwrap_or('a');
    let name: String = (0..length).map(|_| letter(next(letters.len()))).collect();
    format!("x{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_found_under_its_key() {
        let name = LeaseName::new("scheduler").expect("a name");
        assert_eq!(keys::lease(&name).as_str(), LEASE);
    }
}
