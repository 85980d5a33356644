//! Fleets of many nodes in a few processes: what the server does for them, and how late their beats are.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use incumbent::clock;
use incumbent_proving::Server;
use incumbent_proving::server::{etcd, postgres, redis};

use super::chart::Bar;
use super::contender::{Contender, Store};
use super::field::{Deadline, Entrant, Field};
use super::idle;
use super::section::{self, Section, finite, shown};
use crate::fleet::{self, Fleet};
use crate::partner::pause;
use crate::spread::Spread;

const PROCESSES: usize = 4;

/// All have joined, and views are written and read.
const STILL: Duration = Duration::from_secs(15);

struct Growth {
    /// Of one core, in per cent.
    cpu: f64,
    /// What the server was asked, a second.
    requests: f64,
    /// Milliseconds.
    late: Spread,
}

pub(super) fn measure(
    field: &Field,
    sizes: &[(Store, usize)],
    window: Duration,
    until: Deadline,
) -> Section {
    let mut rows = Vec::new();
    let mut bars = Vec::new();
    for &(store, nodes) in sizes {
        let ours = |it: &&Entrant| it.contender.is_ours() && it.contender.store == store;
        let Some(ours) = field.entrants.iter().find(ours) else { continue };
        let who = ours.contender;
        // Each takes a place at the server some milliseconds.
        let least = STILL + window + Duration::from_millis(10 * nodes as u64);
        if until.left() < least {
            field.fails(&who, &format!("no time was left for {nodes} nodes"));
            continue;
        }
        match grown(store, nodes, window) {
            Ok(growth) => {
                rows.push((who, cells(nodes, &growth)));
                bars.push(bar(&who, nodes, &growth));
            }
            Err(error) => field.fails(&who, &format!("{nodes} nodes: {error:#}")),
        }
    }
    let head = [
        "nodes",
        "server CPU, of one core",
        "requests/s at the server",
        "a node",
        "beat answered after it was due, median",
        "p99",
        "max",
        "beats",
    ];
    let title = "CPU of the server for a fleet in which nothing happens, in per cent of one core";
    section::cells("growth", &head, &rows, Some((title, bars)))
}

fn cells(nodes: usize, growth: &Growth) -> Vec<String> {
    let Growth { cpu, requests, late } = growth;
    let mut cells = vec![nodes.to_string(), format!("{cpu:.1} %"), format!("{requests:.0}")];
    cells.push(format!("{:.2}", requests / nodes as f64));
    cells.extend([0.5, 0.99, 1.0].map(|share| shown(late.quantile(share))));
    cells.push(late.len().to_string());
    cells
}

fn bar(who: &Contender, nodes: usize, growth: &Growth) -> Bar {
    Bar {
        label: format!("{nodes} nodes on {}", who.store.title()),
        value: finite(growth.cpu.max(0.1)),
        most: None,
        text: format!("{:.1} %", growth.cpu),
        ours: true,
    }
}

/// One fleet on a server of its own, so that nothing of others is counted.
fn grown(store: Store, nodes: usize, window: Duration) -> Result<Growth> {
    let (server, url) = serve(store)?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let opened = runtime.block_on(incumbent::open(&url))?;
    let mut fleet = Fleet::start(&url, nodes, PROCESSES)?;
    let cluster = fleet.cluster(&opened)?;
    runtime.block_on(fleet.settle(&cluster, STILL))?;
    let leader = runtime.block_on(fleet::leader(&cluster))?;
    fleet.late()?;
    let began = clock::now();
    let (cpu, asked) = (cpu(&server)?, asked(&runtime, store, &server, &url)?);
    pause(window);
    let seconds = clock::now().since(began).as_secs_f64();
    let growth = Growth {
        cpu: 100.0 * (self::cpu(&server)? - cpu) / seconds,
        requests: (self::asked(&runtime, store, &server, &url)? - asked) / seconds,
        late: Spread::new(fleet.late()?),
    };
    ensure!(runtime.block_on(fleet::leader(&cluster))? == leader, "the leader changed");
    fleet.end()?;
    Ok(growth)
}

fn serve(store: Store) -> Result<(Server, String)> {
    Ok(match store {
        Store::Postgres => {
            let settings =
                ["shared_preload_libraries=pg_stat_statements", "pg_stat_statements.max=20000"];
            let server = postgres::start(&settings);
            let url = postgres::url(&server, "postgres");
            (server, url)
        }
        Store::Redis => {
            let server = redis::start(&[]);
            let url = redis::url(&server);
            (server, url)
        }
        Store::Etcd => {
            let server = etcd::start(&[]);
            let url = etcd::url(&server);
            (server, url)
        }
        Store::Sqlite | Store::Zookeeper | Store::Kubernetes => {
            anyhow::bail!("no fleet is measured on {}", store.title())
        }
    })
}

/// Seconds that all processes of a server have used, those that have ended too.
fn cpu(server: &Server) -> Result<f64> {
    let processes = server.processes().into_iter();
    let processes: Vec<u32> =
        processes.filter_map(|process| u32::try_from(process.as_raw_pid()).ok()).collect();
    ensure!(!processes.is_empty(), "the server has no process");
    let ticks: f64 = processes.iter().map(|process| idle::ticks_of(*process)).sum();
    Ok(ticks / rustix::param::clock_ticks_per_second() as f64)
}

/// What it was asked so far, as it counts that itself.
fn asked(
    runtime: &tokio::runtime::Runtime,
    store: Store,
    server: &Server,
    url: &str,
) -> Result<f64> {
    match store {
        Store::Postgres => runtime.block_on(async {
            let client = fleet::server::connect(url).await?;
            client.batch_execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements").await?;
            let count = "SELECT sum(calls)::float8 FROM pg_stat_statements";
            Ok(client.query_one(count, &[]).await?.try_get(0)?)
        }),
        Store::Redis => {
            let text = said(server.port(), "INFO stats\r\nQUIT\r\n")?;
            number(&text, "total_commands_processed:")
        }
        _ => {
            let text = said(server.port(), "GET /metrics HTTP/1.0\r\nConnection: close\r\n\r\n")?;
            let handled =
                text.lines().filter(|line| line.starts_with("grpc_server_handled_total{"));
            let counts = handled.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
            Ok(counts.sum())
        }
    }
}

/// All that a server says to this.
fn said(port: u16, question: &str) -> Result<String> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    stream.write_all(question.as_bytes())?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

fn number(text: &str, name: &str) -> Result<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    Ok(line.with_context(|| format!("there is no {name}"))?.trim().parse()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_found_by_its_name() {
        let text = "# Stats\r\ntotal_connections_received:3\r\ntotal_commands_processed:17\r\n";
        assert_eq!(number(text, "total_commands_processed:").unwrap(), 17.0);
        assert!(number(text, "expired_keys:").is_err());
    }
}
