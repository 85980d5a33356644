//! A server far away, and connections that break (O14).
#![allow(clippy::expect_used, clippy::panic)] // A test fails by panicking.

mod common;

use common::{Server, block_on, connect, fresh};
use incumbent_proving::{Proxy, Trial, hold_through_resets};

fn hold(trial: Trial) {
    let server = Server::start(&[]);
    block_on(async {
        let proxy = Proxy::to(server.port()).await;
        let (port, prefix) = (proxy.port(), fresh());
        let store = connect(&format!("mysql://root@127.0.0.1:{port}/app?prefix={prefix}")).await;
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
