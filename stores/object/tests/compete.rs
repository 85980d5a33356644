//! Three candidates compete for one lease while the server is killed, hangs, and loses
//! connections: never two leaders at one instant, terms that grow, and a leader again soon after.

mod common;

use std::time::Duration;

use common::connect;
use incumbent_proving::server::azurite;
use incumbent_proving::{Wire, compete};

#[tokio::test(flavor = "multi_thread")]
async fn three_candidates_never_lead_at_once_and_one_leads_again_soon() {
    let server = azurite::start();
    let ttl = Duration::from_secs(2);
    let open = async |path: &incumbent_proving::Proxy| {
        connect(&azurite::url(path.port(), "compete")).await.into()
    };
    compete(&server, Wire::HTTP, ttl, open).await;
}
