//! A server far away, and connections that break (O14).
#![allow(clippy::expect_used, clippy::panic)] // A test fails by panicking.

mod common;

use common::{Server, block_on, connect, fresh, through};
use incumbent_proving::{Proxy, Trial, hold_through_resets};

fn hold(trial: Trial) {
    let server = Server::start(&[]);
    block_on(async {
        let proxy = Proxy::to(server.port()).await;
        let store = connect(&through(&proxy, &fresh())).await;
        hold_through_resets(store, &proxy, trial).await;
    });
}

#[test]
fn a_connection_that_breaks_at_half_the_request_time_out_costs_no_term() {
    hold(Trial::ONE_BY_ONE);
}

#[test]
fn all_connections_breaking_at_once_cost_no_term_where_there_is_time_to_connect() {
    hold(Trial::ALL_AT_ONCE);
}
