//! The same over TLS, with a certificate of the client's own.

use std::ffi::OsString;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use incumbent_proving::{Authority, Fleet, check};

use crate::stage::{Sidecar, languages};

#[test]
fn leases_are_held_with_certificates_in_any_language() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    let authority = Authority::new();
    let certificates = authority.save(place, "ca.crt");
    let (certificate, key) = authority.issue("localhost", place, "server");
    std::fs::set_permissions(&key, Permissions::from_mode(0o600)).unwrap();
    let _ = authority.issue("shop", place, "client");
    std::fs::write(place.join("roles"), "client cn:shop\n").unwrap();
    let address = format!("127.0.0.1:{}", incumbent_proving::server::free_port());
    let listens = [
        ("--listen", OsString::from(&address)),
        ("--tls-cert", certificate.into()),
        ("--tls-key", key.into()),
        ("--client-ca", certificates.into()),
        ("--certificate-roles", place.join("roles").into()),
    ];
    let listens = listens.into_iter().flat_map(|(flag, value)| [flag.into(), value]).collect();
    let store = format!("sqlite:{}", place.join("cluster.db").display());
    let _sidecar = Sidecar::start(&store, "far", listens);
    let url = format!("https://{}", address.replace("127.0.0.1", "localhost"));
    let mut tls = OsString::from("INCUMBENT_TEST_TLS=");
    tls.push(place);
    for (number, program) in languages(place, "candidate").into_iter().enumerate() {
        let histories = place.join(number.to_string());
        std::fs::create_dir(&histories).unwrap();
        let program: Vec<OsString> =
            ["env".into(), tls.clone()].into_iter().chain(program).collect();
        let mut fleet = Fleet::empty(&histories);
        (0..2).for_each(|_| fleet.join(&program, &url));
        let leader = next(&mut fleet);
        fleet.tell_to_resign(leader);
        let leader = next(&mut fleet);
        fleet.replace_killed(leader);
        next(&mut fleet);
        let account = check(&fleet.stop()).unwrap_or_else(|violation| panic!("{violation}"));
        assert!(account.terms >= 3, "{program:?}: {account:?}");
    }
}

/// The next leader, after it had the time to be asked.
fn next(fleet: &mut Fleet) -> usize {
    let leader = fleet.next_leader();
    fleet.pause(Duration::from_millis(500));
    leader
}
