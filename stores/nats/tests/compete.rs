//! Three candidates compete for one lease while the server is killed, hangs, and loses
//! connections: never two leaders at one instant, terms that grow, and a leader again soon after.

mod common;

use std::time::Duration;

use common::{Server, fresh, open, through};
use incumbent_proving::{Wire, compete};

#[tokio::test(flavor = "multi_thread")]
async fn three_candidates_never_lead_at_once_and_one_leads_again_soon() {
    let (server, bucket) = (Server::start(), fresh());
    let open = async |path: &_| open(&through(path, &bucket)).await.into();
    compete(&server, Wire::NATS, Duration::from_secs(2), open).await;
}
