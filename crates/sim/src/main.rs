//! The simulator's command line.
use incumbent_sim::{Plant, runs};
fn main() {
    let n: u64 = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(100);
    let (stats, failures) = runs::run_many(0, n, Plant::Nothing, 5, &|_| {});
    println!("{stats:#?}");
    for f in failures.iter().take(3) {
        println!("{f:?}");
        let (v, lines) = runs::tell(f.seed, Plant::Nothing, 60);
        println!("{v:?}\n{}", lines.join("\n"));
    }
}
