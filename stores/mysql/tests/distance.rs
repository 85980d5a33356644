//! A server far away, and connections that break (O14).

mod common;

use common::{Server, connect, fresh, through};
use incumbent_proving::hold_through_resets;

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_break_far_from_the_server_cost_no_term() {
    let server = Server::start(&[]);
    let open = async |path: &_| connect(&through(path, &fresh())).await.into();
    hold_through_resets(server.port(), open).await;
}
