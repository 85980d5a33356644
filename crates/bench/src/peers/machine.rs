//! Where and with what it was measured, and what one process can measure alone.

use std::process::Command;

use super::build;
use super::field::Field;
use super::section::Section;
use crate::question;
use crate::report::Report;

/// Machine, versions, and who is missing.
pub(super) fn section(field: &Field, absent: &[String]) -> Section {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let processor = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let processor = processor.lines().find(|line| line.starts_with("model name"));
    let processor = processor.and_then(|line| line.split(": ").nth(1)).unwrap_or("unknown");
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut text = format!(
        "Measured on {} with {cores} cores ({processor}), Linux {}; load average before: {}. Servers: {}.\n\n",
        said("date", &["-u", "+%Y-%m-%d %H:%M UTC"]),
        kernel.trim(),
        std::fs::read_to_string("/proc/loadavg")
            .unwrap_or_default()
            .split(' ')
            .next()
            .unwrap_or_default(),
        servers()
    );
    let mut versions: Vec<String> = field
        .entrants
        .iter()
        .filter(|entrant| !entrant.contender.is_ours())
        .map(|entrant| format!("{} {}", entrant.contender.title, entrant.contender.version))
        .collect();
    versions.sort();
    versions.dedup();
    text.push_str(&format!(
        "Peers: incumbent {}, {} (the table's and the advisory lock's version is tokio-postgres's).\n",
        env!("CARGO_PKG_VERSION"),
        versions.join(", ")
    ));
    for line in absent {
        text.push_str(&format!("\n{line}\n"));
    }
    Section { key: "machine", table: text, chart: None }
}

/// "Do I lead?" against a bare read of the clock.
pub(super) fn question() -> Option<Section> {
    let mut report = Report::default();
    if let Err(error) = question::measure(&mut report) {
        println!("question: {error:#}");
        return None;
    }
    Some(Section { key: "question", table: report.markdown(), chart: None })
}

fn servers() -> String {
    let find = incumbent_proving::server::find;
    let ask = |program: &str, arguments: &[&str]| {
        let path = find(program)?;
        Some(said(&path.display().to_string(), arguments))
    };
    let mut all: Vec<String> = [
        ask("postgres", &["--version"]),
        ask("redis-server", &["--version"]),
        ask("etcd", &["--version"]),
    ]
    .into_iter()
    .flatten()
    .collect();
    let module = build::root().join("bench/peers/apiserver/go.mod");
    let module = std::fs::read_to_string(module).unwrap_or_default();
    let version = module.lines().find_map(|line| line.trim().strip_prefix("k8s.io/kubernetes "));
    all.extend(version.map(|version| format!("Kubernetes API server {version}")));
    let package = ["--show", "--showformat=ZooKeeper ${Version}", "zookeeper"];
    if let Some(version) = ask("dpkg-query", &package) {
        all.push(version);
    }
    all.join("; ")
}

/// The first line that a program prints.
fn said(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let output = output.map(|output| output.stdout).unwrap_or_default();
    String::from_utf8_lossy(&output).lines().next().unwrap_or("unknown").trim().to_owned()
}
