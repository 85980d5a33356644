//! Three candidates compete for one lease while the server is killed, hangs, and loses
//! connections: never two leaders at one instant, terms that grow, and a leader again soon after.

mod common;

use std::time::Duration;

use common::{Server, connect, fresh, through};
use incumbent_proving::{Wire, compete};

#[tokio::test(flavor = "multi_thread")]
async fn three_candidates_never_lead_at_once_and_one_leads_again_soon() {
    let (server, schema) = (Server::start(&[]), fresh());
    let open = async |path: &_| connect(&through(path, &schema)).await.into();
    compete(&server, Wire::TURNS, Duration::from_millis(1500), open).await;
}
